'use strict';
// Access to queues and the service as a whole, through @azure/storage-queue.

const assert = require('node:assert/strict');
const { describe } = require('node:test');
const {
  AccountSASPermissions, AnonymousCredential, QueueClient, QueueSASPermissions, QueueServiceClient,
  StorageSharedKeyCredential, newPipeline,
} = require('@azure/storage-queue');
const { ACCOUNT, KEY, listed, rejected, suite, test } = require('./target');

const world = suite();
const once = { retryOptions: { maxTries: 1 } };
const pipeline = newPipeline(new StorageSharedKeyCredential(ACCOUNT, KEY), once);
const unsigned = newPipeline(new AnonymousCredential(), once);
const hour = 3600_000;
const later = (by = hour) => new Date(Date.now() + by);
const MISMATCH = 'AuthorizationPermissionMismatch';
// A client that mints signatures needs its credential, not only a pipeline.
const serviceOf = () => {
  return new QueueServiceClient(world.queue, new StorageSharedKeyCredential(ACCOUNT, KEY), once);
};

/** The client of a queue with one message. */
async function filled() {
  const queue = serviceOf().getQueueClient(world.name());
  await queue.create();
  await queue.sendMessage('x');
  return queue;
}

/** A client that has only a signature for `queue`. */
function signedBy(queue, permissions, values = {}) {
  const url = queue.generateSasUrl({
    permissions: permissions && QueueSASPermissions.parse(permissions),
    expiresOn: permissions && later(),
    ...values,
  });
  return new QueueClient(url, unsigned);
}

describe('signatures', () => {
  test('a queue SAS permits its operations and no others', async () => {
    const queue = await filled();
    const worker = signedBy(queue, 'pu');
    await rejected(worker.peekMessages(), 403, MISMATCH);
    await rejected(worker.sendMessage('y'), 403, MISMATCH);
    const { receivedMessageItems: [got] } = await worker.receiveMessages();
    const { popReceipt } = await worker.updateMessage(got.messageId, got.popReceipt, 'y', 10);
    await worker.deleteMessage(got.messageId, popReceipt);
    await signedBy(queue, 'a').sendMessage('z');
    assert.equal((await signedBy(queue, 'r').peekMessages()).peekedMessageItems.length, 1);
    await rejected(signedBy(queue, 'raup').getAccessPolicy(), 403, 'AuthorizationFailure');
  });

  test('a SAS is limited by time, addresses and protocol', async () => {
    const queue = await filled();
    const cases = [
      [{ expiresOn: later(-hour) }, 'AuthenticationFailed'],
      [{ startsOn: later(), expiresOn: later(2 * hour) }, 'AuthenticationFailed'],
      [{ ipRange: { start: '10.0.0.1' } }, 'AuthorizationSourceIPMismatch'],
      [{ protocol: 'https' }, 'AuthorizationProtocolMismatch'],
    ];
    for (const [limits, code] of cases) {
      await rejected(signedBy(queue, 'r', limits).peekMessages(), 403, code);
    }
    await signedBy(queue, 'r', { ipRange: { start: '127.0.0.0', end: '127.0.0.9' } }).peekMessages();
  });

  test('a stored policy grants and revokes access, and survives a round trip', async () => {
    const queue = await filled();
    const startsOn = new Date('2026-01-02T03:04:05Z');
    const accessPolicy = { startsOn, expiresOn: later(), permissions: 'rp' };
    await queue.setAccessPolicy([{ id: 'worker', accessPolicy }]);
    const { signedIdentifiers: [kept] } = await queue.getAccessPolicy();
    assert.deepEqual([kept.id, kept.accessPolicy.permissions], ['worker', 'rp']);
    assert.deepEqual(kept.accessPolicy.startsOn, startsOn);
    const worker = signedBy(queue, undefined, { identifier: 'worker' });
    assert.equal((await worker.peekMessages()).peekedMessageItems.length, 1);
    await rejected(worker.sendMessage('y'), 403, MISMATCH);
    await queue.setAccessPolicy([]);
    await rejected(worker.peekMessages(), 403, 'AuthenticationFailed');
  });

  test('an account SAS permits exactly its grant', async () => {
    const [service, name] = [serviceOf(), world.name()];
    const of = (permissions, types) => {
      const parsed = AccountSASPermissions.parse(permissions);
      return new QueueServiceClient(
        service.generateAccountSasUrl(later(), parsed, types), unsigned,
      );
    };
    const all = of('rwdlacup', 'sco');
    await all.createQueue(name);
    assert.ok((await listed(all.listQueues())).some((queue) => queue.name === name));
    await all.getQueueClient(name).sendMessage('x');
    const reader = of('r', 'o').getQueueClient(name);
    assert.equal((await reader.peekMessages()).peekedMessageItems.length, 1);
    await rejected(reader.sendMessage('y'), 403, MISMATCH);
    await rejected(reader.getProperties(), 403, 'AuthorizationResourceTypeMismatch');
    await of('d', 'o').getQueueClient(name).clearMessages();
    const elsewhere = service.generateAccountSasUrl(
      later(), AccountSASPermissions.parse('r'), 'o', { ipRange: { start: '10.0.0.1' } },
    );
    await rejected(
      new QueueServiceClient(elsewhere, unsigned).getQueueClient(name).peekMessages(),
      403, 'AuthorizationSourceIPMismatch',
    );
    await all.deleteQueue(name);
  });

  test('a connection string with a signature is enough', async () => {
    const queue = await filled();
    const permissions = AccountSASPermissions.parse('r');
    const url = serviceOf().generateAccountSasUrl(later(), permissions, 'o');
    const string = `QueueEndpoint=${world.queue};SharedAccessSignature=${url.split('?')[1]}`;
    const reader = QueueServiceClient.fromConnectionString(string, once);
    const signed = reader.getQueueClient(queue.name);
    assert.equal((await signed.peekMessages()).peekedMessageItems.length, 1);
    await rejected(signed.clearMessages(), 403, MISMATCH);
  });

  test('a wrong key is rejected', async () => {
    const key = Buffer.from('wrong').toString('base64');
    const wrong = new StorageSharedKeyCredential(ACCOUNT, key);
    const queue = new QueueClient(`${world.queue}/abc`, newPipeline(wrong, once));
    await rejected(queue.peekMessages(), 403, 'AuthenticationFailed');
  });
});

