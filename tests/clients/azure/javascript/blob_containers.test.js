'use strict';
// Containers, lists of blobs and the service as a whole, through @azure/storage-blob.

const assert = require('node:assert/strict');
const { describe } = require('node:test');
const {
  BlobServiceClient, ContainerClient, StorageResponseFormat,
} = require('@azure/storage-blob');
const { clientsOf, credential, once, textOf, unsigned } = require('./blob_clients');
const { listed, paged, rejected, suite, test } = require('./target');

const world = suite();
const clients = clientsOf(world);
const HOUR = 3600_000;

/** The client of a container with empty blobs of these names. */
async function filled(names) {
  const container = await clients.container();
  for (const name of names) await container.getBlockBlobClient(name).upload('', 0);
  return container;
}
const namesOf = (items) => items.map((item) => item.name);

describe('containers', () => {
  test('a container is created, found, listed and deleted', async () => {
    const [service, name] = [clients.service(), world.name()];
    const container = service.getContainerClient(name);
    assert.equal(await container.exists(), false);
    await service.createContainer(name, { metadata: { owner: 'a' } });
    assert.equal(await container.exists(), true);
    await rejected(container.create(), 409, 'ContainerAlreadyExists');
    assert.equal((await container.createIfNotExists()).succeeded, false);
    const found = await listed(service.listContainers({ prefix: name, includeMetadata: true }));
    const [{ metadata, properties }] = found.filter((one) => one.name === name);
    assert.deepEqual([metadata, properties.leaseState], [{ owner: 'a' }, 'available']);
    assert.equal(properties.etag, (await container.getProperties()).etag);
    await service.deleteContainer(name);
    await rejected(container.delete(), 404, 'ContainerNotFound');
    assert.equal((await container.deleteIfExists()).succeeded, false);
    assert.equal((await container.createIfNotExists()).succeeded, true);
    assert.deepEqual(await listed(container.listBlobsFlat()), []);
    await rejected(service.undeleteContainer(name, '01D60F8BB59A4652'), 404, 'ContainerNotFound');
  });

  test('containers are listed page by page in order', async () => {
    const [service, name] = [clients.service(), world.name()];
    for (const number of [4, 2, 0, 1, 3]) await service.createContainer(`${name}-${number}`);
    const pages = await paged(service.listContainers({ prefix: `${name}-` }), { maxPageSize: 2 });
    const names = pages.map((page) => page.containerItems.map((one) => one.name.slice(-1)));
    assert.deepEqual(names, [['0', '1'], ['2', '3'], ['4']]);
    const token = { maxPageSize: 2, continuationToken: pages[0].continuationToken };
    await service.deleteContainer(`${name}-2`);
    const next = await service.listContainers({ prefix: `${name}-` }).byPage(token).next();
    assert.deepEqual(next.value.containerItems.map((one) => one.name.slice(-1)), ['3', '4']);
  });

  test('metadata is replaced completely, and only it changes the ETag', async () => {
    const container = await clients.container({ metadata: { a: '1' } });
    const first = await container.getProperties();
    await container.getBlockBlobClient('x').upload('x', 1);
    assert.equal((await container.getProperties()).etag, first.etag);
    await container.setMetadata({ b: 'two words' });
    const got = await container.getProperties();
    assert.deepEqual(got.metadata, { b: 'two words' });
    assert.notEqual(got.etag, first.etag);
    await container.setMetadata();
    assert.deepEqual((await container.getProperties()).metadata, {});
    const old = { conditions: { ifUnmodifiedSince: new Date(Date.now() - HOUR) } };
    await rejected(container.delete(old), 412, 'ConditionNotMet');
    await container.delete({ conditions: { ifModifiedSince: new Date(Date.now() - HOUR) } });
  });

  test('a malformed name is rejected', async () => {
    const create = (name) => clients.service().createContainer(name);
    await rejected(create('a--b'), 400, 'InvalidResourceName');
    await rejected(create('UPPER'), 400, 'InvalidResourceName');
    await rejected(create('ab'), 400, 'OutOfRangeInput');
  });

  test('blobs of the root container have no container in their URL', async () => {
    const container = clients.service().getContainerClient('$root');
    await container.createIfNotExists();
    await container.uploadBlockBlob('root.txt', 'root', 4);
    const got = await fetch(await container.getBlobClient('root.txt').generateSasUrl({
      permissions: 'r', expiresOn: new Date(Date.now() + HOUR),
    }));
    assert.equal(await got.text(), 'root');
    assert.ok(namesOf(await listed(clients.service().listContainers())).includes('$root'));
    await container.deleteBlob('root.txt');
  });

  test('the access level of a container is what a client without a key may read', async () => {
    const reader = (container) => new ContainerClient(container.url, unsigned);
    const open = await clients.container({ access: 'blob' });
    await open.getBlockBlobClient('x').upload('open', 4);
    const anonymous = reader(open);
    assert.equal(await textOf(anonymous.getBlobClient('x')), 'open');
    await rejected(listed(anonymous.listBlobsFlat()), 401, 'NoAuthenticationInformation');
    await rejected(anonymous.deleteBlob('x'), 401, 'NoAuthenticationInformation');
    await open.setAccessPolicy('container');
    assert.equal((await open.getAccessPolicy()).blobPublicAccess, 'container');
    assert.deepEqual(namesOf(await listed(anonymous.listBlobsFlat())), ['x']);
    assert.equal((await anonymous.getProperties()).blobPublicAccess, 'container');
    await open.setAccessPolicy();
    assert.equal((await open.getProperties()).blobPublicAccess, undefined);
    await rejected(anonymous.getBlobClient('x').download(), 401, 'NoAuthenticationInformation');
  });
});

