'use strict';
// The program of docs/grpc.md for JavaScript, as it is in it.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { promisify } = require('node:util');
const { connect } = require('./client');
const { suite } = require('./suite');

const world = suite();
const ROOT = path.resolve(__dirname, '../../..');

test('the program of the page reads an entity', async () => {
  const page = fs.readFileSync(path.join(ROOT, 'docs/grpc.md'), 'utf8');
  const blocks = [...page.matchAll(/```js\n([^]*?)```/g)].map((match) => match[1]);
  const program = blocks.find((block) => block.includes('proto-loader'));
  const tables = connect(world.server.grpc);
  await tables.CreateTable({ table: { name: 'orders' } });
  const properties = { total: { int64_value: 120 } };
  const entity = { partition_key: 'c42', row_key: '0002', properties };
  await tables.InsertEntity({ table: 'orders', entity });
  tables.close();

  const here = program.replace('127.0.0.1:50051', world.server.grpc);
  const env = { ...process.env, NODE_PATH: path.join(__dirname, 'node_modules') };
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', here], { cwd: ROOT, env });

  const [, shown] = page.match(/```js\n[^]*?```\n\n```text\n([^]*?)```/);
  assert.equal(stdout, shown);
});
