'use strict';
// `trestle import` from the real Azurite: its files, and its REST protocol.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { after, before, describe, it } = require('node:test');

const { generateAccountSas, AzureNamedKeyCredential } = require('@azure/data-tables');

const azurite = require('./azurite');
const { start, temporaryDirectory } = require('../javascript/server');

const PROGRESS_MS = 60_000;
const MANY = 2500;

/** One entity with every type, and keys that are easy to get wrong. */
const EVERY_TYPE = {
  partitionKey: 'p1',
  rowKey: "r'1é€😀",
  text: 'say "q" \n é😀',
  empty: '',
  int: 5,
  long: { type: 'Int64', value: '9223372036854775807' },
  double: 1.5,
  whole: { type: 'Double', value: 3 },
  nan: { type: 'Double', value: 'NaN' },
  down: { type: 'Double', value: '-Infinity' },
  yes: true,
  time: new Date('2026-01-31T08:00:00.123Z'),
  tick: { type: 'DateTime', value: '1999-01-01T00:00:00.1234567Z' },
  guid: { type: 'Guid', value: 'C9DA6455-213D-42C9-9A79-3E9149A57833' },
  bytes: new Uint8Array([0, 255, 1]),
};
const EVERY_TYPE_COPIED = {
  PartitionKey: 'p1',
  RowKey: "r'1é€😀",
  'bytes@odata.type': 'Edm.Binary',
  bytes: 'AP8B',
  double: 1.5,
  'down@odata.type': 'Edm.Double',
  down: '-Infinity',
  empty: '',
  'guid@odata.type': 'Edm.Guid',
  guid: 'c9da6455-213d-42c9-9a79-3e9149a57833',
  int: 5,
  'long@odata.type': 'Edm.Int64',
  long: '9223372036854775807',
  'nan@odata.type': 'Edm.Double',
  nan: 'NaN',
  text: 'say "q" \n é😀',
  'tick@odata.type': 'Edm.DateTime',
  tick: '1999-01-01T00:00:00.1234567Z',
  'time@odata.type': 'Edm.DateTime',
  time: '2026-01-31T08:00:00.123Z',
  whole: 3,
  yes: true,
};