describe('lists of blobs', () => {
  test('blobs are listed in the order of their bytes, page by page', async () => {
    const names = ['B', 'a', 'a/b', 'a/c', 'ab', 'ä', '\u{1F600}'];
    const container = await filled([...names].reverse());
    assert.deepEqual(namesOf(await listed(container.listBlobsFlat())), names);
    const pages = await paged(container.listBlobsFlat(), { maxPageSize: 3 });
    assert.deepEqual(pages.map((page) => namesOf(page.segment.blobItems)),
      [names.slice(0, 3), names.slice(3, 6), names.slice(6)]);
    const { continuationToken } = pages[0];
    await container.deleteBlob('a/c');
    await container.getBlockBlobClient('A').upload('', 0);
    const next = container.listBlobsFlat().byPage({ maxPageSize: 2, continuationToken });
    assert.deepEqual(namesOf((await next.next()).value.segment.blobItems), ['ab', 'ä']);
    assert.deepEqual(namesOf(await listed(container.listBlobsFlat({ prefix: 'a/' }))), ['a/b']);
    assert.deepEqual(namesOf(await listed(container.listBlobsFlat({ startFrom: 'ab' }))),
      ['ab', 'ä', '\u{1F600}']);
  });

  test('blobs are listed by hierarchy, and prefixes count as items of a page', async () => {
    const container = await filled(['a', 'a/b/1', 'a/b/2', 'a/c', 'a/d/', 'b/1', 'c']);
    const all = (settings) => container.listBlobsByHierarchy('/', settings);
    const seen = (items) => items.map((item) => `${item.kind} ${item.name}`);
    // The client gives the prefixes of a page first.
    const top = seen(await listed(all()));
    assert.deepEqual(top, ['prefix a/', 'prefix b/', 'blob a', 'blob c']);
    const inside = seen(await listed(all({ prefix: 'a/' })));
    assert.deepEqual(inside, ['prefix a/b/', 'prefix a/d/', 'blob a/c']);
    const found = [];
    for (const page of await paged(all(), { maxPageSize: 1 })) {
      const { blobItems, blobPrefixes = [] } = page.segment;
      assert.ok(blobItems.length + blobPrefixes.length <= 1);
      found.push(...namesOf(blobItems), ...namesOf(blobPrefixes));
    }
    assert.deepEqual(found, ['a', 'a/', 'b/', 'c']);
    const deep = await listed(container.listBlobsByHierarchy('b/', { prefix: 'a/' }));
    assert.deepEqual(seen(deep), ['prefix a/b/', 'blob a/c', 'blob a/d/']);
  });

  test('a list has what its request includes', async () => {
    const container = await clients.container();
    const blob = container.getBlockBlobClient('x');
    const tags = { t: '1 +' };
    await blob.upload('old', 3, { metadata: { Owner: 'me' }, tags });
    const { snapshot } = await blob.createSnapshot();
    await container.getBlockBlobClient('staged').stageBlock('AAAA', 'x', 1);
    await (await container.getBlobClient('y').beginCopyFromURL(blob.url)).pollUntilDone();
    const list = (settings) => listed(container.listBlobsFlat(settings));
    assert.deepEqual(namesOf(await list()), ['x', 'y']);
    const [plain] = await list();
    assert.deepEqual([plain.metadata, plain.tags, plain.properties.tagCount], [undefined, undefined, 1]);
    const [, base, copy] = await list({
      includeMetadata: true, includeTags: true, includeSnapshots: true, includeCopy: true,
    });
    assert.deepEqual([base.name, base.metadata, base.tags], ['x', { Owner: 'me' }, tags]);
    assert.deepEqual([copy.name, copy.properties.copyStatus], ['y', 'success']);
    const kept = await list({ includeSnapshots: true });
    assert.deepEqual(kept.map((one) => one.snapshot), [snapshot, undefined, undefined]);
    const staged = await list({ includeUncommitedBlobs: true });
    assert.deepEqual(namesOf(staged), ['staged', 'x', 'y']);
    const every = await list({ includeVersions: true, includeDeleted: true, includeLegalHold: true });
    assert.deepEqual(namesOf(every), ['x', 'y']);
    assert.equal(base.properties.etag, (await blob.getProperties()).etag.replaceAll('"', ''));
    assert.deepEqual([base.properties.contentLength, base.properties.blobType], [3, 'BlockBlob']);
  });

  test('names that XML cannot have are listed', async () => {
    const names = ['a\u0001b', '<a> & "b" \'c\' %41 ]]>', '\uFFFE'].sort();
    const container = await filled(names);
    assert.deepEqual(namesOf(await listed(container.listBlobsFlat())), names);
    const prefixes = await listed(container.listBlobsByHierarchy('b'));
    assert.ok(namesOf(prefixes).includes('a\u0001b'), namesOf(prefixes).join());
  });

  test('a client that prefers Arrow reads the list as XML', async () => {
    const container = await filled(['a', 'b/c']);
    const responseFormat = StorageResponseFormat.Arrow;
    assert.deepEqual(namesOf(await listed(container.listBlobsFlat({ responseFormat }))), ['a', 'b/c']);
    const deep = await listed(container.listBlobsByHierarchy('/', { responseFormat }));
    assert.deepEqual(namesOf(deep).sort(), ['a', 'b/']);
  });

  test('an invalid page size is rejected', async () => {
    const container = await filled([]);
    await rejected(
      container.listBlobsFlat().byPage({ maxPageSize: -1 }).next(), 400, 'OutOfRangeQueryParameterValue',
    );
    await rejected(
      listed(container.listBlobsByHierarchy('/', { includeSnapshots: true })),
      400, 'InvalidQueryParameterValue',
    );
  });
});

