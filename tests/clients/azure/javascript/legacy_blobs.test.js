'use strict';
// Blobs through azure-storage, the client before the one of today, as legacy.test.js has tables and
// queues. It uses an older version of the protocol.

const assert = require('node:assert/strict');
const crypto = require('node:crypto');
const { Readable, Writable } = require('node:stream');
const { describe } = require('node:test');
const { promisify } = require('node:util');
const azure = require('azure-storage');
const { ACCOUNT, KEY, suite, test } = require('./target');

const world = suite();
const HOUR = 3600_000;
const MIB = 1024 * 1024;
const PAGE = 512;
const { SnapshotDeleteOptions } = azure.BlobUtilities;

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
const blobs = () => promising(azure.createBlobService(world.connectionString));
const rejected = (call, status, code) => assert.rejects(call, (error) => {
  assert.deepEqual([error.statusCode, error.code], [status, code], error.message);
  return true;
});

/** The client of blobs, and the name of an empty container. */
async function created() {
  const [service, name] = [blobs(), world.name()];
  await service.createContainer(name);
  return [service, name];
}

describe('containers', () => {
  test('a container is created, found, listed and deleted', async () => {
    const [service, name] = [blobs(), world.name()];
    assert.equal((await service.createContainerIfNotExists(name)).created, true);
    assert.equal((await service.createContainerIfNotExists(name)).created, false);
    assert.equal((await service.doesContainerExist(name)).exists, true);
    await service.setContainerMetadata(name, { owner: 'me' });
    assert.equal((await service.getContainerMetadata(name)).metadata.owner, 'me');
    const { entries } = await service.listContainersSegmentedWithPrefix(
      name, null, { include: 'metadata' },
    );
    assert.deepEqual(entries.filter((one) => one.name === name).map((one) => one.metadata.owner), ['me']);
    assert.equal((await service.getContainerProperties(name)).lease.state, 'available');
    assert.equal(await service.deleteContainerIfExists(name), true);
    assert.equal(await service.deleteContainerIfExists(name), false);
    assert.equal((await service.doesContainerExist(name)).exists, false);
    await rejected(service.createBlockBlobFromText(name, 'x', 'x'), 404, 'ContainerNotFound');
  });

  test('blobs are listed by prefix, by directory and page by page', async () => {
    const [service, name] = await created();
    for (const blob of ['a', 'd/1', 'd/2', 'e/1', 'f']) {
      await service.createBlockBlobFromText(name, blob, blob);
    }
    const found = [];
    let token = null;
    do {
      const page = await service.listBlobsSegmented(name, token, { maxResults: 2 });
      found.push(...page.entries.map((one) => one.name));
      token = page.continuationToken;
    } while (token);
    assert.deepEqual(found, ['a', 'd/1', 'd/2', 'e/1', 'f']);
    const inside = await service.listBlobsSegmentedWithPrefix(name, 'd/', null);
    assert.deepEqual(inside.entries.map((one) => one.name), ['d/1', 'd/2']);
    const directories = await service.listBlobDirectoriesSegmentedWithPrefix(name, '', null);
    assert.deepEqual(directories.entries.map((one) => one.name), ['d/', 'e/']);
  });

  test('SAS and stored policies apply', async () => {
    const [service, name] = await created();
    await service.createBlockBlobFromText(name, 'x', 'text');
    const AccessPolicy = { Permissions: 'r', Expiry: new Date(Date.now() + HOUR) };
    const signed = (blob, values) => promising(azure.createBlobServiceWithSas(
      world.blob, service.generateSharedAccessSignature(name, blob, values),
    ));
    assert.equal(await signed('x', { AccessPolicy }).getBlobToText(name, 'x'), 'text');
    const code = 'AuthorizationPermissionMismatch';
    await rejected(signed('x', { AccessPolicy }).deleteBlob(name, 'x'), 403, code);
    await service.setContainerAcl(name, { reader: AccessPolicy }, { publicAccessLevel: 'blob' });
    const { signedIdentifiers, publicAccessLevel } = await service.getContainerAcl(name);
    assert.deepEqual([signedIdentifiers.reader.Permissions, publicAccessLevel], ['r', 'blob']);
    const anonymous = promising(azure.createBlobServiceAnonymous(world.blob));
    assert.equal(await anonymous.getBlobToText(name, 'x'), 'text');
    await service.setContainerAcl(name, { reader: AccessPolicy });
    assert.equal(await signed(undefined, { Id: 'reader' }).getBlobToText(name, 'x'), 'text');
    await service.setContainerAcl(name, {});
    const revoked = signed(undefined, { Id: 'reader' }).getBlobToText(name, 'x');
    await rejected(revoked, 403, 'AuthenticationFailed');
  });
});

