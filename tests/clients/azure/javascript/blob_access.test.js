'use strict';
// Access to blobs by signatures, through @azure/storage-blob.

const assert = require('node:assert/strict');
const { describe } = require('node:test');
const {
  AccountSASPermissions, AppendBlobClient, BlobSASPermissions, BlobServiceClient, BlockBlobClient,
  ContainerClient, ContainerSASPermissions, SASProtocol, StorageSharedKeyCredential,
  generateBlobSASQueryParameters, newPipeline,
} = require('@azure/storage-blob');
const { clientsOf, collected, credential, once, textOf, unsigned } = require('./blob_clients');
const { ACCOUNT, listed, rejected, suite, test } = require('./target');

const world = suite();
const clients = clientsOf(world);
const hour = 3600_000;
const later = (by = hour) => new Date(Date.now() + by);
const MISMATCH = 'AuthorizationPermissionMismatch';

/** The URL of a blob with a signature for it. */
function urlOf(blob, permissions, values = {}) {
  return blob.generateSasUrl({
    permissions: permissions && BlobSASPermissions.parse(permissions),
    expiresOn: permissions && later(),
    ...values,
  });
}
/** A client that has only a signature for `blob`. */
async function signedBy(blob, permissions, values = {}) {
  return new BlockBlobClient(await urlOf(blob, permissions, values), unsigned);
}
/** A client that has only a signature for `container`. */
async function signedFor(container, permissions, values = {}) {
  const url = await container.generateSasUrl({
    permissions: permissions && ContainerSASPermissions.parse(permissions),
    expiresOn: permissions && later(),
    ...values,
  });
  return new ContainerClient(url, unsigned);
}

describe('signatures of blobs', () => {
  test('a blob SAS permits its operations and no others', async () => {
    const blob = await clients.blob();
    const [reader, writer, tagger] = await Promise.all(
      ['r', 'w', 't'].map((permissions) => signedBy(blob, permissions)),
    );
    assert.equal(await textOf(reader), 'hello');
    await reader.getProperties();
    await reader.getBlockList('committed');
    await rejected(reader.upload('x', 1), 403, MISMATCH);
    await rejected(reader.setMetadata({}), 403, MISMATCH);
    await rejected(reader.delete(), 403, MISMATCH);
    await rejected(reader.getTags(), 403, MISMATCH);
    await writer.setMetadata({ k: 'v' });
    await writer.stageBlock('AAAA', 'block', 5);
    await writer.commitBlockList(['AAAA']);
    await writer.setAccessTier('Cool');
    await writer.getBlobLeaseClient().acquireLease(60);
    await writer.getBlobLeaseClient().breakLease(0);
    await writer.createSnapshot();
    await rejected(writer.download(), 403, MISMATCH);
    await tagger.setTags({ a: '1' });
    assert.deepEqual((await tagger.getTags()).tags, { a: '1' });
    const remover = await signedBy(blob, 'd');
    await rejected(remover.setHTTPHeaders({}), 403, MISMATCH);
    await remover.delete({ deleteSnapshots: 'include' });
    assert.equal(await blob.exists(), false);
  });

  test('a SAS to create does not permit to overwrite, and one to add appends', async () => {
    const container = await clients.container();
    const blob = container.getBlockBlobClient('new');
    const creator = await signedBy(blob, 'c');
    await creator.upload('first', 5);
    await rejected(creator.upload('other', 5), 403, 'UnauthorizedBlobOverwrite');
    assert.equal(await textOf(blob), 'first');
    const log = container.getAppendBlobClient('log');
    await log.create();
    const adder = new AppendBlobClient(await urlOf(log, 'a'), unsigned);
    await adder.appendBlock('one', 3);
    await rejected(adder.create(), 403, MISMATCH);
    assert.equal(await textOf(log), 'one');
  });

  test('a SAS is for its blob, and one of a snapshot for the snapshot', async () => {
    const blob = await clients.blob('old');
    const { snapshot } = await blob.createSnapshot();
    await blob.upload('new', 3);
    const url = new URL(await urlOf(blob.withSnapshot(snapshot), 'r'));
    assert.equal(url.searchParams.get('sr'), 'bs');
    assert.equal(await textOf(new BlockBlobClient(url.href, unsigned)), 'old');
    url.searchParams.delete('snapshot');
    await rejected(new BlockBlobClient(url.href, unsigned).download(), 403, 'AuthenticationFailed');
    const version = blob.withVersion('2026-01-01T00:00:00.0000000Z');
    const signed = new URL(await urlOf(version, 'r'));
    assert.equal(signed.searchParams.get('sr'), 'bv');
    await rejected(new BlockBlobClient(signed.href, unsigned).download(), 404, 'BlobNotFound');
    const other = new URL(await urlOf(blob, 'r'));
    other.pathname += '.other';
    await rejected(new BlockBlobClient(other.href, unsigned).download(), 403, 'AuthenticationFailed');
    const changed = new URL(await urlOf(blob, 'r'));
    changed.searchParams.set('sp', 'rw');
    await rejected(new BlockBlobClient(changed.href, unsigned).download(), 403, 'AuthenticationFailed');
  });

  test('a SAS replaces headers of the answer', async () => {
    const blob = await clients.blob();
    const values = {
      cacheControl: 'no-store', contentDisposition: 'attachment; filename="a b"',
      contentEncoding: 'x-own', contentLanguage: 'de', contentType: 'text/own',
    };
    const got = await (await signedBy(blob, 'r', values)).getProperties();
    for (const [name, value] of Object.entries(values)) assert.equal(got[name], value);
  });

  test('a SAS is limited by time, addresses and protocol', async () => {
    const blob = await clients.blob();
    const cases = [
      [{ expiresOn: later(-hour) }, 'AuthenticationFailed'],
      [{ startsOn: later(), expiresOn: later(2 * hour) }, 'AuthenticationFailed'],
      [{ ipRange: { start: '10.0.0.1' } }, 'AuthorizationSourceIPMismatch'],
      [{ protocol: SASProtocol.Https }, 'AuthorizationProtocolMismatch'],
    ];
    for (const [limits, code] of cases) {
      await rejected((await signedBy(blob, 'r', limits)).download(), 403, code);
    }
    const ipRange = { start: '127.0.0.0', end: '127.0.0.9' };
    await (await signedBy(blob, 'r', { ipRange, protocol: SASProtocol.HttpsAndHttp })).getProperties();
  });

  for (const version of ['2015-04-05', '2018-11-09', '2020-02-10', '2020-12-06', '2021-12-02']) {
    test(`a SAS of the version ${version} permits a read`, async () => {
      const blob = await clients.blob();
      const signature = generateBlobSASQueryParameters({
        containerName: blob.containerName, blobName: blob.name, expiresOn: later(), version,
        permissions: BlobSASPermissions.parse('r'),
      }, credential);
      assert.equal(await textOf(new BlockBlobClient(`${blob.url}?${signature}`, unsigned)), 'hello');
    });
  }

  test('a SAS of the target does not permit to read the source of a copy', async () => {
    const source = await clients.blob('source');
    const container = await clients.container();
    const target = await signedBy(container.getBlockBlobClient('x'), 'rcw');
    for (const url of [source.url, await urlOf(source, 'w')]) {
      await assert.rejects(target.syncCopyFromURL(url), { statusCode: 403 });
      await assert.rejects(target.stageBlockFromURL('AAAA', url), { statusCode: 403 });
      await assert.rejects(target.syncUploadFromURL(url), { statusCode: 403 });
    }
    assert.equal(await container.getBlobClient('x').exists(), false);
  });
});

