'use strict';
// Versions, and what can be restored after it was deleted, through @azure/storage-blob. In Azure the
// control plane has the settings for them; here the binary has a command.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { before, describe } = require('node:test');
const { BlobSASPermissions, BlockBlobClient } = require('@azure/storage-blob');
const { clientsOf, textOf, unsigned } = require('./blob_clients');
const { listed, rejected, suite, test } = require('./target');

const world = suite();
const clients = clientsOf(world);
const HOUR = 3600_000;

/** Changes what the account keeps. */
function protect(...settings) {
  const command = ['blob', 'protection', '--endpoint', world.server.grpc, ...settings];
  execFileSync(process.env.TRESTLE_BIN, command, { stdio: ['ignore', 'ignore', 'inherit'] });
}

describe('an account that keeps versions', () => {
  before(() => protect('--versions', 'on', '--keep-containers', '5'));

  test('each write makes a version, which is read, copied and deleted', async () => {
    const container = await clients.container();
    const blob = container.getBlockBlobClient('x');
    const first = await blob.upload('first', 5, { metadata: { n: '1' }, tags: { n: '1' } });
    const second = await blob.upload('second', 6);
    assert.ok(first.versionId < second.versionId);
    const current = await blob.getProperties();
    assert.deepEqual([current.versionId, current.isCurrentVersion], [second.versionId, true]);
    const old = blob.withVersion(first.versionId);
    assert.equal(await textOf(old), 'first');
    const got = await old.getProperties();
    assert.deepEqual([got.metadata, got.isCurrentVersion], [{ n: '1' }, undefined]);
    assert.deepEqual((await old.getTags()).tags, { n: '1' });
    const list = await listed(container.listBlobsFlat({ includeVersions: true }));
    assert.deepEqual(list.map(({ versionId, isCurrentVersion }) => [versionId, isCurrentVersion]),
      [[first.versionId, undefined], [second.versionId, true]]);
    const poller = await blob.beginCopyFromURL(old.url);
    await poller.pollUntilDone();
    assert.equal(await textOf(blob), 'first');
    await old.delete();
    await rejected(old.download(), 404, 'BlobNotFound');
    assert.equal(await textOf(blob.withVersion(second.versionId)), 'second');
  });

  test('a deleted blob is a version, and the versions stay as they are', async () => {
    const container = await clients.container();
    const blob = container.getBlockBlobClient('x');
    const { versionId } = await blob.upload('text', 4);
    await blob.delete();
    assert.equal(await blob.exists(), false);
    assert.deepEqual(await listed(container.listBlobsFlat()), []);
    const [version] = await listed(container.listBlobsFlat({ includeVersions: true }));
    assert.deepEqual([version.versionId, version.isCurrentVersion], [versionId, undefined]);
    const kept = blob.withVersion(versionId);
    assert.equal(await textOf(kept), 'text');
    await rejected(kept.getBlockBlobClient().setMetadata({}), 400, 'InvalidQueryParameterValue');
    await blob.syncCopyFromURL(kept.url);
    assert.equal(await textOf(blob), 'text');
  });

  test('a SAS of a version is for the version', async () => {
    const blob = await clients.blob('first');
    const { versionId } = await blob.getProperties();
    await blob.upload('second', 6);
    const signed = async (client, permissions) => new URL(await client.generateSasUrl({
      permissions: BlobSASPermissions.parse(permissions), expiresOn: new Date(Date.now() + HOUR),
    }));
    const old = blob.withVersion(versionId);
    const reader = await signed(old, 'r');
    assert.equal(await textOf(new BlockBlobClient(reader.href, unsigned)), 'first');
    reader.searchParams.delete('versionid');
    await rejected(new BlockBlobClient(reader.href, unsigned).download(), 403, 'AuthenticationFailed');
    const code = 'AuthorizationPermissionMismatch';
    await rejected(new BlockBlobClient((await signed(old, 'd')).href, unsigned).delete(), 403, code);
    await new BlockBlobClient((await signed(old, 'x')).href, unsigned).delete();
    await rejected(old.download(), 404, 'BlobNotFound');
  });

  test('a deleted container is restored with its blobs', async () => {
    const service = clients.service();
    const container = await clients.container({ metadata: { k: 'v' } });
    const [blob, { containerName }] = [container.getBlockBlobClient('x'), container];
    await blob.upload('kept', 4);
    await container.delete();
    assert.equal(await container.exists(), false);
    const prefix = containerName;
    assert.deepEqual(await listed(service.listContainers({ prefix })), []);
    const [deleted] = await listed(service.listContainers({ prefix, includeDeleted: true }));
    assert.deepEqual([deleted.name, deleted.deleted], [containerName, true]);
    assert.ok(deleted.properties.remainingRetentionDays >= 4);
    await rejected(service.undeleteContainer(containerName, '01D60F8BB59A4652'), 404, 'ContainerNotFound');
    await service.undeleteContainer(containerName, deleted.version);
    assert.deepEqual((await container.getProperties()).metadata, { k: 'v' });
    assert.equal(await textOf(blob), 'kept');
  });
});
