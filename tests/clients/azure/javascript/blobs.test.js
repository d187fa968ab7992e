'use strict';
// Block blobs, and what all blobs have, through @azure/storage-blob.

const assert = require('node:assert/strict');
const crypto = require('node:crypto');
const { describe } = require('node:test');
const { BlobClient, BlockBlobClient } = require('@azure/storage-blob');
const { clientsOf, collected, credential, once, textOf } = require('./blob_clients');
const { listed, rejected, suite, test } = require('./target');

const world = suite();
const clients = clientsOf(world);
const md5 = (text) => crypto.createHash('md5').update(text).digest();
const id = (text) => Buffer.from(text).toString('base64');
const SECOND = 1000;
const STALE = '"0x8D000000000000"';

describe('content', () => {
  test('a blob is uploaded, read, overwritten and deleted', async () => {
    const blob = await clients.blob('first');
    assert.equal(await blob.exists(), true);
    await blob.upload('second', 6);
    const answer = await blob.download();
    assert.equal((await collected(answer.readableStreamBody)).toString(), 'second');
    assert.deepEqual([answer.contentLength, answer.blobType], [6, 'BlockBlob']);
    assert.deepEqual(Buffer.from(answer.contentMD5), md5('second'));
    await blob.delete();
    assert.equal(await blob.exists(), false);
    await rejected(blob.download(), 404, 'BlobNotFound');
    await rejected(blob.delete(), 404, 'BlobNotFound');
    assert.equal((await blob.deleteIfExists()).succeeded, false);
    await blob.upload('', 0);
    assert.equal(await textOf(blob), '');
    assert.equal((await blob.deleteIfExists()).succeeded, true);
  });

  test('ranges of a blob are read, with the checksum of the range', async () => {
    const blob = await clients.blob('0123456789');
    assert.equal(await textOf(blob, 2, 3), '234');
    assert.equal(await textOf(blob, 7), '789');
    const buffer = Buffer.alloc(4);
    await blob.downloadToBuffer(buffer, 6, 4);
    assert.equal(buffer.toString(), '6789');
    const part = await blob.download(8, 100, { rangeGetContentMD5: true });
    assert.equal((await collected(part.readableStreamBody)).toString(), '89');
    assert.equal(part.contentRange, 'bytes 8-9/10');
    assert.deepEqual(Buffer.from(part.contentMD5), md5('89'));
    assert.deepEqual(Buffer.from(part.blobContentMD5), md5('0123456789'));
    const checked = await blob.download(0, 10, { rangeGetContentCrc64: true });
    await collected(checked.readableStreamBody);
    const { xMsContentCrc64 } = await blob.upload('0123456789', 10);
    assert.deepEqual(Buffer.from(checked.contentCrc64), Buffer.from(xMsContentCrc64));
    await rejected(blob.download(10, 1), 416, 'InvalidRange');
    await blob.upload('', 0);
    await rejected(blob.download(0, 1), 416, 'InvalidRange');
  });

  test('checksums of what is sent are compared', async () => {
    const blob = await clients.blob();
    const good = await blob.upload('hello world', 11, { transactionalContentMD5: md5('hello world') });
    assert.equal(Buffer.from(good.contentMD5).toString('base64'), 'XrY7u+Ae7tCTyyK7j1rNww==');
    const crc64 = Buffer.from('vo7q9sPVKY0=', 'base64');
    await blob.stageBlock(id('1'), 'hello world', 11, { transactionalContentCrc64: crc64 });
    await rejected(
      blob.upload('other', 5, { transactionalContentMD5: md5('hello') }), 400, 'Md5Mismatch',
    );
    await rejected(
      blob.stageBlock(id('2'), 'other', 5, { transactionalContentCrc64: crc64 }), 400, 'Crc64Mismatch',
    );
    assert.equal(await textOf(blob), 'hello world');
  });

  test('content is validated segment by segment', async () => {
    const blob = (await clients.container()).getBlockBlobClient('x');
    const checked = { contentChecksumAlgorithm: 'StorageCrc64' };
    const written = await blob.upload('hello world', 11, checked);
    assert.equal(written.structuredBodyType, 'XSM/1.0; properties=crc64');
    assert.equal(await textOf(blob), 'hello world');
    const read = await blob.downloadToBuffer(0, undefined, checked);
    assert.equal(read.toString(), 'hello world');
  });

  for (const name of ['a//b', 'x./y.z', 'ä €\u{1F600}', "it's %41+b&c=d?#", ' x ', 'A'.repeat(1024)]) {
    test(`the name ${JSON.stringify(name.slice(0, 20))} stays as it is`, async () => {
      const container = await clients.container();
      const blob = container.getBlockBlobClient(name);
      await blob.upload(name, Buffer.byteLength(name));
      assert.equal(await textOf(blob), name);
      assert.deepEqual((await listed(container.listBlobsFlat())).map((one) => one.name), [name]);
      await container.deleteBlob(name);
    });
  }
});

