'use strict';
// Pages of two sites call one server: the one that a rule names, and another.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { start, temporaryDirectory } = require('../clients/javascript/server');
const { launch, open } = require('./browser');
const { call } = require('./contract');
const { site } = require('./site');

/** How long a change of the rules may take, with room for a busy machine. */
const APPLIED_MS = 30_000;
const FORMATS = ['binary', 'text'];
const NOT_FOUND = 5;
const INVALID_ARGUMENT = 3;
/** The error of the library where the browser shows it no answer at all. */
const NO_ANSWER = 'Http response at 400 or 500 level, http status code: 0';
/** What the library sends, what tests send, and nothing else. */
const HEADERS = ['content-type', 'x-grpc-web', 'x-user-agent', 'authorization', 'grpc-timeout'];

const UNAUTHENTICATED = 16;
/** The credentials of an account of its own. */
const KEY = Buffer.from('the key of an account of a test!').toString('base64');
const basic = (key) => `Basic ${Buffer.from(`pages:${key}`).toString('base64')}`;
const SIGNED = { authorization: basic(KEY) };

const world = {};
const data = temporaryDirectory();

before(async () => {
  world.server = await start(data.directory, {
    TRESTLE__ACCOUNTS__PAGES__KEY1: KEY,
    // Beside an account the development account is on only where it is set.
    TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT: 'loopback',
  });
  world.sites = [await site(), await site()];
  world.browser = await launch();
  const pages = world.sites.map(({ origin }) => open(world.browser, origin));
  [world.friend, world.stranger] = (await Promise.all(pages)).map((page) => ({
    ...page,
    call: (format, name, request, metadata) =>
      page.call({ address: world.server.grpc, format, name, request, metadata }),
  }));
});

after(async () => {
  await world.browser?.close();
  world.sites?.forEach((each) => each.close());
  const code = await world.server?.terminate();
  data.remove();
  assert.equal(code, 0, 'the server drains and ends with code 0');
});

/** A call of this process, which no rule binds. */
const own = (method, request, headers) => call(world.server.grpc, method, request, headers);

/** Lets the pages of the first site call, into the account of the credentials in `headers`. */
async function allow(rule, headers) {
  const defaults = {
    allowed_origins: [world.sites[0].origin],
    allowed_methods: ['POST'],
    allowed_headers: HEADERS,
    exposed_headers: ['x-request-id'],
    max_age: { seconds: 0 },
  };
  const rules = rule ? [{ ...defaults, ...rule }] : [];
  await own('SetServiceProperties', { properties: { cors: { rules } } }, headers);
}

/** Repeats a call until `accept` accepts the outcome. */
async function until(accept, calling) {
  const end = Date.now() + APPLIED_MS;
  for (;;) {
    const found = await calling();
    if (accept(found)) return found;
    assert.ok(Date.now() < end, `not in time: ${JSON.stringify(found)}`);
    await sleep(100);
  }
}

/** Calls from a page whose browser must keep the answer from it, or never send the call. */
async function rejected(page, ...call) {
  page.complaints.length = 0;
  const found = await page.call(...call);
  assert.deepEqual([found.messages, found.headers, found.text], [[], {}, NO_ANSWER]);
  await until(
    (complaints) => complaints.some((text) => text.includes('blocked by CORS policy')),
    () => page.complaints,
  );
}

async function tables(headers) {
  const { tables: found } = await own('ListTables', {}, headers);
  return found.map((table) => table.name);
}

describe('without a rule', () => {
  for (const format of FORMATS) {
    test(`a page is rejected and nothing is written, ${format}`, async () => {
      await rejected(world.friend, format, 'CreateTable', { table: { name: 'Never' } });
      assert.deepEqual(await tables(), []);
    });
  }
});