/** Runs a command against a server: its exit code, its output, and its errors. */
async function trestle(server, args, { kill } = {}) {
  const child = spawn(process.env.TRESTLE_BIN, [...args, '--endpoint', `http://${server.grpc}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text));
  const ended = once(child, 'close');
  if (kill) {
    await kill();
    child.kill('SIGKILL');
  }
  const [code, signal] = await ended;
  return { code, signal, output, errors };
}

async function succeeds(server, args) {
  const ended = await trestle(server, args);
  assert.equal(ended.code, 0, JSON.stringify(ended));
  return ended.output.split('\n').filter(Boolean).map((line) => JSON.parse(line));
}

const summary = (lines) => lines.at(-1);
const entities = (server, table) => succeeds(server, ['table', 'query', table, '--json']);
const peek = (server, queue) => succeeds(server, ['queue', 'peek', queue, '--max', '32', '--json']);

/** An entity without what every write makes anew. */
function content({ Timestamp: _, 'odata.etag': __, ...rest }) {
  return rest;
}

async function fill(source) {
  const mixed = source.table('MixedCase');
  await mixed.createTable();
  await mixed.createEntity(EVERY_TYPE);
  await mixed.createEntity({ partitionKey: '', rowKey: '' });
  const [start, expiry] = [new Date('2026-01-01'), new Date('2027-01-01')];
  await mixed.setAccessPolicy([
    { id: 'table', accessPolicy: { start, expiry, permission: 'raud' } },
  ]);
  const many = source.table('many');
  await many.createTable();
  for (let first = 0; first < MANY; first += 100) {
    const partition = `p${Math.floor(first / 1000)}`;
    const rows = Array.from({ length: 100 }, (_, at) => String(first + at).padStart(6, '0'));
    await many.submitTransaction(
      rows.map((row) => ['create', { partitionKey: partition, rowKey: row, n: Number(row) }]),
    );
  }
  const jobs = source.queue('jobs-1');
  await jobs.create({ metadata: { owner: 'me', Kind: 'X' } });
  const accessPolicy = { startsOn: start, expiresOn: expiry, permissions: 'raup' };
  await jobs.setAccessPolicy([{ id: 'queue', accessPolicy }]);
  await jobs.sendMessage('plain <x>&amp; "é😀"');
  await jobs.sendMessage('no expiry', { messageTimeToLive: -1 });
  await jobs.sendMessage('later', { visibilityTimeout: 3000 });
  await jobs.sendMessage('short', { messageTimeToLive: 86400 });
  await source.queue('long').create();
  for (let at = 0; at < 40; at += 1) await source.queue('long').sendMessage(`message ${at}`);
}

describe('from the real Azurite', () => {
  let source;
  let workspace;
  const started = [];

  /** A server on an empty directory. */
  async function fresh() {
    const data = temporaryDirectory();
    const server = await start(data.directory);
    started.push(async () => {
      await server.kill();
      data.remove();
    });
    return server;
  }

  before(async () => {
    workspace = temporaryDirectory();
    source = await azurite.start(path.join(workspace.directory, 'ws'));
    await fill(source);
  });

  after(async () => {
    for (const end of started) await end();
    if (source) await source.stop();
    workspace.remove();
  });

  async function checkTables(server) {
    const mixed = await entities(server, 'MixedCase');
    assert.deepEqual(mixed.map(content), [{ PartitionKey: '', RowKey: '' }, EVERY_TYPE_COPIED]);
    const many = await entities(server, 'many');
    assert.deepEqual(
      many.map((entity) => entity.n),
      Array.from({ length: MANY }, (_, at) => at),
    );
  }

  it('a running account is copied with types, over pages, and nothing is consumed', async () => {
    const server = await fresh();
    const checkpoint = path.join(workspace.directory, 'peek.checkpoint');

    const args = ['import', 'azure', source.connection, '--checkpoint', checkpoint, '--json'];
    const ended = await trestle(server, args);

    assert.equal(ended.code, 1, 'more than 32 messages cannot be copied without receiving them');
    const lines = ended.output.split('\n').filter(Boolean).map((line) => JSON.parse(line));
    const about = (name) => lines.find((line) => line.table === name || line.queue === name);
    const { read, written, rejected, target, match } = about('many');
    assert.deepEqual([read, written, rejected, target, match], [MANY, MANY, 0, MANY, true]);
    assert.equal(about('many').digest_written, about('many').digest_target);
    assert.deepEqual([about('long').sent, about('long').remaining], [32, 8]);
    assert.deepEqual([about('jobs-1').sent, about('jobs-1').remaining], [3, 1], 'one is invisible');
    await checkTables(server);
    const first = (await peek(server, 'jobs-1')).map((message) => message.text);
    assert.deepEqual(first, ['plain <x>&amp; "é😀"', 'no expiry', 'short']);
    assert.equal((await source.queue('long').getProperties()).approximateMessagesCount, 40);
    const [jobs] = await succeeds(server, ['queue', 'list', '--json']);
    assert.deepEqual(jobs.metadata, { Kind: 'X', owner: 'me' });
    assert.ok(!fs.existsSync(checkpoint), 'the checkpoint is removed');
  });

  it('a signature copies tables and reports what it may not read', async () => {
    const server = await fresh();
    const key = new AzureNamedKeyCredential(azurite.ACCOUNT, azurite.KEY);
    const signature = generateAccountSas(key, { expiresOn: new Date(Date.now() + 3_600_000) });
    const checkpoint = path.join(workspace.directory, 'sas.checkpoint');

    const connection = `TableEndpoint=${source.tables};SharedAccessSignature=${signature}`;
    const args = ['import', 'azure', connection, '--checkpoint', checkpoint];
    const ended = await trestle(server, args);

    assert.equal(ended.code, 1, ended.errors);
    assert.match(ended.output, /table `MixedCase`, access policies: a signature may not read them/);
    assert.doesNotMatch(ended.output + ended.errors, /sig=/);
    await checkTables(server);
  });

  it('a killed import resumes without duplicates', async () => {
    const server = await fresh();
    const checkpoint = path.join(workspace.directory, 'killed.checkpoint');
    const from = ['import', 'azure', source.connection];
    const args = [...from, '--checkpoint', checkpoint, '--queues', 'skip'];
    const deadline = Date.now() + PROGRESS_MS;

    const killed = await trestle(server, [...args, '--parallel', '1'], {
      kill: async () => {
        while (!fs.existsSync(checkpoint) && Date.now() < deadline) {
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      },
    });

    assert.equal(killed.signal, 'SIGKILL', 'it was killed on the way');
    const again = await trestle(server, args);
    assert.equal(again.code, 2, again.errors);
    const lines = await succeeds(server, [...args, '--resume', '--json']);
    assert.equal(summary(lines).match, true);
    assert.equal(lines.find((line) => line.table === 'many').written, MANY);
    await checkTables(server);
  });

  it('a wrong key is reported without the key', async () => {
    const server = await fresh();
    const wrong = Buffer.alloc(64, 7).toString('base64');
    const connection = source.connection.replace(azurite.KEY, wrong);

    const ended = await trestle(server, ['import', 'azure', connection]);

    assert.equal(ended.code, 1, ended.errors);
    assert.match(ended.errors, /rejects the list of tables: \w+ \(403\)/);
    assert.ok(!ended.errors.includes(wrong) && !ended.errors.includes('SharedKey'));
  });

  it('the files of a stopped Azurite are copied whole', async () => {
    await source.stop();
    const stopped = source;
    source = undefined;
    const server = await fresh();

    const directory = path.join(workspace.directory, 'ws');
    const lines = await succeeds(server, ['import', 'azurite', directory, '--json']);

    assert.deepEqual(summary(lines), {
      ...{ tables: 2, queues: 2, containers: 0, blobs: 0, bytes: 0 },
      ...{ not_copied: 0, match: true },
    });
    await checkTables(server);
    const long = lines.find((line) => line.queue === 'long');
    assert.deepEqual([long.sent, long.target, long.before], [40, 40, 0]);
    const jobs = await peek(server, 'jobs-1');
    assert.deepEqual(
      jobs.map((message) => message.text),
      ['plain <x>&amp; "é😀"', 'no expiry', 'short'],
    );
    assert.equal(jobs[1].expiration_time, null);
    const [stats] = await succeeds(server, ['queue', 'stats', 'jobs-1', '--json']);
    assert.equal(stats.messages, 4, 'the delayed one exists');
    source = await azurite.start(directory);
    assert.notEqual(source, stopped);
  });

  it('messages that are received are moved, each once', async () => {
    const server = await fresh();
    const checkpoint = path.join(workspace.directory, 'moved.checkpoint');

    const from = ['import', 'azure', source.connection];
    const args = [...from, '--checkpoint', checkpoint, '--queues', 'receive'];
    const ended = await trestle(server, [...args, '--json']);

    const lines = ended.output.split('\n').filter(Boolean).map((line) => JSON.parse(line));
    const long = lines.find((line) => line.queue === 'long');
    assert.deepEqual([long.sent, long.remaining, long.target, long.match], [40, 0, 40, true]);
    assert.equal((await source.queue('long').getProperties()).approximateMessagesCount, 0);
    assert.equal(ended.code, 1, 'an invisible message cannot be moved');
    assert.equal(lines.find((line) => line.queue === 'jobs-1').remaining, 1);
    await checkTables(server);
  });

  it('an import that is killed releases the messages that it had received', async () => {
    const server = await fresh();
    const checkpoint = path.join(workspace.directory, 'held.checkpoint');
    const queue = source.queue('held');
    await queue.create();
    const texts = Array.from({ length: 160 }, (_, at) => `message ${at} <x>&amp;é`);
    for (const text of texts) await queue.sendMessage(text);
    const from = ['import', 'azure', source.connection];
    const args = [...from, '--checkpoint', checkpoint, '--queues', 'receive'];
    const deadline = Date.now() + PROGRESS_MS;
    const saved = () => (fs.existsSync(checkpoint) ? fs.readFileSync(checkpoint, 'utf8') : '');

    const killed = await trestle(server, [...args, '--parallel', '1'], {
      kill: async () => {
        while (!saved().includes('"receipt"') && Date.now() < deadline) {
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      },
    });

    assert.equal(killed.signal, 'SIGKILL', 'it was killed on the way');
    const ended = await trestle(server, [...args, '--resume', '--json']);
    const lines = ended.output.split('\n').filter(Boolean).map((line) => JSON.parse(line));
    const held = lines.find((line) => line.queue === 'held');
    assert.deepEqual([held.read, held.sent, held.remaining, held.target], [160, 160, 0, 160]);
    assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
    const found = [];
    for (let more = true; more; ) {
      const received = await succeeds(server, ['queue', 'receive', 'held', '--max', '32', '--json']);
      found.push(...received.map((message) => message.text));
      more = received.length > 0;
    }
    assert.deepEqual(found.sort(), texts.sort(), 'each came once, as it was sent');
  });
});
