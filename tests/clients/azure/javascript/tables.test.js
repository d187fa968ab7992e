'use strict';
// Tables and entities through @azure/data-tables.

const assert = require('node:assert/strict');
const { before, describe } = require('node:test');
const { AzureNamedKeyCredential, TableClient, TableServiceClient } = require('@azure/data-tables');
const { ACCOUNT, KEY, listed, paged, rejected, suite, test } = require('./target');

const world = suite();
const credential = new AzureNamedKeyCredential(ACCOUNT, KEY);
const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
const serviceOf = () => new TableServiceClient(world.table, credential, options);
const tableOf = (name) => new TableClient(world.table, name, credential, options);
const keys = { partitionKey: 'p', rowKey: 'r' };

/** The client of an empty table. */
async function created(name = world.name()) {
  const table = tableOf(name);
  await table.createTable();
  return table;
}

/** An entity without what the service adds. */
function plain(entity) {
  const { etag, timestamp, ...rest } = entity;
  for (const name of Object.keys(rest)) if (name.startsWith('odata.')) delete rest[name];
  assert.ok(timestamp === undefined || etag, 'what has a time has an etag');
  return rest;
}

describe('tables', () => {
  test('a table is created, listed and deleted', async () => {
    const [service, name] = [serviceOf(), world.name()];
    await service.createTable(name);
    const names = (await listed(service.listTables())).map((table) => table.name);
    assert.ok(names.includes(name));
    await service.deleteTable(name);
    await rejected(tableOf(name).createEntity(keys), 404, 'TableNotFound');
  });

  test('creating an existing table succeeds, in any case of its name', async () => {
    const name = world.name();
    const table = await created(name);
    await table.createTable();
    const answers = [];
    const onResponse = (answer) => answers.push([answer.status, answer.parsedBody?.odataError?.code]);
    await tableOf(name.toUpperCase()).createTable({ onResponse });
    assert.equal(answers[0][0], 409);
    await tableOf(name.toUpperCase()).createEntity(keys);
    assert.equal((await listed(table.listEntities())).length, 1);
  });

  test('tables are filtered and listed page by page', async () => {
    const [service, name] = [serviceOf(), world.name()];
    for (let number = 0; number < 5; number += 1) await service.createTable(`${name}p${number}`);
    const filter = `TableName ge '${name}p' and TableName lt '${name}q'`;
    const pages = await paged(service.listTables({ queryOptions: { filter } }), { maxPageSize: 2 });
    const names = pages.map((page) => page.map((table) => table.name.slice(-2)));
    assert.deepEqual(names, [['p0', 'p1'], ['p2', 'p3'], ['p4']]);
    const token = { maxPageSize: 2, continuationToken: pages[0].continuationToken };
    await service.deleteTable(`${name}p2`);
    const next = await service.listTables({ queryOptions: { filter } }).byPage(token).next();
    assert.deepEqual(next.value.map((table) => table.name.slice(-2)), ['p3', 'p4']);
  });

  test('a malformed name is rejected', async () => {
    await rejected(serviceOf().createTable('1abc'), 400, 'InvalidResourceName');
    await rejected(serviceOf().createTable('a'.repeat(64)), 400, 'OutOfRangeInput');
  });
});