describe('blobs', () => {
  test('a blob supports every operation', async () => {
    const [service, name] = await created();
    await service.createBlockBlobFromText(name, 'x', 'häl\nlo', {
      contentSettings: { contentType: 'text/own' }, metadata: { k: 'v' },
    });
    assert.equal(await service.getBlobToText(name, 'x'), 'häl\nlo');
    const got = await service.getBlobProperties(name, 'x');
    assert.deepEqual([got.contentSettings.contentType, got.metadata.k], ['text/own', 'v']);
    await service.setBlobMetadata(name, 'x', { k: 'new' });
    assert.equal((await service.getBlobMetadata(name, 'x')).metadata.k, 'new');
    await service.setBlobProperties(name, 'x', { contentType: 'a/b', cacheControl: 'no-cache' });
    const { contentSettings } = await service.getBlobProperties(name, 'x');
    assert.deepEqual([contentSettings.contentType, contentSettings.cacheControl], ['a/b', 'no-cache']);
    const accessConditions = azure.AccessCondition.generateIfMatchCondition('"0x0"');
    const conflict = service.setBlobMetadata(name, 'x', {}, { accessConditions });
    await rejected(conflict, 412, 'ConditionNotMet');
    const absent = { accessConditions: azure.AccessCondition.generateIfNotExistsCondition() };
    await rejected(service.createBlockBlobFromText(name, 'x', 'y', absent), 409, 'BlobAlreadyExists');
    const snapshot = await service.createBlobSnapshot(name, 'x');
    await service.createBlockBlobFromText(name, 'x', 'second');
    const kept = await service.getBlobToText(name, 'x', { snapshotId: snapshot });
    assert.equal(kept, 'häl\nlo');
    const copied = await service.startCopyBlob(`${world.blob}/${name}/x`, name, 'copy');
    assert.equal(copied.copy.status, 'success');
    assert.equal(await service.getBlobToText(name, 'copy'), 'second');
    await service.setBlobTier(name, 'x', 'Cool');
    await rejected(service.deleteBlob(name, 'x'), 409, 'SnapshotsPresent');
    const deleteSnapshots = SnapshotDeleteOptions.BLOB_AND_SNAPSHOTS;
    await service.deleteBlob(name, 'x', { deleteSnapshots });
    assert.equal((await service.doesBlobExist(name, 'x')).exists, false);
    assert.equal(await service.deleteBlobIfExists(name, 'x'), false);
  });

  test('a lease protects a blob', async () => {
    const [service, name] = await created();
    await service.createBlockBlobFromText(name, 'x', 'text');
    const lease = await service.acquireLease(name, 'x', { leaseDuration: 60 });
    await rejected(service.deleteBlob(name, 'x'), 412, 'LeaseIdMissing');
    await service.renewLease(name, 'x', lease.id);
    await service.setBlobMetadata(name, 'x', {}, { leaseId: lease.id });
    await service.releaseLease(name, 'x', lease.id);
    const again = await service.acquireLease(name, 'x');
    assert.equal((await service.breakLease(name, 'x', { leaseBreakPeriod: 0 })).time, 0);
    await rejected(service.renewLease(name, 'x', again.id), 409, 'LeaseIsBrokenAndCannotBeRenewed');
    await service.deleteBlob(name, 'x');
  });

  test('a stream of many MiB is written as blocks and read', async () => {
    const [service, name] = await created();
    const content = crypto.randomBytes(33 * MIB + 1);
    const stream = Readable.from([content.subarray(0, 10 * MIB), content.subarray(10 * MIB)], {
      objectMode: false,
    });
    await service.createBlockBlobFromStream(name, 'x', stream, content.length, {
      parallelOperationThreadCount: 3,
    });
    const { CommittedBlocks } = await service.listBlocks(name, 'x', 'committed');
    assert.ok(CommittedBlocks.length > 1, `${CommittedBlocks.length} blocks`);
    const parts = [];
    await service.getBlobToStream(name, 'x', new Writable({
      write(part, _, done) {
        parts.push(part);
        done();
      },
    }));
    assert.ok(Buffer.concat(parts).equals(content));
  });

  test('blocks are appended, and pages written and cleared', async () => {
    const [service, name] = await created();
    await service.createAppendBlobFromText(name, 'log', 'one');
    await service.appendFromText(name, 'log', 'two');
    const position = { appendPosition: 1 };
    const stale = service.appendBlockFromText(name, 'log', 'x', position);
    await rejected(stale, 412, 'AppendPositionConditionNotMet');
    assert.equal(await service.getBlobToText(name, 'log'), 'onetwo');
    await service.createPageBlob(name, 'disk', 4 * PAGE);
    const data = Buffer.alloc(2 * PAGE, 'a');
    await service.createPagesFromStream(
      name, 'disk', Readable.from([data], { objectMode: false }), PAGE, 3 * PAGE - 1,
    );
    await service.clearPageRange(name, 'disk', 2 * PAGE, 3 * PAGE - 1);
    const ranges = await service.listPageRanges(name, 'disk');
    assert.deepEqual(ranges.map(({ start, end }) => [start, end]), [[PAGE, 2 * PAGE - 1]]);
    await service.resizePageBlob(name, 'disk', PAGE);
    assert.equal((await service.getBlobProperties(name, 'disk')).contentLength, `${PAGE}`);
  });
});

test('properties of the service survive a round trip, and it has statistics', async () => {
  const service = blobs();
  const properties = await service.getServiceProperties();
  properties.Cors = { CorsRule: [{
    AllowedOrigins: ['http://a.example'], AllowedMethods: ['GET'], AllowedHeaders: [],
    ExposedHeaders: [], MaxAgeInSeconds: 5,
  }] };
  await service.setServiceProperties(properties);
  const got = await service.getServiceProperties();
  assert.deepEqual(got.Cors.CorsRule[0].AllowedOrigins, ['http://a.example']);
  const host = { primaryHost: world.blob, secondaryHost: `${world.blob}-secondary` };
  const secondary = promising(azure.createBlobService(ACCOUNT, KEY, host));
  const locationMode = azure.StorageUtilities.LocationMode.SECONDARY_ONLY;
  const stats = await secondary.getServiceStats({ locationMode });
  assert.equal(stats.GeoReplication.Status, 'live');
});
