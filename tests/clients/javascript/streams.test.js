'use strict';
// Queries, pages, streams both ways, cancellation, deadlines.

const assert = require('node:assert/strict');
const test = require('node:test');
const grpc = require('@grpc/grpc-js');
const { collect } = require('./client');
const { entity, keys, values } = require('./entities');
const { rejected } = require('./failures');
const { suite } = require('./suite');

const world = suite(fill);
const ROWS = 2500;
const table = 'Filled';

/** Sends chunks of entities, as fast as the server takes them; all outcomes. */
async function send(spec, entities, chunkSize = 300) {
  const call = world.client.ImportEntities();
  const answers = collect(call);
  const write = async (message) => {
    if (!call.write(message)) await new Promise((resolve) => call.once('drain', resolve));
  };
  await write({ spec });
  for (let at = 0; at < entities.length; at += chunkSize) {
    await write({ chunk: { entities: entities.slice(at, at + chunkSize) } });
  }
  call.end();
  return (await answers).flatMap((answer) => answer.results);
}

const code = (error) => grpc.status[error.code];

async function fill() {
  await world.client.CreateTable({ table: { name: table } });
  const row = (n) => {
    const padded = String(Math.floor(n / 5)).padStart(4, '0');
    return entity(`p${n % 5}`, padded, { n: ['int32_value', n], text: ['string_value', 'x'] });
  };
  const results = await send(
    { table },
    Array.from({ length: ROWS }, (_, n) => row(n)),
  );
  assert.equal(results.length, ROWS);
  assert.ok(results.every((result, index) => !result.error && result.index === String(index)));
}

test('pages cover every entity in order, and the last one has no token', async () => {
  const found = [];
  let token = '';
  let pages = 0;
  do {
    const page = await world.client.QueryEntities({ table, page_size: 700, page_token: token });
    found.push(...keys(page.entities));
    token = page.next_page_token;
    pages += 1;
  } while (token !== '');

  assert.equal(pages, 4);
  assert.equal(found.length, ROWS);
  assert.deepEqual(found, [...found].sort());
});

test('a filter with a projection returns what it names, and its cost', async () => {
  const filter = "PartitionKey eq 'p1' and n lt 1000";
  const select = { paths: ['n'] };
  const { entities, cost } = await world.client.QueryEntities({ table, filter, select });

  assert.equal(entities.length, 200);
  assert.deepEqual(values(entities[0]), { n: ['int32_value', 1] });
  assert.deepEqual(
    [cost.scope, cost.scanned, cost.returned],
    ['QUERY_SCOPE_PARTITION', '500', '200'],
  );
});

test('explain shows the range and what is left of the filter', async () => {
  const filter = "PartitionKey eq 'p1' and RowKey ge '0100' and n gt 5";
  const plan = await world.client.ExplainQuery({ table, filter });

  assert.equal(plan.scope, 'QUERY_SCOPE_ROW_RANGE');
  assert.deepEqual([plan.start.partition_key, plan.start.row_key], ['p1', '0100']);
  assert.deepEqual([plan.residual_filter, plan.filter_properties], ['n gt 5', ['n']]);
});

test('a malformed filter and a foreign token are rejected', async () => {
  const { client } = world;
  const broken = client.QueryEntities({ table, filter: "n eq 'open" });
  assert.deepEqual((await rejected('INVALID_ARGUMENT', 'INVALID_INPUT', broken)).violations, [
    'filter',
  ]);

  const page = await client.QueryEntities({ table, page_size: 1 });
  const foreign = { table, filter: 'n gt 1', page_token: page.next_page_token };
  const reason = 'INVALID_QUERY_PARAMETER_VALUE';
  await rejected('INVALID_ARGUMENT', reason, client.QueryEntities(foreign));
});

test('a stream has every entity and reports completion', async () => {
  const messages = await collect(world.client.StreamEntities({ table }));

  const found = messages.flatMap((message) => keys(message.entities));
  assert.equal(found.length, ROWS);
  assert.deepEqual(found, [...found].sort());
  assert.equal(messages.at(-1).resume_token, '');
});

test('a cancelled stream is resumed without loss or repetition', async () => {
  const call = world.client.StreamEntities({ table });
  const [first] = await require('node:events').once(call, 'data');
  call.cancel();
  await assert.rejects(collect(call), (error) => code(error) === 'CANCELLED');

  const resumed = world.client.StreamEntities({ table, resume_token: first.resume_token });
  const messages = [first, ...(await collect(resumed))];
  const found = messages.flatMap((message) => keys(message.entities));
  assert.equal(found.length, ROWS);
  assert.equal(new Set(found).size, ROWS);
});

test('an import reports the status of each entity', async () => {
  const mixed = await world.table();
  await world.client.InsertEntity({ table: mixed, entity: entity('p', '1') });

  const rows = [entity('p', '0'), entity('p', '1'), entity('p', 'a/b')];
  const results = await send({ table: mixed }, rows, 2);

  const codes = results.map((result) => grpc.status[result.error?.code ?? 0]);
  assert.deepEqual(codes, ['OK', 'ALREADY_EXISTS', 'INVALID_ARGUMENT']);
  assert.deepEqual(
    results.map((result) => result.index),
    ['0', '1', '2'],
  );
});

test('an import without a spec is rejected', async () => {
  const call = world.client.ImportEntities();
  const answers = collect(call);
  call.end({ chunk: { entities: [entity('p', 'r')] } });
  await rejected('INVALID_ARGUMENT', 'PROPERTIES_NEED_VALUE', answers);
});

test('a silent import ends at its deadline, and a cancelled one at once', async () => {
  const late = world.client.ImportEntities({ deadline: Date.now() + 300 });
  late.write({ spec: { table } });
  await assert.rejects(collect(late), (error) => code(error) === 'DEADLINE_EXCEEDED');

  const cancelled = world.client.ImportEntities();
  cancelled.write({ spec: { table } });
  setTimeout(() => cancelled.cancel(), 50);
  await assert.rejects(collect(cancelled), (error) => code(error) === 'CANCELLED');
});

test('a hundred calls at the same time all succeed', async () => {
  const hot = await world.table();
  const merge = (n) =>
    world.client.UpsertEntity({
      table: hot,
      entity: entity('p', 'hot', { [`n${n}`]: ['int32_value', n] }),
      mode: 'WRITE_MODE_MERGE',
    });
  const written = await Promise.all(Array.from({ length: 100 }, (_, n) => merge(n)));

  assert.equal(new Set(written.map((one) => one.etag)).size, 100);
  const key = { table: hot, partition_key: 'p', row_key: 'hot' };
  const { entity: stored } = await world.client.GetEntity(key);
  assert.equal(Object.keys(stored.properties).length, 100);
});