describe('blocks', () => {
  test('blocks are staged in any order and committed in that of the list', async () => {
    const blob = (await clients.container()).getBlockBlobClient('x');
    await blob.stageBlock(id('b'), 'two', 3);
    await blob.stageBlock(id('a'), 'one', 3);
    await blob.stageBlock(id('c'), 'unused', 6);
    await rejected(blob.download(), 404, 'BlobNotFound');
    const staged = await blob.getBlockList('uncommitted');
    const names = staged.uncommittedBlocks.map((block) => [block.name, block.size]);
    assert.deepEqual(names, [[id('a'), 3], [id('b'), 3], [id('c'), 6]]);
    await rejected(blob.stageBlock(id('longer'), 'x', 1), 400, 'InvalidBlobOrBlock');
    await rejected(blob.commitBlockList([id('z')]), 400, 'InvalidBlockList');
    await blob.commitBlockList([id('a'), id('b')], {
      blobHTTPHeaders: { blobContentType: 'text/plain' }, metadata: { k: 'v' }, tags: { t: '1' },
      tier: 'Cool',
    });
    assert.equal(await textOf(blob), 'onetwo');
    const { contentType, metadata, tagCount, accessTier } = await blob.getProperties();
    assert.deepEqual([contentType, metadata, tagCount, accessTier], ['text/plain', { k: 'v' }, 1, 'Cool']);
    const { committedBlocks, uncommittedBlocks } = await blob.getBlockList('all');
    assert.deepEqual(committedBlocks.map((block) => block.name), [id('a'), id('b')]);
    assert.deepEqual(uncommittedBlocks ?? [], []);
    await blob.stageBlock(id('d'), '!', 1);
    await blob.commitBlockList([id('b'), id('d'), id('b')]);
    assert.equal(await textOf(blob), 'two!two');
    assert.deepEqual((await blob.getProperties()).metadata, {});
  });

  test('blocks and blobs are written from a URL', async () => {
    const source = await clients.blob('0123456789', {
      blobHTTPHeaders: { blobContentType: 'text/x' }, metadata: { k: 'v' }, tags: { t: '1' },
    });
    const blob = (await clients.container()).getBlockBlobClient('copy');
    await blob.stageBlockFromURL(id('1'), source.url, 5, 5);
    await blob.stageBlockFromURL(id('2'), source.url, 0, 2, { sourceContentMD5: md5('01') });
    await blob.commitBlockList([id('1'), id('2')]);
    assert.equal(await textOf(blob), '5678901');
    await blob.syncUploadFromURL(source.url, { copySourceTags: 'COPY' });
    const got = await blob.getProperties();
    assert.deepEqual([got.contentType, got.tagCount], ['text/x', 1]);
    assert.equal(await textOf(blob), '0123456789');
    const other = { sourceContentMD5: md5('other') };
    await rejected(blob.stageBlockFromURL(id('3'), source.url, 0, 10, other), 400, 'Md5Mismatch');
  });
});

