'use strict';
// Tables and queues through azure-storage, the client before the ones of today: it is not made any
// more, and programs and tools still have it. It uses an older version of the protocol.

const assert = require('node:assert/strict');
const { describe } = require('node:test');
const { promisify } = require('node:util');
const azure = require('azure-storage');
const { ACCOUNT, KEY, suite, test } = require('./target');

const world = suite();
const { entityGenerator: make } = azure.TableUtilities;
const HOUR = 3600_000;
const LEVELS = ['nometadata', 'minimalmetadata', 'fullmetadata'];

/** A client whose methods give promises of what they give a callback. */
function promising(client) {
  return new Proxy(client, {
    get(target, name) {
      const value = target[name];
      if (typeof value !== 'function' || /^generate/.test(name)) return value;
      return promisify(value.bind(target));
    },
  });
}
const tables = () => promising(azure.createTableService(world.connectionString));
const queues = () => promising(azure.createQueueService(world.connectionString));
const plain = (entity) => Object.fromEntries(
  Object.entries(entity).filter(([name]) => name !== '.metadata').map(([name, { _ }]) => [name, _]),
);
const rejected = (call, status, code) => assert.rejects(call, (error) => {
  assert.deepEqual([error.statusCode, error.code], [status, code], error.message);
  return true;
});
const entity = (row, more = {}) => ({
  PartitionKey: make.String('p'), RowKey: make.String(row), ...more,
});

/** The client of tables, and the name of an empty one. */
async function created() {
  const [service, name] = [tables(), world.name()];
  await service.createTable(name);
  return [service, name];
}

