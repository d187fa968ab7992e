'use strict';
// Health, both versions of reflection, and data that survives a kill.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const path = require('node:path');
const test = require('node:test');
const grpc = require('@grpc/grpc-js');
const { collect, connect, load } = require('./client');
const { entity, keys } = require('./entities');
const { Explorer } = require('./explorer');
const { start, temporaryDirectory } = require('./server');
const { suite } = require('./suite');

const world = suite();
const TABLE_SERVICE = 'trestle.table.v1.TableService';

/** A directory with protos of an installed package. */
const protosOf = (name, directory) =>
  path.join(path.dirname(require.resolve(`${name}/package.json`)), directory);
const { Health } = load('health/v1/health.proto', protosOf('grpc-health-check', 'proto')).grpc
  .health.v1;
const reflection = (version) => {
  const directory = protosOf('@grpc/reflection', 'build/proto');
  const protos = load(`grpc/reflection/${version}/reflection.proto`, directory);
  return protos.grpc.reflection[version].ServerReflection;
};

test('health is SERVING for the server and for the table service', async () => {
  const health = connect(world.server.grpc, Health);
  for (const service of ['', TABLE_SERVICE]) {
    assert.equal((await health.Check({ service })).status, 'SERVING');
  }
  const absent = health.Check({ service: 'nothing' });
  await assert.rejects(absent, (error) => error.code === grpc.status.NOT_FOUND);
  health.close();
});

test('watched health reports NOT_SERVING before the server ends', async () => {
  const data = temporaryDirectory();
  const server = await start(data.directory);
  try {
    const health = connect(server.grpc, Health);
    const watch = health.Watch({ service: '' });
    watch.on('error', () => {}); // the server may end before the watch is cancelled
    assert.equal((await once(watch, 'data'))[0].status, 'SERVING');

    const turned = once(watch, 'data');
    const ended = server.terminate();
    assert.equal((await turned)[0].status, 'NOT_SERVING');
    watch.cancel();
    health.close();
    assert.equal(await ended, 0);
  } finally {
    await server.kill();
    data.remove();
  }
});

for (const version of ['v1', 'v1alpha']) {
  test(`a client made by reflection ${version} alone creates, inserts and queries`, async () => {
    const explorer = new Explorer(world.server.grpc, reflection(version));
    const names = await explorer.services();
    assert.ok(names.includes(TABLE_SERVICE) && names.includes('grpc.health.v1.Health'), names);

    const client = connect(world.server.grpc, await explorer.service(TABLE_SERVICE));
    const table = `Explored${version}`;
    await client.CreateTable({ table: { name: table } });
    // The library reads a map field of a descriptor as the list of its entries.
    const properties = [{ key: 'n', value: { int64_value: '7' } }];
    await client.InsertEntity({ table, entity: { ...entity('p', 'r'), properties } });
    const { entities } = await client.QueryEntities({ table, filter: 'n eq 7L' });

    assert.deepEqual(keys(entities), ['p/r']);
    client.close();
    explorer.close();
  });
}

test('acknowledged writes survive a kill', async () => {
  const data = temporaryDirectory();
  let server = await start(data.directory);
  try {
    let client = connect(server.grpc);
    await client.CreateTable({ table: { name: 'Kept' } });
    const acknowledged = [];
    const write = async (writer) => {
      for (let n = 0; ; n += 1) {
        const row = String(n).padStart(6, '0');
        try {
          await client.InsertEntity({ table: 'Kept', entity: entity(`w${writer}`, row) });
        } catch {
          return;
        }
        acknowledged.push(`w${writer}/${row}`);
      }
    };
    const writers = Array.from({ length: 16 }, (_, writer) => write(writer));
    while (acknowledged.length < 500) await new Promise((resolve) => setTimeout(resolve, 5));
    await server.kill();
    await Promise.all(writers);
    client.close();

    server = await start(data.directory);
    client = connect(server.grpc);
    const messages = await collect(client.StreamEntities({ table: 'Kept' }));
    const found = new Set(messages.flatMap((message) => keys(message.entities)));
    assert.deepEqual(
      acknowledged.filter((key) => !found.has(key)),
      [],
    );
    client.close();
  } finally {
    await server.kill();
    data.remove();
  }
});