describe('with a rule for one site', () => {
  before(async () => {
    await allow({});
    await until(
      (found) => found.code === 0,
      () => world.friend.call('binary', 'ListTables'),
    );
  });

  for (const format of FORMATS) {
    const table = `Pages${format}`;
    const keys = { partition_key: 'p', row_key: 'r' };
    const entity = { ...keys, properties: { Text: { string_value: 'é😀' } } };

    test(`a page creates, inserts, gets and queries, ${format}`, async () => {
      const created = await world.friend.call(format, 'CreateTable', { table: { name: table } });
      assert.equal(created.code, 0, created.text);
      const inserted = await world.friend.call(format, 'InsertEntity', { table, entity });
      assert.equal(inserted.code, 0, inserted.text);
      const got = await world.friend.call(format, 'GetEntity', { table, ...keys });
      assert.equal(got.code, 0, got.text);
      const found = await world.friend.call(format, 'QueryEntities', { table, filter: "RowKey eq 'r'" });
      assert.equal(found.code, 0, found.text);

      const [{ entity: read }] = got.messages;
      assert.equal(read.properties.Text.string_value, 'é😀');
      assert.equal(read.etag, inserted.messages[0].etag);
      assert.deepEqual(found.messages[0].entities, [read]);
      assert.ok((await tables()).includes(table), 'the table exists for every client');
    });

    test(`a failure arrives with its details, ${format}`, async () => {
      const absent = await world.friend.call(format, 'GetEntity', { table, ...keys, row_key: 'absent' });
      const wrong = await world.friend.call(format, 'CreateTable', { table: { name: '1' } });

      assert.equal(absent.code, NOT_FOUND, absent.text);
      assert.equal(absent.info.reason, 'RESOURCE_NOT_FOUND');
      assert.equal(wrong.code, INVALID_ARGUMENT, wrong.text);
      assert.deepEqual(wrong.types, ['google.rpc.ErrorInfo', 'google.rpc.BadRequest']);
      assert.match(wrong.text, /table/);
    });

    test(`a page reads the headers that the rule names, ${format}`, async () => {
      const { headers } = await world.friend.call(format, 'ListTables');
      assert.match(headers['x-request-id'], /^[0-9a-f-]{36}$/);
    });

    test(`a page of another site is rejected, ${format}`, async () => {
      await rejected(world.stranger, format, 'CreateTable', { table: { name: 'Stranger' } });
      assert.ok(!(await tables()).includes('Stranger'));
    });

    test(`a header that the rule does not name is rejected, ${format}`, async () => {
      await rejected(world.friend, format, 'CreateTable', { table: { name: 'Header' } }, { 'x-other': '1' });
      assert.ok(!(await tables()).includes('Header'));
    });

    test(`the deadline that a page sends holds, ${format}`, async () => {
      const metadata = { 'grpc-timeout': 'soon' };
      const { code, text } = await world.friend.call(format, 'ListTables', {}, metadata);
      assert.equal(code, INVALID_ARGUMENT, text);
      assert.match(text, /grpc-timeout/);
    });
  }

  test('a page reads a stream, as text and as bytes', async () => {
    const table = 'Streamed';
    await own('CreateTable', { table: { name: table } });
    const value = { string_value: 'x'.repeat(1000) };
    for (let batch = 0; batch < 10; batch += 1) {
      const operations = Array.from({ length: 100 }, (_, row) => ({
        insert: {
          entity: {
            partition_key: `p${batch}`,
            row_key: `${row}`.padStart(3, '0'),
            properties: { Text: value },
          },
        },
      }));
      await own('ExecuteBatch', { table, operations });
    }

    const request = { address: world.server.grpc, name: 'StreamEntities', request: { table } };
    const text = await world.friend.call('text', 'StreamEntities', { table });
    const bytes = await world.friend.stream(request);

    assert.equal(text.code, 0);
    assert.match(bytes.trailers, /^grpc-status: ?0\r\n/);
    for (const { messages } of [text, bytes]) {
      assert.ok(messages.length > 1, `${messages.length} messages`);
      const rows = messages.flatMap((message) => message.entities);
      assert.equal(rows.length, 1000);
      assert.equal(messages.at(-1).resume_token, '');
    }
  });

  test('a page is rejected after the rule was deleted', async () => {
    await allow(undefined);
    await until(
      (found) => found.code !== 0,
      () => world.friend.call('binary', 'ListTables'),
    );
    await rejected(world.friend, 'binary', 'ListTables');
  });
});

describe('with credentials', () => {
  before(async () => {
    await allow({}, SIGNED);
    await until(
      (found) => found.code === 0,
      () => world.friend.call('binary', 'ListTables', {}, SIGNED),
    );
  });

  for (const format of FORMATS) {
    test(`a page works in the account of its key, ${format}`, async () => {
      const table = `Signed${format}`;
      const created = await world.friend.call(format, 'CreateTable', { table: { name: table } }, SIGNED);
      assert.equal(created.code, 0, created.text);

      assert.ok((await tables(SIGNED)).includes(table));
      assert.ok(!(await tables()).includes(table), 'not in the account of those without a key');
    });

    test(`a page sees why its key is rejected, ${format}`, async () => {
      const wrong = { authorization: basic(Buffer.alloc(32, 'x').toString('base64')) };
      const found = await world.friend.call(format, 'ListTables', {}, wrong);
      assert.equal(found.code, UNAUTHENTICATED, found.text);
      assert.equal(found.info.reason, 'AUTHENTICATION_FAILED');
    });

    test(`a key does not let a page of another site in, ${format}`, async () => {
      await rejected(world.stranger, format, 'ListTables', {}, SIGNED);
    });

    test(`the rule of one account shows nothing of another, ${format}`, async () => {
      await rejected(world.friend, format, 'ListTables');
    });
  }
});