describe('properties', () => {
  test('HTTP properties, metadata and tier of an upload are kept', async () => {
    const blobHTTPHeaders = {
      blobContentType: 'text/plain; charset=utf-8', blobContentEncoding: 'gzip',
      blobContentLanguage: 'de', blobCacheControl: 'max-age=5',
      blobContentDisposition: 'attachment; filename="x"',
    };
    const metadata = { one: '1', two: 'two words' };
    const blob = await clients.blob('x', { blobHTTPHeaders, metadata, tier: 'Cool' });
    const got = await blob.getProperties();
    assert.deepEqual(got.metadata, metadata);
    assert.deepEqual([got.contentType, got.contentEncoding, got.contentLanguage, got.cacheControl,
      got.contentDisposition], Object.values(blobHTTPHeaders));
    assert.deepEqual([got.accessTier, got.contentLength], ['Cool', 1]);
    assert.ok(got.createdOn <= got.lastModified);
  });

  test('HTTP properties and metadata are replaced completely', async () => {
    const blob = await clients.blob('x', {
      blobHTTPHeaders: { blobContentType: 'a/b', blobCacheControl: 'no-cache' }, metadata: { a: '1' },
    });
    const first = await blob.getProperties();
    const changed = await blob.setHTTPHeaders({ blobContentType: 'c/d' });
    assert.notEqual(changed.etag, first.etag);
    await blob.setMetadata({ b: '2' });
    const got = await blob.getProperties();
    assert.deepEqual([got.contentType, got.cacheControl, got.contentMD5], ['c/d', undefined, undefined]);
    assert.deepEqual(got.metadata, { b: '2' });
    await blob.setMetadata();
    assert.deepEqual((await blob.getProperties()).metadata, {});
  });

  test('tags are set, counted, conditions and found', async () => {
    const container = await clients.container();
    const tags = { project: 'a b', level: '07' };
    for (const [name, level] of [['x', '07'], ['y', '08'], ['z', '09']]) {
      const settings = { tags: { ...tags, level } };
      await container.getBlockBlobClient(name).upload('x', 1, settings);
    }
    const blob = container.getBlobClient('x');
    assert.deepEqual((await blob.getTags()).tags, tags);
    const where = `"project" = 'a b' AND "level" >= '08'`;
    const names = (found) => found.map((one) => [one.containerName, one.name, one.tags.level]);
    const expected = [[container.containerName, 'y', '08'], [container.containerName, 'z', '09']];
    assert.deepEqual(names(await listed(container.findBlobsByTags(where))), expected);
    const everywhere = `@container = '${container.containerName}' AND ${where}`;
    const pages = [];
    for await (const page of clients.service().findBlobsByTags(everywhere).byPage({ maxPageSize: 1 })) {
      pages.push(names(page.blobs));
    }
    assert.deepEqual(pages.flat(), expected);
    const { etag } = await blob.getProperties();
    await blob.setTags({ other: '1' });
    const after = await blob.getProperties();
    assert.deepEqual([after.tagCount, after.etag], [1, etag]);
    const old = { conditions: { tagConditions: `"level" = '07'` } };
    await rejected(blob.setMetadata({}, old), 412, 'ConditionNotMet');
    await blob.setMetadata({}, { conditions: { tagConditions: `"other" = '1'` } });
    await blob.setTags({});
    assert.deepEqual((await blob.getTags()).tags, {});
    const eleven = Object.fromEntries([...Array(11).keys()].map((n) => [`k${n}`, 'v']));
    await assert.rejects(blob.setTags(eleven), { statusCode: 400 });
  });

  test('a blob changes its tier, and an archived one is not read', async () => {
    const blob = await clients.blob();
    const { etag } = await blob.getProperties();
    await blob.setAccessTier('Cold');
    const got = await blob.getProperties();
    assert.deepEqual([got.accessTier, got.accessTierInferred, got.etag], ['Cold', undefined, etag]);
    await blob.setAccessTier('Archive');
    await rejected(blob.download(), 409, 'BlobArchived');
    await rejected(blob.upload('x', 1), 409, 'BlobArchived');
    assert.equal((await blob.getProperties()).accessTier, 'Archive');
    await blob.setAccessTier('Hot', { rehydratePriority: 'High' });
    assert.equal(await textOf(blob), 'hello');
    await assert.rejects(blob.setAccessTier('P4'), { statusCode: 400 });
  });
});

