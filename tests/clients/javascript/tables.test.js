'use strict';
// Tables, single entities, batches, settings: every unary RPC.

const assert = require('node:assert/strict');
const test = require('node:test');
const { entity, keys, values } = require('./entities');
const { rejected } = require('./failures');
const { suite } = require('./suite');

const world = suite();

const EVERY_TYPE = {
  binary: ['binary_value', Buffer.from([0, 1, 255])],
  boolean: ['boolean_value', false],
  datetime: ['datetime_value', { seconds: '253402300799', nanos: 999999900 }],
  double: ['double_value', 0.1],
  early: ['datetime_value', { seconds: '-11644473600', nanos: 0 }],
  guid: ['guid_value', 'c9da6455-213d-42c9-9a79-3e9149a57833'],
  infinite: ['double_value', -Infinity],
  int32: ['int32_value', -2147483648],
  int64: ['int64_value', '9223372036854775807'],
  nan: ['double_value', NaN],
  string: ['string_value', 'snow ☃ and 🐉'],
};

test('a table is found in any case and keeps the case it was created with', async () => {
  const { client } = world;
  const created = await client.CreateTable({ table: { name: 'CamelCase' } });

  const found = await client.GetTable({ table: 'camelcase' });
  assert.deepEqual(found, created);
  assert.equal(found.table.name, 'CamelCase');

  await client.DeleteTable({ table: 'CAMELCASE' });
  await rejected('NOT_FOUND', 'RESOURCE_NOT_FOUND', client.GetTable({ table: 'CamelCase' }));
});

test('tables are listed in order, page by page', async () => {
  const { client } = world;
  for (const name of ['PageC', 'pagea', 'pageB']) await client.CreateTable({ table: { name } });

  const request = { filter: "TableName ge 'page' and TableName lt 'pagf'", page_size: 2 };
  const first = await client.ListTables(request);
  const second = await client.ListTables({ ...request, page_token: first.next_page_token });

  const names = (page) => page.tables.map((one) => one.name);
  assert.deepEqual(names(first), ['pagea', 'pageB']);
  assert.deepEqual(names(second), ['PageC']);
  assert.equal(second.next_page_token, '');
});

test('every type survives a round trip, 64-bit integers to the last digit', async () => {
  const { client } = world;
  const table = await world.table();
  const sent = entity('p', 'r', EVERY_TYPE);
  const { etag } = await client.InsertEntity({ table, entity: sent });

  const answer = await client.GetEntity({ table, partition_key: 'p', row_key: 'r' });

  assert.deepEqual(values(answer.entity), EVERY_TYPE);
  assert.equal(answer.entity.etag, etag);
  assert.equal(answer.cost.scope, 'QUERY_SCOPE_POINT');
});

test('an entity is updated, upserted and deleted, and a stale etag is aborted', async () => {
  const { client } = world;
  const table = await world.table();
  const key = { partition_key: 'p', row_key: 'r' };
  const one = { a: ['int32_value', 1] };
  const two = { b: ['int32_value', 2] };
  const stored = async () => values((await client.GetEntity({ table, ...key })).entity);

  const first = await client.InsertEntity({ table, entity: entity('p', 'r', one) });
  const merge = { table, entity: entity('p', 'r', two), mode: 'WRITE_MODE_MERGE' };
  await client.UpdateEntity({ ...merge, if_match: first.etag });
  assert.deepEqual(await stored(), { ...one, ...two });

  const stale = ['ABORTED', 'UPDATE_CONDITION_NOT_SATISFIED'];
  await rejected(...stale, client.UpdateEntity({ ...merge, if_match: first.etag }));
  await rejected(...stale, client.DeleteEntity({ table, ...key, if_match: first.etag }));

  await client.UpsertEntity({ ...merge, mode: 'WRITE_MODE_REPLACE' });
  assert.deepEqual(await stored(), two);
  await client.DeleteEntity({ table, ...key });
  await rejected('NOT_FOUND', 'RESOURCE_NOT_FOUND', client.DeleteEntity({ table, ...key }));
});

