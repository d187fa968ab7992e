'use strict';
// Batches of deletes and of tiers, through @azure/storage-blob.

const assert = require('node:assert/strict');
const {
  BlobBatchClient, ContainerClient, ContainerSASPermissions,
} = require('@azure/storage-blob');
const { clientsOf, credential, once, unsigned } = require('./blob_clients');
const { listed, rejected, suite, test } = require('./target');

const world = suite();
const clients = clientsOf(world);
const HOUR = 3600_000;
const MOST_REQUESTS = 256;

/** The clients of a container and of small blobs in it. */
async function filled(count) {
  const container = await clients.container();
  const names = [...Array(count).keys()].map((n) => `b ${`${n}`.padStart(3, '0')}`);
  const blobs = names.map((name) => container.getBlockBlobClient(name));
  for (const blob of blobs) await blob.upload('x', 1);
  return [container, blobs];
}
const left = async (container) => (await listed(container.listBlobsFlat())).length;
const outcomes = (answer) => answer.subResponses.map((one) => [one.status, one.errorCode]);

test('blobs of several containers are deleted in a batch of the service', async () => {
  const [[one, first], [two, second]] = [await filled(2), await filled(1)];
  const batch = clients.service().getBlobBatchClient();
  const answer = await batch.deleteBlobs([...first, ...second]);
  assert.deepEqual([answer.subResponsesSucceededCount, answer.subResponsesFailedCount], [3, 0]);
  assert.deepEqual(outcomes(answer), Array(3).fill([202, undefined]));
  assert.equal(await left(one) + await left(two), 0);
});

test('a request of a batch that fails does not fail the others', async () => {
  const [container, blobs] = await filled(3);
  await blobs[1].delete();
  const answer = await container.getBlobBatchClient().deleteBlobs(blobs);
  assert.deepEqual(outcomes(answer), [[202, undefined], [404, 'BlobNotFound'], [202, undefined]]);
  assert.deepEqual([answer.subResponsesSucceededCount, answer.subResponsesFailedCount], [2, 1]);
  assert.equal(await left(container), 0);
});

test('a batch has as many requests as the protocol permits', async () => {
  const [container, blobs] = await filled(MOST_REQUESTS);
  const urls = blobs.map((blob) => blob.url);
  const answer = await container.getBlobBatchClient().deleteBlobs(urls, credential);
  assert.equal(answer.subResponsesSucceededCount, MOST_REQUESTS);
  assert.equal(await left(container), 0);
});

test('the tiers of blobs are set in a batch', async () => {
  const [container, blobs] = await filled(2);
  const batch = container.getBlobBatchClient();
  const answer = await batch.setBlobsAccessTier(blobs, 'Cool');
  assert.deepEqual(outcomes(answer), [[200, undefined], [200, undefined]]);
  for (const blob of blobs) assert.equal((await blob.getProperties()).accessTier, 'Cool');
  await batch.setBlobsAccessTier([blobs[0].url], credential, 'Cold');
  assert.equal((await blobs[0].getProperties()).accessTier, 'Cold');
});

test('each request of a batch has its own options', async () => {
  const [container, [snapped, leased, plain]] = await filled(3);
  await snapped.createSnapshot();
  const { leaseId } = await leased.getBlobLeaseClient().acquireLease(60);
  const batchClient = new BlobBatchClient(world.blob, credential, once);
  const batch = batchClient.createBatch();
  await batch.deleteBlob(snapped);
  await batch.deleteBlob(leased);
  await batch.deleteBlob(plain.url, credential, { conditions: { ifMatch: '"0x0"' } });
  assert.deepEqual(outcomes(await batchClient.submitBatch(batch)),
    [[409, 'SnapshotsPresent'], [412, 'LeaseIdMissing'], [412, 'ConditionNotMet']]);
  const second = batchClient.createBatch();
  await second.deleteBlob(snapped, { deleteSnapshots: 'include' });
  await second.deleteBlob(leased, { conditions: { leaseId } });
  await second.deleteBlob(plain);
  assert.equal((await batchClient.submitBatch(second)).subResponsesSucceededCount, 3);
  assert.equal(await left(container), 0);
  const tiers = batchClient.createBatch();
  await tiers.setBlobAccessTier(plain, 'Cool');
  assert.deepEqual(outcomes(await batchClient.submitBatch(tiers)), [[404, 'BlobNotFound']]);
});

test('a batch needs the permission of each of its requests', async () => {
  const [[container, blobs], [other, [foreign]]] = [await filled(2), await filled(1)];
  const signed = async (permissions) => new ContainerClient(await container.generateSasUrl({
    permissions: ContainerSASPermissions.parse(permissions), expiresOn: new Date(Date.now() + HOUR),
  }), unsigned);
  const [reader, deleter] = [await signed('r'), await signed('d')];
  const batch = deleter.getBlobBatchClient();
  const of = (client, names) => names.map((name) => client.getBlobClient(name));
  const names = blobs.map((blob) => blob.name);
  const answer = await batch.deleteBlobs([of(reader, names)[0], of(deleter, names)[1]]);
  assert.deepEqual(outcomes(answer), [[403, 'AuthorizationPermissionMismatch'], [202, undefined]]);
  assert.equal(await left(container), 1);
  // A batch of a container is for its blobs only.
  await rejected(batch.deleteBlobs([foreign]), 400, 'InvalidInput');
  assert.equal(await left(other), 1);
  const anonymous = new ContainerClient(container.url, unsigned).getBlobBatchClient();
  await rejected(anonymous.deleteBlobs([blobs[0]]), 401, 'NoAuthenticationInformation');
  assert.equal(await left(container), 1);
});
