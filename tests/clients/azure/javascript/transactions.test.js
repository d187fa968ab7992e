'use strict';
// Queries and transactions through @azure/data-tables.

const assert = require('node:assert/strict');
const { before, describe } = require('node:test');
const {
  AzureNamedKeyCredential, TableClient, TableTransaction, odata,
} = require('@azure/data-tables');
const { ACCOUNT, KEY, listed, paged, rejected, suite, test } = require('./target');

const world = suite();
const credential = new AzureNamedKeyCredential(ACCOUNT, KEY);
const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

async function created() {
  const table = new TableClient(world.table, world.name(), credential, options);
  await table.createTable();
  return table;
}

/** An entity of partition `p`. */
const entity = (rowKey, more = {}) => ({ partitionKey: 'p', rowKey, ...more });
const rowsOf = async (table) => (await listed(table.listEntities())).map((one) => one.rowKey);

describe('transactions', () => {
  test('a transaction does every kind of operation', async () => {
    const table = await created();
    for (const row of ['merged', 'replaced', 'deleted']) {
      await table.createEntity(entity(row, { old: 1 }));
    }
    const transaction = new TableTransaction();
    transaction.createEntity(entity('created', { x: 1 }));
    transaction.updateEntity(entity('merged', { x: 1 }), 'Merge');
    transaction.updateEntity(entity('replaced', { x: 1 }), 'Replace');
    transaction.upsertEntity(entity('upserted', { x: 1 }), 'Replace');
    transaction.deleteEntity('p', 'deleted');
    const answer = await table.submitTransaction(transaction.actions);
    assert.equal(answer.status, 202);
    assert.deepEqual(answer.subResponses.map((one) => one.status), [204, 204, 204, 204, 204]);
    const merged = await table.getEntity('p', 'merged');
    assert.deepEqual([merged.old, merged.x], [1, 1]);
    assert.equal(answer.subResponses[1].etag, merged.etag);
    const made = answer.getResponseForEntity('created');
    assert.equal(made?.etag, (await table.getEntity('p', 'created')).etag);
    assert.deepEqual(await rowsOf(table), ['created', 'merged', 'replaced', 'upserted']);
  });

  test('100 operations are one transaction and 101 are rejected', async () => {
    const table = await created();
    const creates = Array.from({ length: 101 }, (_, n) => ['create', entity(`${1000 + n}`)]);
    await assert.rejects(table.submitTransaction(creates), (error) => {
      assert.deepEqual([error.statusCode, error.code], [400, 'InvalidInput']);
      assert.match(error.message, /^99:/);
      return true;
    });
    assert.deepEqual(await rowsOf(table), []);
    const answer = await table.submitTransaction(creates.slice(1));
    assert.equal(answer.subResponses.length, 100);
    assert.equal((await rowsOf(table)).length, 100);
  });

  test('a failed operation rolls back the transaction and is reported by its index', async () => {
    const table = await created();
    await table.createEntity(entity('there'));
    const cases = [
      [['create', entity('there')], 409, 'EntityAlreadyExists'],
      [['update', entity('absent')], 404, 'ResourceNotFound'],
      [['delete', entity('absent')], 404, 'ResourceNotFound'],
      [['upsert', entity('a')], 400, 'InvalidDuplicateRow'],
      [['create', entity('b', { text: 'x'.repeat(32769) })], 400, 'PropertyValueTooLarge'],
      [['update', entity('there'), 'Merge', { etag: 'W/"datetime\'2001-01-01T00%3A00%3A00Z\'"' }],
        412, 'UpdateConditionNotSatisfied'],
    ];
    for (const [operation, status, code] of cases) {
      const actions = [['create', entity('a')], operation];
      await assert.rejects(table.submitTransaction(actions), (error) => {
        assert.deepEqual([error.statusCode, error.code], [status, code], error.message);
        assert.match(error.message, /^1:/);
        return true;
      });
      assert.deepEqual(await rowsOf(table), ['there']);
    }
  });

  test('two partitions are not one transaction for the client', async () => {
    const table = await created();
    const actions = [['create', entity('a')], ['create', { partitionKey: 'q', rowKey: 'a' }]];
    await assert.rejects(table.submitTransaction(actions), /same partitionKey/);
  });

  test('a transaction on a missing table is not found', async () => {
    const table = new TableClient(world.table, world.name(), credential, options);
    await rejected(table.submitTransaction([['create', entity('a')]]), 404, 'TableNotFound');
  });
});

describe('queries', () => {
  let table;
  before(async () => {
    table = await created();
    for (const partitionKey of ['a', 'b']) {
      for (let begin = 0; begin < 600; begin += 100) {
        const actions = Array.from({ length: 100 }, (_, n) => [
          'create', { partitionKey, rowKey: `${1000 + begin + n}`, n: begin + n, s: 'text' },
        ]);
        await table.submitTransaction(actions);
      }
    }
  });

  test('pages follow each other without gap or repetition', async () => {
    const pages = await paged(table.listEntities(), { maxPageSize: 500 });
    assert.deepEqual(pages.map((page) => page.length), [500, 500, 200]);
    const found = pages.flat().map((one) => one.partitionKey + one.rowKey);
    assert.deepEqual(found, [...new Set(found)].sort());
    const whole = await paged(table.listEntities());
    assert.deepEqual(whole.map((page) => page.length), [1000, 200]);
  });

  test('a query continues from a token', async () => {
    const query = { queryOptions: { filter: odata`PartitionKey eq ${'b'}` } };
    const first = await table.listEntities(query).byPage({ maxPageSize: 5 }).next();
    const { continuationToken } = first.value;
    await table.deleteEntity('b', '1005');
    const settings = { maxPageSize: 5, continuationToken };
    const second = await table.listEntities(query).byPage(settings).next();
    assert.equal(second.value[0].rowKey, '1006');
  });

  test('a filter compares each type', async () => {
    const more = await created();
    await more.createEntity(entity('1', { n: 1, s: "it's", b: true, d: 0.5, big: 2n ** 40n }));
    await more.createEntity(entity('2', { n: 2, s: '', when: new Date('2026-11-21T12:00:00Z') }));
    const cases = [
      [odata`n eq ${1}`, ['1']],
      [odata`s eq ${"it's"}`, ['1']],
      [odata`b eq ${true}`, ['1']],
      [odata`d lt ${0.6}`, ['1']],
      // The client writes a large number without the suffix that the filter requires.
      [`big eq ${2n ** 40n}L`, ['1']],
      [odata`when eq ${new Date('2026-11-21T12:00:00Z')}`, ['2']],
      [odata`not (n eq ${1})`, ['2']],
      ["s ne ''", ['1']],
    ];
    for (const [filter, found] of cases) {
      const rows = await listed(more.listEntities({ queryOptions: { filter } }));
      assert.deepEqual(rows.map((row) => row.rowKey), found, filter);
    }
    const wrong = more.listEntities({ queryOptions: { filter: 'n add 1 eq 2' } });
    await rejected(listed(wrong), 400, 'InvalidInput');
  });

  test('a projection returns the selected properties', async () => {
    const select = ['n', 'absent'];
    const got = await table.getEntity('a', '1001', { queryOptions: { select } });
    assert.equal(got.n, 1);
    assert.equal(got.s, undefined);
    assert.equal(got.partitionKey, undefined);
    assert.equal(got.absent, null);
    assert.ok(got.etag);
  });
});