describe('conditions', () => {
  test('writes have conditions', async () => {
    const blob = await clients.blob();
    const upload = (conditions) => blob.upload('new', 3, { conditions });
    const { etag, lastModified } = await blob.getProperties();
    const [before, after] = [-SECOND, SECOND].map((by) => new Date(+lastModified + by));
    await rejected(upload({ ifNoneMatch: '*' }), 409, 'BlobAlreadyExists');
    await rejected(upload({ ifMatch: STALE }), 412, 'ConditionNotMet');
    await rejected(upload({ ifNoneMatch: etag }), 412, 'ConditionNotMet');
    await rejected(upload({ ifModifiedSince: lastModified }), 412, 'ConditionNotMet');
    await rejected(upload({ ifUnmodifiedSince: before }), 412, 'ConditionNotMet');
    await rejected(
      upload({ ifMatch: etag, ifNoneMatch: STALE }), 400, 'MultipleConditionHeadersNotSupported',
    );
    await rejected(blob.setMetadata({}, { conditions: { ifMatch: STALE } }), 412, 'ConditionNotMet');
    await rejected(blob.delete({ conditions: { ifMatch: STALE } }), 412, 'ConditionNotMet');
    assert.equal(await textOf(blob), 'hello');
    await upload({ ifMatch: etag });
    await upload({ ifModifiedSince: before });
    await upload({ ifUnmodifiedSince: new Date(+after + 3600 * SECOND) });
    await upload({ ifMatch: '*' });
    await blob.delete();
    await rejected(upload({ ifMatch: '*' }), 412, 'ConditionNotMet');
    await upload({ ifNoneMatch: '*' });
    await blob.stageBlock(id('1'), 'x', 1);
    const create = { conditions: { ifNoneMatch: '*' } };
    await rejected(blob.commitBlockList([id('1')], create), 409, 'BlobAlreadyExists');
  });

  test('reads have conditions', async () => {
    const blob = await clients.blob();
    const read = (conditions) => blob.download(0, undefined, { conditions });
    const { etag, lastModified } = await blob.getProperties();
    const [before, after] = [-SECOND, SECOND].map((by) => new Date(+lastModified + by));
    for (const conditions of [{ ifNoneMatch: etag }, { ifModifiedSince: lastModified }]) {
      await rejected(read(conditions), 304, 'ConditionNotMet');
      await rejected(blob.getProperties({ conditions }), 304, 'ConditionNotMet');
    }
    for (const conditions of [{ ifMatch: STALE }, { ifUnmodifiedSince: before }]) {
      await rejected(read(conditions), 412, 'ConditionNotMet');
      await rejected(blob.getProperties({ conditions }), 412, 'ConditionNotMet');
    }
    for (const conditions of [
      { ifMatch: etag }, { ifMatch: '*' }, { ifNoneMatch: STALE }, { ifUnmodifiedSince: after },
      { ifNoneMatch: etag, ifModifiedSince: before },
    ]) {
      assert.equal((await collected((await read(conditions)).readableStreamBody)).toString(), 'hello');
    }
  });
});

describe('writes at once', () => {
  const WRITERS = [...Array(20).keys()];

  /** Checks that one of many calls at once succeeds, and that the others end with a code. */
  async function oneOf(call, code) {
    const ends = await Promise.allSettled(WRITERS.map(call));
    const codes = ends.map(({ reason }) => reason?.code);
    const expected = [undefined, ...Array(WRITERS.length - 1).fill(code)];
    assert.deepEqual(codes.sort(), expected.sort());
    return ends.findIndex(({ status }) => status === 'fulfilled');
  }

  test('of writes on one condition, one succeeds', async () => {
    const container = await clients.container();
    const blob = container.getBlockBlobClient('x');
    const create = { conditions: { ifNoneMatch: '*' } };
    const first = await oneOf((n) => blob.upload(`${n}`, `${n}`.length, create), 'BlobAlreadyExists');
    assert.equal(await textOf(blob), `${first}`);
    const { etag } = await blob.getProperties();
    const same = { conditions: { ifMatch: etag } };
    const second = await oneOf((n) => blob.setMetadata({ n: `${n}` }, same), 'ConditionNotMet');
    assert.deepEqual((await blob.getProperties()).metadata, { n: `${second}` });
    await oneOf(() => blob.getBlobLeaseClient().acquireLease(15), 'LeaseAlreadyPresent');
    const log = container.getAppendBlobClient('log');
    await log.create();
    const begin = { conditions: { appendPosition: 0 } };
    const third = await oneOf(
      (n) => log.appendBlock(`${n}`, `${n}`.length, begin), 'AppendPositionConditionNotMet',
    );
    assert.equal(await textOf(log), `${third}`);
  });

  test('a read has one of the contents that are written meanwhile', async () => {
    const blob = await clients.blob('start');
    const texts = WRITERS.map((n) => `${n} `.repeat(50_000));
    const writes = Promise.all(texts.map((text) => blob.upload(text, text.length)));
    const allowed = new Set(['start', ...texts]);
    for (const _ of WRITERS) {
      const { readableStreamBody } = await blob.download();
      assert.ok(allowed.has((await collected(readableStreamBody)).toString()), 'a whole content');
    }
    await writes;
    assert.ok(texts.includes(await textOf(blob)));
  });
});