describe('entities', () => {
  let table;
  before(async () => {
    table = await created();
  });

  test('an entity is inserted, read, updated, upserted and deleted', async () => {
    const made = await table.createEntity({ ...keys, kept: 1, changed: 1 });
    const got = await table.getEntity('p', 'r');
    assert.equal(made.etag, got.etag);
    assert.match(got.etag, /^W\/"datetime'/);
    await table.updateEntity({ ...keys, changed: 2 }, 'Merge');
    assert.deepEqual(plain(await table.getEntity('p', 'r')), { ...keys, kept: 1, changed: 2 });
    await table.updateEntity({ ...keys, changed: 3 }, 'Replace');
    assert.deepEqual(plain(await table.getEntity('p', 'r')), { ...keys, changed: 3 });
    await table.upsertEntity({ ...keys, more: 1 }, 'Merge');
    assert.deepEqual(plain(await table.getEntity('p', 'r')), { ...keys, changed: 3, more: 1 });
    await table.upsertEntity({ ...keys, only: 1 }, 'Replace');
    assert.deepEqual(plain(await table.getEntity('p', 'r')), { ...keys, only: 1 });
    await table.deleteEntity('p', 'r');
    await rejected(table.getEntity('p', 'r'), 404, 'ResourceNotFound');
    await rejected(table.deleteEntity('p', 'r'), 404, 'ResourceNotFound');
    await rejected(table.updateEntity(keys), 404, 'ResourceNotFound');
  });

  test('inserting an existing entity is a conflict', async () => {
    await table.createEntity({ partitionKey: 'p', rowKey: 'twice' });
    await rejected(
      table.createEntity({ partitionKey: 'p', rowKey: 'twice' }), 409, 'EntityAlreadyExists',
    );
  });

  test('an update and a delete with a stale etag are rejected', async () => {
    const entity = { partitionKey: 'p', rowKey: 'etag' };
    const made = await table.createEntity(entity);
    const changed = await table.updateEntity(entity, 'Merge', { etag: made.etag });
    for (const mode of ['Merge', 'Replace']) {
      await rejected(
        table.updateEntity(entity, mode, { etag: made.etag }), 412, 'UpdateConditionNotSatisfied',
      );
    }
    await rejected(
      table.deleteEntity('p', 'etag', { etag: made.etag }), 412, 'UpdateConditionNotSatisfied',
    );
    await table.deleteEntity('p', 'etag', { etag: changed.etag });
  });

  test('null is not stored and deletes nothing', async () => {
    const entity = { partitionKey: 'p', rowKey: 'null' };
    await table.createEntity({ ...entity, x: 1, none: null });
    await table.updateEntity({ ...entity, x: null }, 'Merge');
    assert.deepEqual(plain(await table.getEntity('p', 'null')), { ...entity, x: 1 });
  });

  for (const key of ["it's", "''", 'a b', '100%', '%27', 'a+b', 'a&b=c', 'ä€', '\u{1F600}', 'a,b',
    '(a)', '"', '']) {
    test(`the key ${JSON.stringify(key)} works`, async () => {
      const entity = { partitionKey: key, rowKey: key };
      await table.createEntity({ ...entity, x: 1 });
      await table.updateEntity({ ...entity, x: 2 });
      await table.upsertEntity({ ...entity, x: 3 });
      assert.equal((await table.getEntity(key, key)).x, 3);
      await table.submitTransaction([['update', { ...entity, x: 4 }]]);
      assert.equal((await table.getEntity(key, key)).x, 4);
      await table.deleteEntity(key, key);
      await rejected(table.getEntity(key, key), 404, 'ResourceNotFound');
    });
  }

  for (const key of ['a/b', 'a\\b', 'a#b', 'a?b', 'a\tb']) {
    test(`the key ${JSON.stringify(key)} is rejected`, async () => {
      await rejected(
        table.createEntity({ partitionKey: key, rowKey: 'r' }), 400, 'OutOfRangeInput',
      );
    });
  }

  test('entities and transactions over the limits are rejected', async () => {
    const entity = { partitionKey: 'p', rowKey: 'large' };
    const many = Object.fromEntries(Array.from({ length: 253 }, (_, n) => [`p${n}`, n]));
    await rejected(table.createEntity({ ...entity, ...many }), 400, 'TooManyProperties');
    const long = { ...entity, text: 'x'.repeat(32769) };
    await rejected(table.createEntity(long), 400, 'PropertyValueTooLarge');
    await rejected(table.createEntity({ ...entity, 'a-b': 1 }), 400, 'PropertyNameInvalid');
  });
});

test('a connection string suffices, with localhost or 127.0.0.1', async () => {
  const name = world.name();
  const connection = [world.connectionString, name, options];
  const table = TableClient.fromConnectionString(...connection);
  await table.createTable();
  const local = world.connectionString.replaceAll('127.0.0.1', 'localhost');
  const other = TableClient.fromConnectionString(local, name, options);
  await other.createEntity({ ...keys, x: 1 });
  await other.updateEntity({ ...keys, y: 2 }, 'Merge');
  await other.submitTransaction([['upsert', { ...keys, z: 3 }, 'Merge']]);
  assert.deepEqual(plain(await table.getEntity('p', 'r')), { ...keys, x: 1, y: 2, z: 3 });
  const service = TableServiceClient.fromConnectionString(world.connectionString, options);
  assert.ok((await listed(service.listTables())).some((one) => one.name === name));
});