describe('tables', () => {
  test('a table is created, found, listed and deleted', async () => {
    const [service, name] = [tables(), world.name()];
    assert.equal((await service.createTableIfNotExists(name)).created, true);
    assert.equal((await service.createTableIfNotExists(name)).created, false);
    assert.equal((await service.doesTableExist(name)).exists, true);
    const { entries } = await service.listTablesSegmentedWithPrefix(name, null);
    assert.deepEqual(entries, [name]);
    await service.deleteTable(name);
    assert.equal((await service.doesTableExist(name)).exists, false);
    await rejected(service.deleteTable(name), 404, 'ResourceNotFound');
  });

  test('deleting what does not exist is not found, and everything is listed', async () => {
    const [service, name] = await created();
    const names = [];
    let token = null;
    do {
      const page = await service.listTablesSegmented(token, { maxResults: 1 });
      names.push(...page.entries);
      token = page.continuationToken;
    } while (token);
    assert.ok(names.includes(name), names.join());
    assert.equal(await service.deleteTableIfExists(name), true);
    assert.equal(await service.deleteTableIfExists(name), false);
  });

  test('an entity supports every operation', async () => {
    const [service, name] = await created();
    await service.insertEntity(name, entity('r', { x: make.Int32(1), y: make.Int32(1) }));
    await rejected(service.insertEntity(name, entity('r')), 409, 'EntityAlreadyExists');
    await service.mergeEntity(name, entity('r', { x: make.Int32(2) }));
    const merged = await service.retrieveEntity(name, 'p', 'r');
    assert.deepEqual([merged.x._, merged.y._], [2, 1]);
    const stale = { '.metadata': { etag: 'W/"datetime\'2001-01-01T00%3A00%3A00Z\'"' } };
    const changed = entity('r', { x: make.Int32(3), ...stale });
    await rejected(service.replaceEntity(name, changed), 412, 'UpdateConditionNotSatisfied');
    await service.replaceEntity(name, entity('r', { x: make.Int32(3) }));
    await service.insertOrMergeEntity(name, entity('r', { z: make.Int32(4) }));
    const got = await service.retrieveEntity(name, 'p', 'r');
    assert.deepEqual([got.x._, got.y, got.z._], [3, undefined, 4]);
    await service.insertOrReplaceEntity(name, entity('r'));
    await service.deleteEntity(name, entity('r'));
    await rejected(service.retrieveEntity(name, 'p', 'r'), 404, 'ResourceNotFound');
  });

  for (const level of LEVELS) {
    test(`every type survives a round trip with ${level}`, async () => {
      const [service, name] = await created();
      const when = new Date('2026-11-21T12:00:00.123Z');
      const id = 'c9da6455-213d-42c9-9a79-3e9149a57833';
      await service.insertEntity(name, entity('r', {
        text: make.String("it's ä \u{1F600}"), small: make.Int32(-7), ratio: make.Double(0.5),
        large: make.Int64('9223372036854775807'), yes: make.Boolean(true), id: make.Guid(id),
        bytes: make.Binary(Buffer.from([0, 254])), when: make.DateTime(when),
      }));
      const payloadFormat = `application/json;odata=${level}`;
      const got = plain(await service.retrieveEntity(name, 'p', 'r', { payloadFormat }));
      assert.deepEqual([got.text, got.small, got.ratio], ["it's ä \u{1F600}", -7, 0.5]);
      assert.deepEqual([got.large, got.yes, got.id], ['9223372036854775807', true, id]);
      const bare = level === 'nometadata';
      assert.deepEqual(got.bytes, bare ? 'AP4=' : Buffer.from([0, 254]));
      assert.deepEqual(got.when, bare ? when.toJSON() : when);
    });
  }

  test('a query has a filter, a projection and pages', async () => {
    const [service, name] = await created();
    for (let n = 0; n < 5; n += 1) {
      await service.insertEntity(name, entity(`${n}`, { n: make.Int32(n) }));
    }
    const query = new azure.TableQuery().select(['n', 'absent']).top(2).where('n ge ?', 1);
    const found = [];
    let token = null;
    do {
      const page = await service.queryEntities(name, query, token);
      found.push(...page.entries.map((one) => one.n._));
      token = page.continuationToken;
    } while (token);
    assert.deepEqual(found, [1, 2, 3, 4]);
  });

  test('a transaction is all or nothing', async () => {
    const [service, name] = await created();
    await service.insertEntity(name, entity('old'));
    const batch = new azure.TableBatch();
    batch.insertEntity(entity('new', { x: make.Int32(1) }), { echoContent: true });
    batch.insertOrMergeEntity(entity('other'));
    batch.mergeEntity(entity('old', { x: make.Int32(1) }));
    const done = await service.executeBatch(name, batch);
    assert.deepEqual(done.map((one) => one.response.statusCode), [201, 204, 204]);
    const failing = new azure.TableBatch();
    failing.insertEntity(entity('a'));
    failing.insertEntity(entity('old'));
    await assert.rejects(service.executeBatch(name, failing), (error) => {
      assert.deepEqual([error.statusCode, error.code], [409, 'EntityAlreadyExists']);
      assert.match(error.message, /^1:/);
      return true;
    });
    await rejected(service.retrieveEntity(name, 'p', 'a'), 404, 'ResourceNotFound');
    const read = new azure.TableBatch();
    read.retrieveEntity('p', 'new');
    const [answer] = await service.executeBatch(name, read);
    assert.equal(answer.entity.x._, 1);
  });

  test('SAS and stored policies apply', async () => {
    const [service, name] = await created();
    await service.insertEntity(name, entity('r'));
    const AccessPolicy = { Permissions: 'r', Expiry: new Date(Date.now() + HOUR) };
    const signed = (values) => promising(azure.createTableServiceWithSas(
      world.table, service.generateSharedAccessSignature(name, values),
    ));
    assert.ok(await signed({ AccessPolicy }).retrieveEntity(name, 'p', 'r'));
    const code = 'AuthorizationPermissionMismatch';
    await rejected(signed({ AccessPolicy }).deleteEntity(name, entity('r')), 403, code);
    await service.setTableAcl(name, { reader: AccessPolicy });
    const { signedIdentifiers } = await service.getTableAcl(name);
    assert.equal(signedIdentifiers.reader.Permissions, 'r');
    assert.ok(await signed({ Id: 'reader' }).retrieveEntity(name, 'p', 'r'));
    await service.setTableAcl(name, {});
    const revoked = signed({ Id: 'reader' }).retrieveEntity(name, 'p', 'r');
    await rejected(revoked, 403, 'AuthenticationFailed');
  });
});