describe('signatures of containers', () => {
  test('a container SAS is for its blobs, and for lists and searches', async () => {
    const container = await clients.container();
    const worker = await signedFor(container, 'racwdl');
    await worker.uploadBlockBlob('x', 'text', 4, { metadata: { k: 'v' } });
    assert.equal(await textOf(worker.getBlobClient('x')), 'text');
    assert.deepEqual((await listed(worker.listBlobsFlat())).map((one) => one.name), ['x']);
    await rejected(listed(worker.findBlobsByTags(`"a" = '1'`)), 403, MISMATCH);
    await rejected(listed((await signedFor(container, 'r')).listBlobsFlat()), 403, MISMATCH);
    await container.getBlobClient('x').setTags({ a: '1' });
    const finder = await signedFor(container, 'f');
    assert.equal((await listed(finder.findBlobsByTags(`"a" = '1'`))).length, 1);
    await worker.deleteBlob('x');
    for (const call of [
      () => worker.getProperties(), () => worker.setMetadata({}), () => worker.delete(),
      () => worker.getAccessPolicy(), () => worker.getBlobLeaseClient().acquireLease(15),
    ]) {
      await assert.rejects(call, { statusCode: 403 });
    }
    const elsewhere = new URL(worker.url);
    elsewhere.pathname = new URL((await clients.container()).url).pathname;
    await rejected(
      listed(new ContainerClient(elsewhere.href, unsigned).listBlobsFlat()), 403, 'AuthenticationFailed',
    );
  });

  test('a stored policy grants and revokes access, and survives a round trip', async () => {
    const container = await clients.container();
    const blob = container.getBlockBlobClient('x');
    await blob.upload('text', 4);
    const startsOn = new Date('2026-01-02T03:04:05Z');
    const accessPolicy = { startsOn, expiresOn: later(), permissions: 'rl' };
    await container.setAccessPolicy(undefined, [{ id: 'reader', accessPolicy }, { id: 'empty', accessPolicy: {} }]);
    const { signedIdentifiers: [kept, empty] } = await container.getAccessPolicy();
    assert.deepEqual([kept.id, kept.accessPolicy.permissions, empty.id], ['reader', 'rl', 'empty']);
    assert.deepEqual(kept.accessPolicy.startsOn, startsOn);
    const identifier = 'reader';
    const reader = await signedFor(container, undefined, { identifier });
    assert.equal((await listed(reader.listBlobsFlat())).length, 1);
    const single = await signedBy(blob, undefined, { identifier });
    assert.equal(await textOf(single), 'text');
    await rejected(single.delete(), 403, MISMATCH);
    await rejected(
      (await signedBy(blob, undefined, { identifier: 'unknown' })).download(), 403, 'AuthenticationFailed',
    );
    await container.setAccessPolicy();
    await rejected(single.download(), 403, 'AuthenticationFailed');
    const six = [...Array(6).keys()].map((n) => ({ id: `${n}`, accessPolicy: {} }));
    await rejected(container.setAccessPolicy(undefined, six), 400, 'InvalidXmlDocument');
  });
});

