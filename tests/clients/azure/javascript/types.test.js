'use strict';
// Types of properties at each level of metadata, through @azure/data-tables.

const assert = require('node:assert/strict');
const { describe } = require('node:test');
const { AzureNamedKeyCredential, TableClient } = require('@azure/data-tables');
const { ACCOUNT, KEY, listed, suite, test } = require('./target');

const world = suite();
const keys = { partitionKey: 'p', rowKey: 'r' };
const LARGEST = '9223372036854775807';
const TIME = '2026-11-21T12:00:00.123Z';
const ID = 'c9da6455-213d-42c9-9a79-3e9149a57833';
const EVERY_TYPE = {
  text: 'a\r\nb \u{1F600} ä',
  empty: '',
  small: -7,
  ratio: 0.5,
  whole: { type: 'Double', value: 3 },
  huge: 1.7976931348623157e308,
  nan: { type: 'Double', value: 'NaN' },
  below: { type: 'Double', value: '-Infinity' },
  yes: true,
  no: false,
  bytes: new Uint8Array([0, 1, 254, 255]),
  large: BigInt(LARGEST),
  lowest: -(2n ** 63n),
  when: new Date(TIME),
  exact: { type: 'DateTime', value: '1601-01-01T00:00:00.0000001Z' },
  id: { type: 'Guid', value: ID },
};
// What annotates a property, from the level on at which it does.
const ANNOTATED = ['nan', 'below', 'bytes', 'large', 'lowest', 'when', 'exact', 'id'];

/** The client of a table with an entity of every type, at a level of metadata. */
async function filledAt(level) {
  const answers = [];
  const policy = {
    name: 'level',
    async sendRequest(request, next) {
      request.headers.set('accept', `application/json;odata=${level}`);
      const answer = await next(request);
      answers.push(answer);
      return answer;
    },
  };
  const options = {
    allowInsecureConnection: true,
    retryOptions: { maxRetries: 0 },
    additionalPolicies: [{ policy, position: 'perCall' }],
  };
  const credential = new AzureNamedKeyCredential(ACCOUNT, KEY);
  const table = new TableClient(world.table, world.name(), credential, options);
  await table.createTable();
  await table.createEntity({ ...keys, ...EVERY_TYPE });
  return { table, last: () => answers.at(-1) };
}

/** Checks the values that the client makes of the types that it receives. */
function isTyped(got) {
  for (const name of ['text', 'empty', 'small', 'ratio', 'huge', 'yes', 'no', 'large', 'lowest']) {
    assert.deepEqual(got[name], EVERY_TYPE[name], name);
  }
  assert.deepEqual(got.when, EVERY_TYPE.when);
  assert.deepEqual([...got.bytes], [...EVERY_TYPE.bytes]);
  assert.equal(got.id.value ?? got.id, ID);
  assert.equal(got.whole, 3);
}

describe('types', () => {
  for (const level of ['minimalmetadata', 'fullmetadata']) {
    test(`every type survives a round trip with ${level}`, async () => {
      const { table } = await filledAt(level);
      isTyped(await table.getEntity('p', 'r'));
      isTyped((await listed(table.listEntities()))[0]);
      const typed = await table.getEntity('p', 'r', { disableTypeConversion: true });
      assert.deepEqual(typed.large, { type: 'Int64', value: LARGEST });
      assert.deepEqual(typed.exact, EVERY_TYPE.exact);
      assert.deepEqual(typed.below, EVERY_TYPE.below);
      assert.deepEqual(typed.nan, EVERY_TYPE.nan);
      assert.deepEqual(typed.id, EVERY_TYPE.id);
    });
  }

  test('every type has its JSON form with nometadata', async () => {
    const { table } = await filledAt('nometadata');
    for (const got of [await table.getEntity('p', 'r'), (await listed(table.listEntities()))[0]]) {
      for (const name of ['text', 'empty', 'small', 'ratio', 'huge', 'yes', 'no']) {
        assert.deepEqual(got[name], EVERY_TYPE[name], name);
      }
      assert.deepEqual([got.large, got.lowest], [LARGEST, '-9223372036854775808']);
      assert.deepEqual([got.when, got.exact], [TIME, EVERY_TYPE.exact.value]);
      assert.deepEqual([got.id, got.bytes], [ID, 'AAH+/w==']);
      assert.deepEqual([got.nan, got.below, got.whole], ['NaN', '-Infinity', 3]);
    }
  });

  for (const level of ['nometadata', 'minimalmetadata', 'fullmetadata']) {
    test(`the annotations are those of ${level}`, async () => {
      const { table, last } = await filledAt(level);
      await table.getEntity('p', 'r');
      const expected = ['PartitionKey', 'RowKey', 'Timestamp', ...Object.keys(EVERY_TYPE)];
      if (level !== 'nometadata') {
        expected.push('odata.metadata', 'odata.etag', ...ANNOTATED.map((name) => `${name}@odata.type`));
      }
      if (level === 'fullmetadata') {
        expected.push('odata.type', 'odata.id', 'odata.editLink', 'Timestamp@odata.type');
      }
      const text = last().bodyAsText;
      assert.deepEqual(Object.keys(JSON.parse(text)).sort(), expected.sort());
      // A whole number that is a double is recognised by its point alone.
      assert.match(text, /"whole":3\.0[,}]/);
      const type = last().headers.get('content-type').replaceAll(' ', '');
      assert.equal(type, `application/json;odata=${level};streaming=true;charset=utf-8`);
    });
  }
});