describe('queues', () => {
  test('a message is sent, peeked, received, changed and deleted', async () => {
    const [service, name] = [queues(), world.name()];
    assert.equal((await service.createQueueIfNotExists(name)).created, true);
    assert.equal((await service.createQueueIfNotExists(name)).created, false);
    await service.createMessage(name, 'häl\nlo <b>');
    assert.equal((await service.peekMessage(name)).messageText, 'häl\nlo <b>');
    const got = await service.getMessage(name);
    const text = { messageText: 'new' };
    const changed = await service.updateMessage(name, got.messageId, got.popReceipt, 0, text);
    const late = service.deleteMessage(name, got.messageId, got.popReceipt);
    await rejected(late, 404, 'MessageNotFound');
    assert.notEqual(changed.popReceipt, got.popReceipt);
    const again = await service.getMessage(name);
    assert.deepEqual([again.messageText, again.dequeueCount], ['new', 2]);
    await service.deleteMessage(name, again.messageId, again.popReceipt);
    assert.equal((await service.getQueueMetadata(name)).approximateMessageCount, 0);
    await service.clearMessages(name);
    await service.setQueueMetadata(name, { owner: 'me' });
    const { entries } = await service.listQueuesSegmentedWithPrefix(
      name, null, { include: 'metadata' },
    );
    assert.deepEqual(entries.map((one) => [one.name, one.metadata.owner]), [[name, 'me']]);
    await service.deleteQueue(name);
    await rejected(service.getMessage(name), 404, 'QueueNotFound');
  });

  test('deleting what does not exist is not found, and everything is listed', async () => {
    const [service, name] = [queues(), world.name()];
    assert.equal((await service.doesQueueExist(name)).exists, false);
    await service.createQueue(name);
    assert.equal((await service.doesQueueExist(name)).exists, true);
    const names = [];
    let token = null;
    do {
      const page = await service.listQueuesSegmented(token, { maxResults: 1 });
      names.push(...page.entries.map((one) => one.name));
      token = page.continuationToken;
    } while (token);
    assert.ok(names.includes(name), names.join());
    assert.equal(await service.deleteQueueIfExists(name), true);
    assert.equal(await service.deleteQueueIfExists(name), false);
  });

  test('several messages are received, and SAS with a stored policy apply', async () => {
    const [service, name] = [queues(), world.name()];
    await service.createQueue(name);
    for (const text of ['one', 'two']) await service.createMessage(name, text);
    const policy = { readers: {
      Permissions: 'r', Start: new Date(Date.now() - HOUR), Expiry: new Date(Date.now() + HOUR),
    } };
    await service.setQueueAcl(name, policy);
    assert.equal((await service.getQueueAcl(name)).signedIdentifiers.readers.Permissions, 'r');
    const sas = service.generateSharedAccessSignature(name, { Id: 'readers' });
    const host = world.queue;
    const reader = promising(azure.createQueueServiceWithSas(host, sas));
    const peeked = await reader.peekMessages(name, { numOfMessages: 32 });
    assert.deepEqual(peeked.map((message) => message.messageText), ['one', 'two']);
    await rejected(reader.createMessage(name, 'x'), 403, 'AuthorizationPermissionMismatch');
    const got = await service.getMessages(name, { numOfMessages: 32 });
    assert.deepEqual(got.map((message) => message.messageText), ['one', 'two']);
    await service.setQueueAcl(name, {});
    await rejected(reader.peekMessages(name), 403, 'AuthenticationFailed');
  });

  test('statistics of both services are at the secondary', async () => {
    const both = (host) => ({ primaryHost: host, secondaryHost: `${host}-secondary` });
    const locationMode = azure.StorageUtilities.LocationMode.SECONDARY_ONLY;
    for (const service of [
      promising(azure.createTableService(ACCOUNT, KEY, both(world.table))),
      promising(azure.createQueueService(ACCOUNT, KEY, both(world.queue))),
    ]) {
      const stats = await service.getServiceStats({ locationMode });
      assert.equal(stats.GeoReplication.Status, 'live');
      assert.ok(Math.abs(new Date(stats.GeoReplication.LastSyncTime) - Date.now()) < HOUR);
    }
  });

  test('properties of both services survive a round trip', async () => {
    for (const service of [tables(), queues()]) {
      const properties = await service.getServiceProperties();
      properties.Cors = { CorsRule: [{
        AllowedOrigins: ['http://a.example'], AllowedMethods: ['GET'], AllowedHeaders: [],
        ExposedHeaders: [], MaxAgeInSeconds: 5,
      }] };
      await service.setServiceProperties(properties);
      const got = await service.getServiceProperties();
      assert.deepEqual(got.Cors.CorsRule[0].AllowedOrigins, ['http://a.example']);
    }
  });
});