describe('the service', () => {
  test('properties survive a round trip', async () => {
    const service = clients.service();
    const retentionPolicy = { enabled: true, days: 7 };
    const cors = [{
      allowedOrigins: 'http://a.example', allowedMethods: 'GET,PUT', allowedHeaders: 'x-ms-*',
      exposedHeaders: '*', maxAgeInSeconds: 60,
    }];
    const before = await service.getProperties();
    await service.setProperties({
      blobAnalyticsLogging: {
        version: '1.0', read: true, write: false, deleteProperty: false, retentionPolicy,
      },
      hourMetrics: { version: '1.0', enabled: true, includeAPIs: false, retentionPolicy },
      cors, defaultServiceVersion: '2021-12-02',
      staticWebsite: { enabled: true, indexDocument: 'index.html', errorDocument404Path: '404.html' },
    });
    const got = await service.getProperties();
    assert.deepEqual(got.cors.map((rule) => ({ ...rule })), cors);
    assert.equal(got.blobAnalyticsLogging.retentionPolicy.days, 7);
    assert.deepEqual([got.hourMetrics.enabled, got.defaultServiceVersion], [true, '2021-12-02']);
    assert.equal(got.minuteMetrics.enabled, before.minuteMetrics.enabled);
    assert.deepEqual([got.staticWebsite.enabled, got.staticWebsite.indexDocument], [true, 'index.html']);
    assert.equal(got.deleteRetentionPolicy.enabled, false);
    await service.setProperties({ cors: [], staticWebsite: { enabled: false } });
    const after = await service.getProperties();
    assert.deepEqual([after.cors ?? [], after.staticWebsite.enabled], [[], false]);
    assert.equal(after.blobAnalyticsLogging.retentionPolicy.days, 7);
  });

  test('deleted blobs are restored while they are retained', async (context) => {
    const service = clients.service();
    await service.setProperties({ deleteRetentionPolicy: { enabled: true, days: 3 } });
    context.after(() => service.setProperties({ deleteRetentionPolicy: { enabled: false } }));
    assert.equal((await service.getProperties()).deleteRetentionPolicy.days, 3);
    const container = await clients.container();
    const blob = container.getBlockBlobClient('x');
    await blob.upload('kept', 4);
    await blob.createSnapshot();
    await blob.delete({ deleteSnapshots: 'include' });
    assert.equal(await blob.exists(), false);
    const [snapshot, deleted] = await listed(
      container.listBlobsFlat({ includeDeleted: true, includeSnapshots: true }),
    );
    assert.deepEqual([snapshot.deleted, deleted.deleted], [true, true]);
    assert.ok(deleted.properties.deletedOn instanceof Date);
    assert.ok(deleted.properties.remainingRetentionDays >= 2);
    await blob.undelete();
    assert.equal(await textOf(blob), 'kept');
    const [restored] = await listed(container.listBlobsFlat({ includeSnapshots: true }));
    assert.equal(restored.snapshot, snapshot.snapshot);
    await rejected(container.getBlobClient('never').undelete(), 404, 'BlobNotFound');
  });

  test('statistics are at the secondary', async () => {
    const secondary = new BlobServiceClient(`${world.blob}-secondary`, credential, once);
    const { geoReplication } = await secondary.getStatistics();
    assert.equal(geoReplication.status, 'live');
    assert.ok(Math.abs(geoReplication.lastSyncOn - Date.now()) < HOUR);
    await assert.rejects(clients.service().getStatistics(), { statusCode: 400 });
  });

  test('the kind of the account is on each of its resources', async () => {
    const container = await filled(['x']);
    for (const client of [clients.service(), container, container.getBlobClient('x')]) {
      const { skuName, accountKind, isHierarchicalNamespaceEnabled } = await client.getAccountInfo();
      assert.match(skuName, /^Standard_/);
      assert.deepEqual([accountKind, isHierarchicalNamespaceEnabled], ['StorageV2', false]);
    }
  });

  test('a connection string is enough', async () => {
    const name = world.name();
    const service = BlobServiceClient.fromConnectionString(world.connectionString);
    await service.createContainer(name);
    const container = new ContainerClient(world.connectionString, name);
    const { blockBlobClient } = await container.uploadBlockBlob('x', 'text', 4);
    assert.equal(await textOf(blockBlobClient), 'text');
    assert.deepEqual([blockBlobClient.name, blockBlobClient.containerName], ['x', name]);
  });
});