describe('the service', () => {
  test('properties survive a round trip', async () => {
    const service = new QueueServiceClient(world.queue, pipeline);
    const retentionPolicy = { enabled: true, days: 7 };
    const cors = [{
      allowedOrigins: 'http://a.example', allowedMethods: 'GET,PUT', allowedHeaders: 'x-ms-*',
      exposedHeaders: '*', maxAgeInSeconds: 60,
    }];
    const before = await service.getProperties();
    await service.setProperties({
      queueAnalyticsLogging: {
        version: '1.0', read: true, write: false, deleteProperty: false, retentionPolicy,
      },
      hourMetrics: { version: '1.0', enabled: true, includeAPIs: false, retentionPolicy },
      cors,
    });
    const got = await service.getProperties();
    assert.deepEqual(got.cors.map((rule) => ({ ...rule })), cors);
    assert.equal(got.queueAnalyticsLogging.retentionPolicy.days, 7);
    assert.equal(got.hourMetrics.enabled, true);
    assert.equal(got.minuteMetrics.enabled, before.minuteMetrics.enabled);
    await service.setProperties({ cors: [] });
    assert.deepEqual((await service.getProperties()).cors ?? [], []);
  });

  test('statistics are at the secondary', async () => {
    const secondary = new QueueServiceClient(`${world.queue}-secondary`, pipeline);
    const { _response: answer } = await secondary.getStatistics();
    // The client itself looks for an element that no service sends, and finds nothing.
    assert.equal(answer.status, 200);
    assert.match(answer.bodyAsText, /<GeoReplication><Status>live<.Status><LastSyncTime>\w/);
  });
});