describe('credentials of the account', () => {
  test('an account SAS permits exactly its grant', async () => {
    const [service, name] = [clients.service(), world.name()];
    const of = (permissions, types) => {
      const parsed = AccountSASPermissions.parse(permissions);
      return new BlobServiceClient(service.generateAccountSasUrl(later(), parsed, types), unsigned);
    };
    const all = of('rwdlactf', 'sco');
    await all.createContainer(name, { metadata: { k: 'v' } });
    assert.ok((await listed(all.listContainers())).some((one) => one.name === name));
    const { blockBlobClient: blob } = await all.getContainerClient(name)
      .uploadBlockBlob('x', 'text', 4, { tags: { own: name } });
    assert.equal((await listed(all.findBlobsByTags(`"own" = '${name}'`))).length, 1);
    await rejected(all.getContainerClient(name).getAccessPolicy(), 403, 'AuthorizationFailure');
    assert.equal((await all.getBlobBatchClient().setBlobsAccessTier([blob], 'Cool')).subResponsesFailedCount, 0);
    const reader = of('r', 'o').getContainerClient(name);
    assert.equal(await textOf(reader.getBlobClient('x')), 'text');
    await rejected(reader.deleteBlob('x'), 403, MISMATCH);
    await rejected(reader.getProperties(), 403, 'AuthorizationResourceTypeMismatch');
    await rejected(listed(of('r', 'sco').listContainers()), 403, MISMATCH);
    const elsewhere = service.generateAccountSasUrl(
      later(), AccountSASPermissions.parse('r'), 'o', { ipRange: { start: '10.0.0.1' } },
    );
    await rejected(
      new BlobServiceClient(elsewhere, unsigned).getContainerClient(name).getBlobClient('x').download(),
      403, 'AuthorizationSourceIPMismatch',
    );
    await all.deleteContainer(name);
  });

  test('a connection string with a signature is enough', async () => {
    const blob = await clients.blob();
    const permissions = AccountSASPermissions.parse('r');
    const url = clients.service().generateAccountSasUrl(later(), permissions, 'o');
    const string = `BlobEndpoint=${world.blob};SharedAccessSignature=${url.split('?')[1]}`;
    const reader = BlobServiceClient.fromConnectionString(string, once);
    const signed = reader.getContainerClient(blob.containerName).getBlobClient(blob.name);
    const { readableStreamBody } = await signed.download();
    assert.equal((await collected(readableStreamBody)).toString(), 'hello');
    await rejected(signed.delete(), 403, MISMATCH);
  });

  test('a wrong key is rejected, and so is a request without one', async () => {
    const blob = await clients.blob();
    const wrong = new StorageSharedKeyCredential(ACCOUNT, Buffer.from('wrong').toString('base64'));
    const other = new BlockBlobClient(blob.url, newPipeline(wrong, once));
    await rejected(other.download(), 403, 'AuthenticationFailed');
    await rejected(other.upload('x', 1), 403, 'AuthenticationFailed');
    const anonymous = new BlockBlobClient(blob.url, unsigned);
    await rejected(anonymous.download(), 401, 'NoAuthenticationInformation');
    await rejected(anonymous.upload('x', 1), 401, 'NoAuthenticationInformation');
    assert.equal(await textOf(blob), 'hello');
  });
});