test('every violation of a request is listed', async () => {
  const { client } = world;
  const table = await world.table();
  const wrong = entity('a/b', 'c#d', { PartitionKey: ['int32_value', 1] });

  const call = client.InsertEntity({ table, entity: wrong });
  const failure = await rejected('INVALID_ARGUMENT', 'OUT_OF_RANGE_INPUT', call);

  assert.deepEqual(failure.violations, [
    'entity.partition_key',
    'entity.row_key',
    'entity.properties["PartitionKey"]',
  ]);
});

test('an existing table is rejected with the codes of both protocols', async () => {
  const { client } = world;
  const table = await world.table();

  const call = client.CreateTable({ table: { name: table } });
  const failure = await rejected('ALREADY_EXISTS', 'TABLE_ALREADY_EXISTS', call);

  assert.equal(failure.info.metadata.azureCode, 'TableAlreadyExists');
  assert.equal(failure.info.metadata.httpStatus, '409');
  assert.equal(failure.resource.resource_type, 'table');
});

test('a batch mixes all operations', async () => {
  const { client } = world;
  const table = await world.table();
  const insert = (row) => ({ insert: { entity: entity('p', row, { a: ['int32_value', 1] }) } });
  await client.ExecuteBatch({ table, operations: [insert('1'), insert('2')] });

  const mode = 'WRITE_MODE_MERGE';
  const { results } = await client.ExecuteBatch({
    table,
    operations: [
      insert('3'),
      { update: { entity: entity('p', '1', { b: ['int32_value', 2] }), mode } },
      { upsert: { entity: entity('p', '4'), mode } },
      { delete: { partition_key: 'p', row_key: '2' } },
    ],
  });

  assert.deepEqual(
    results.map((result) => result.etag !== ''),
    [true, true, true, false],
  );
  const { entities } = await client.QueryEntities({ table });
  assert.deepEqual(keys(entities), ['p/1', 'p/3', 'p/4']);
});

test('a batch is atomic and its error names the operation', async () => {
  const { client } = world;
  const table = await world.table();
  const insert = (row) => ({ insert: { entity: entity('p', row) } });
  await client.ExecuteBatch({ table, operations: [insert('existing')] });

  const call = client.ExecuteBatch({ table, operations: [insert('new'), insert('existing')] });
  const failure = await rejected('ALREADY_EXISTS', 'ENTITY_ALREADY_EXISTS', call);

  assert.equal(failure.info.metadata.index, '1');
  const { entities } = await client.QueryEntities({ table });
  assert.deepEqual(keys(entities), ['p/existing']);
});

test('access policies and settings are returned as they were set', async () => {
  const { client } = world;
  const table = await world.table();
  const expiry = { seconds: '1893456000', nanos: 0 };
  const policy = { id: 'one', start_time: null, expiry_time: expiry, permissions: 'raud' };
  await client.SetTableAccessPolicies({ table, policies: [policy] });
  const { policies } = await client.GetTableAccessPolicies({ table });
  assert.deepEqual(
    policies.map(({ _permissions, ...rest }) => rest),
    [policy],
  );

  const before = (await client.GetServiceProperties({})).properties;
  const rule = { allowed_origins: ['*'], allowed_methods: ['GET'], max_age: { seconds: '60' } };
  await client.SetServiceProperties({ properties: { cors: { rules: [rule] } } });
  const after = (await client.GetServiceProperties({})).properties;
  assert.deepEqual(after.cors.rules[0].allowed_methods, ['GET']);
  assert.deepEqual(after.logging, before.logging);
});

test('stats report the durability', async () => {
  const stats = await world.client.GetServiceStats({});
  assert.deepEqual([stats.durability, stats.engine], ['DURABILITY_ALWAYS', 'fjall']);
});