describe('snapshots', () => {
  test('a snapshot keeps what the blob was', async () => {
    const blob = await clients.blob('old', { metadata: { k: 'v' } });
    const { snapshot, etag } = await blob.createSnapshot();
    assert.equal(etag, (await blob.getProperties()).etag);
    await blob.upload('new', 3);
    const kept = blob.withSnapshot(snapshot);
    assert.ok(kept instanceof BlockBlobClient);
    assert.equal(new BlobClient(blob.url, credential).withSnapshot(snapshot).url, kept.url);
    assert.equal(await textOf(kept), 'old');
    assert.deepEqual((await kept.getProperties()).metadata, { k: 'v' });
    const other = await blob.createSnapshot({ metadata: { own: '1' } });
    assert.ok(other.snapshot > snapshot);
    const second = blob.withSnapshot(other.snapshot);
    assert.deepEqual((await second.getProperties()).metadata, { own: '1' });
    await rejected(kept.setMetadata({}), 400, 'InvalidQueryParameterValue');
    await rejected(blob.delete(), 409, 'SnapshotsPresent');
    await kept.delete();
    await rejected(kept.getProperties(), 404, 'BlobNotFound');
    await blob.delete({ deleteSnapshots: 'only' });
    await rejected(second.download(), 404, 'BlobNotFound');
    await blob.createSnapshot();
    await blob.delete({ deleteSnapshots: 'include' });
    assert.equal(await blob.exists(), false);
  });

  test('without versions, a version is not found', async () => {
    const blob = await clients.blob();
    assert.equal((await blob.getProperties()).versionId, undefined);
    const version = new BlobClient(blob.url, credential, once).withVersion('2026-01-01T00:00:00.0000000Z');
    await rejected(version.download(), 404, 'BlobNotFound');
  });
});

describe('copies', () => {
  test('a blob is copied with its properties, or with other metadata and tags', async () => {
    const source = await clients.blob('text', {
      blobHTTPHeaders: { blobContentType: 'a/b' }, metadata: { k: 'v' }, tags: { t: '1' },
    });
    const target = (await clients.container()).getBlobClient('ä copy');
    const poller = await target.beginCopyFromURL(source.url);
    const done = await poller.pollUntilDone();
    assert.equal(done.copyStatus, 'success');
    const got = await target.getProperties();
    assert.deepEqual([got.contentType, got.metadata, got.copyId], ['a/b', { k: 'v' }, done.copyId]);
    assert.deepEqual([got.copyStatus, got.copyProgress], ['success', '4/4']);
    assert.equal(got.copySource, source.url);
    assert.equal(await textOf(target), 'text');
    assert.equal(got.tagCount, undefined);
    const settings = { metadata: { own: '1' }, tags: { own: '2' }, tier: 'Cool' };
    const again = await target.beginCopyFromURL(source.url, settings);
    await again.pollUntilDone();
    const other = await target.getProperties();
    assert.deepEqual([other.metadata, other.tagCount], [{ own: '1' }, 1]);
    assert.equal(other.accessTier, 'Cool');
    await rejected(target.abortCopyFromURL(done.copyId), 409, 'NoPendingCopyOperation');
  });

  test('a copy has conditions on both sides, and its source may be a snapshot', async () => {
    const source = await clients.blob('old');
    const { snapshot } = await source.createSnapshot();
    await source.upload('new', 3);
    const target = (await clients.container()).getBlobClient('x');
    const copy = (url, settings) => target.syncCopyFromURL(url, settings);
    const { copyStatus } = await copy(source.withSnapshot(snapshot).url);
    assert.deepEqual([copyStatus, await textOf(target)], ['success', 'old']);
    const stale = { sourceConditions: { ifMatch: STALE } };
    await rejected(copy(source.url, stale), 412, 'SourceConditionNotMet');
    await rejected(
      copy(source.url, { conditions: { ifMatch: STALE } }), 412, 'ConditionNotMet',
    );
    assert.equal(await textOf(target), 'old');
    const promote = await source.beginCopyFromURL(source.withSnapshot(snapshot).url);
    await promote.pollUntilDone();
    assert.equal(await textOf(source), 'old');
    await rejected(copy(`${source.url}x`), 404, 'BlobNotFound');
  });
});

test('a missing container is not found', async () => {
  const blob = clients.service().getContainerClient(world.name()).getBlockBlobClient('x');
  await rejected(blob.upload('x', 1), 404, 'ContainerNotFound');
  await rejected(blob.download(), 404, 'ContainerNotFound');
  await rejected(blob.getProperties(), 404, 'ContainerNotFound');
  assert.equal(await blob.exists(), false);
});

test('what this server has not is not implemented', async () => {
  const blob = await clients.blob('a,b\n');
  const expiriesOn = new Date(Date.now() + 3600 * SECOND);
  await rejected(blob.query('select * from BlobStorage'), 501, 'NotImplemented');
  await rejected(blob.setLegalHold(true), 501, 'NotImplemented');
  await rejected(blob.deleteImmutabilityPolicy(), 501, 'NotImplemented');
  const policy = { expiriesOn, policyMode: 'Unlocked' };
  await rejected(blob.setImmutabilityPolicy(policy), 501, 'NotImplemented');
});
