'use strict';
// Leases of blobs and containers, through @azure/storage-blob.

const assert = require('node:assert/strict');
const { describe } = require('node:test');
const { clientsOf, textOf } = require('./blob_clients');
const { rejected, suite, test } = require('./target');

const world = suite();
const clients = clientsOf(world);
const [A, B, C] = ['a', 'b', 'c'].map((digit) => '00000000-0000-0000-0000-000000000000'.replaceAll('0', digit));
const MISMATCH = 'LeaseIdMismatchWithLeaseOperation';

describe('leases of blobs', () => {
  test('a lease is acquired, renewed, changed and released', async () => {
    const blob = await clients.blob();
    const { etag } = await blob.getProperties();
    const lease = blob.getBlobLeaseClient(A);
    assert.equal(lease.url, blob.url);
    assert.equal((await lease.acquireLease(60)).leaseId, A);
    const got = await blob.getProperties();
    assert.deepEqual([got.leaseState, got.leaseStatus, got.leaseDuration, got.etag],
      ['leased', 'locked', 'fixed', etag]);
    await rejected(blob.getBlobLeaseClient(B).acquireLease(15), 409, 'LeaseAlreadyPresent');
    await rejected(blob.getBlobLeaseClient(B).renewLease(), 409, MISMATCH);
    assert.equal((await lease.renewLease()).etag, etag);
    await lease.changeLease(C);
    assert.equal(lease.leaseId, C);
    await rejected(blob.getBlobLeaseClient(A).releaseLease(), 409, MISMATCH);
    await lease.acquireLease(-1);
    assert.equal((await blob.getProperties()).leaseDuration, 'infinite');
    await lease.releaseLease();
    assert.equal((await blob.getProperties()).leaseState, 'available');
    await rejected(lease.acquireLease(14), 400, 'InvalidHeaderValue');
    const stale = { conditions: { ifMatch: '"0x0"' } };
    await rejected(lease.acquireLease(15, stale), 412, 'ConditionNotMet');
    assert.match(blob.getBlobLeaseClient().leaseId, /^[0-9a-f-]{36}$/);
  });

  test('a leased blob is written with the lease only', async () => {
    const blob = await clients.blob();
    await blob.getBlobLeaseClient(A).acquireLease(60);
    const [mine, other] = [A, B].map((leaseId) => ({ conditions: { leaseId } }));
    const writes = [
      (settings) => blob.upload('x', 1, settings), (settings) => blob.setMetadata({}, settings),
      (settings) => blob.stageBlock('AAAA', 'x', 1, settings),
      (settings) => blob.commitBlockList(['AAAA'], settings),
      (settings) => blob.setTags({ a: '1' }, settings), (settings) => blob.setHTTPHeaders({}, settings),
      (settings) => blob.delete(settings),
    ];
    for (const write of writes) {
      await rejected(write(), 412, 'LeaseIdMissing');
      await rejected(write(other), 412, 'LeaseIdMismatchWithBlobOperation');
      await write(mine);
    }
    await rejected(blob.upload('x', 1, mine), 412, 'LeaseNotPresentWithBlobOperation');
  });

  test('a leased blob is read by all, and a wrong lease is an error', async () => {
    const blob = await clients.blob();
    await blob.getBlobLeaseClient(A).acquireLease(60);
    assert.equal(await textOf(blob), 'hello');
    const read = (leaseId) => blob.getProperties({ conditions: { leaseId } });
    await read(A);
    await rejected(read(B), 412, 'LeaseIdMismatchWithBlobOperation');
    await blob.createSnapshot();
  });

  test('a lease is broken at once, or after a time', async () => {
    const blob = await clients.blob();
    const lease = blob.getBlobLeaseClient(A);
    await rejected(lease.breakLease(0), 409, 'LeaseNotPresentWithLeaseOperation');
    await lease.acquireLease(-1);
    const { leaseTime } = await lease.breakLease(60);
    assert.ok(leaseTime > 50 && leaseTime <= 60, `${leaseTime} s are left`);
    assert.equal((await blob.getProperties()).leaseState, 'breaking');
    await rejected(lease.acquireLease(15), 409, 'LeaseIsBreakingAndCannotBeAcquired');
    await rejected(lease.changeLease(B), 409, 'LeaseIsBreakingAndCannotBeChanged');
    await rejected(blob.setMetadata({}), 412, 'LeaseIdMissing');
    assert.equal((await lease.breakLease(0)).leaseTime, 0);
    assert.equal((await blob.getProperties()).leaseState, 'broken');
    await rejected(lease.renewLease(), 409, 'LeaseIsBrokenAndCannotBeRenewed');
    await blob.setMetadata({});
    assert.equal((await blob.getProperties()).leaseState, 'available');
  });
});

test('a leased container is deleted with the lease only', async () => {
  const container = await clients.container();
  const lease = container.getBlobLeaseClient(A);
  await lease.acquireLease(60);
  assert.equal((await container.getProperties()).leaseState, 'leased');
  await lease.renewLease();
  await lease.changeLease(B);
  const [mine, other] = [B, C].map((leaseId) => ({ conditions: { leaseId } }));
  await container.getBlockBlobClient('x').upload('x', 1);
  await container.setMetadata({});
  await rejected(container.delete(), 412, 'LeaseIdMissing');
  await rejected(container.delete(other), 412, 'LeaseIdMismatchWithContainerOperation');
  await rejected(container.setMetadata({}, other), 412, 'LeaseIdMismatchWithContainerOperation');
  await lease.breakLease(60);
  assert.equal((await container.getProperties()).leaseState, 'breaking');
  await lease.releaseLease();
  await lease.acquireLease(-1);
  await container.delete(mine);
});
