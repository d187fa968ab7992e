'use strict';
// Append blobs and page blobs, through @azure/storage-blob.

const assert = require('node:assert/strict');
const crypto = require('node:crypto');
const { describe } = require('node:test');
const { AppendBlobClient, PageBlobClient } = require('@azure/storage-blob');
const { clientsOf, textOf } = require('./blob_clients');
const { listed, paged, rejected, suite, test } = require('./target');

const world = suite();
const clients = clientsOf(world);
const md5 = (data) => crypto.createHash('md5').update(data).digest();
const PAGE = 512;
const page = (text) => Buffer.alloc(PAGE, text);
// The client counts the bytes of a range without its last byte.
const rangesOf = (ranges) => (ranges ?? []).map(({ offset, count }) => [offset / PAGE, (count + 1) / PAGE]);
const pagesOf = (ranges) => (ranges ?? []).map(({ start, end }) => [start / PAGE, (end + 1 - start) / PAGE]);

/** The client of a new append blob in a container of its own. */
async function appended(...texts) {
  const blob = (await clients.container()).getAppendBlobClient('log');
  await blob.create();
  for (const text of texts) await blob.appendBlock(text, text.length);
  return blob;
}

/** The client of a new page blob in a container of its own. */
async function paginated(pages, settings) {
  const blob = (await clients.container()).getPageBlobClient('disk');
  await blob.create(pages * PAGE, settings);
  return blob;
}

describe('append blobs', () => {
  test('blocks are appended, with their positions and checksums', async () => {
    const blob = await appended('one');
    const answer = await blob.appendBlock('two', 3, { transactionalContentMD5: md5('two') });
    assert.deepEqual([answer.blobAppendOffset, answer.blobCommittedBlockCount], ['3', 2]);
    assert.deepEqual(Buffer.from(answer.contentMD5), md5('two'));
    const wrong = { transactionalContentMD5: md5('three') };
    await rejected(blob.appendBlock('two', 3, wrong), 400, 'Md5Mismatch');
    assert.equal(await textOf(blob), 'onetwo');
    const { blobType, blobCommittedBlockCount } = await blob.getProperties();
    assert.deepEqual([blobType, blobCommittedBlockCount], ['AppendBlob', 2]);
    await blob.create();
    assert.equal(await textOf(blob), '');
    assert.equal((await blob.createIfNotExists()).succeeded, false);
    await blob.delete();
    await rejected(blob.appendBlock('x', 1), 404, 'BlobNotFound');
    assert.equal((await blob.createIfNotExists({ metadata: { k: 'v' } })).succeeded, true);
    assert.deepEqual((await blob.getProperties()).metadata, { k: 'v' });
  });

  test('an append has a position and a maximum size as conditions', async () => {
    const blob = await appended('one');
    const append = (conditions) => blob.appendBlock('two', 3, { conditions });
    await append({ appendPosition: 3 });
    await rejected(append({ appendPosition: 3 }), 412, 'AppendPositionConditionNotMet');
    await rejected(append({ maxSize: 8 }), 412, 'MaxBlobSizeConditionNotMet');
    await append({ maxSize: 9 });
    await rejected(append({ ifNoneMatch: '*' }), 412, 'ConditionNotMet');
    assert.equal(await textOf(blob), 'onetwotwo');
  });

  test('appends of many clients at once are all kept, each in one piece', async () => {
    const blob = await appended();
    const texts = [...Array(16).keys()].map((n) => `${n}`.padStart(2, '0').repeat(500));
    const offsets = await Promise.all(texts.map(async (text) => {
      return +(await blob.appendBlock(text, text.length)).blobAppendOffset;
    }));
    assert.deepEqual([...offsets].sort((one, other) => one - other), texts.map((_, n) => n * 1000));
    const content = await textOf(blob);
    for (const [n, offset] of offsets.entries()) {
      assert.equal(content.slice(offset, offset + 1000), texts[n]);
    }
  });

  test('a block is appended from a URL', async () => {
    const source = await clients.blob('0123456789');
    const blob = await appended('>');
    const answer = await blob.appendBlockFromURL(source.url, 4, 3, { sourceContentMD5: md5('456') });
    assert.equal(answer.blobAppendOffset, '1');
    const { etag } = await source.getProperties();
    const conditions = { sourceConditions: { ifNoneMatch: etag } };
    await rejected(
      blob.appendBlockFromURL(source.url, 0, 1, conditions), 412, 'SourceConditionNotMet',
    );
    assert.equal(await textOf(blob), '>456');
  });

  test('nothing is appended to a sealed blob, and its type stays', async () => {
    const blob = await appended('one');
    const { etag } = await blob.getProperties();
    await blob.seal();
    await blob.seal({ conditions: { ifMatch: etag } });
    await rejected(blob.appendBlock('two', 3), 409, 'BlobIsSealed');
    const got = await blob.getProperties();
    assert.deepEqual([got.isSealed, got.etag], [true, etag]);
    const block = blob.getBlockBlobClient();
    await rejected(block.upload('x', 1), 409, 'InvalidBlobType');
    await rejected(block.stageBlock('AAAA', 'x', 1), 409, 'InvalidBlobType');
    await rejected(blob.getPageBlobClient().clearPages(0, PAGE), 409, 'InvalidBlobType');
    await rejected((await clients.blob()).getAppendBlobClient().seal(), 409, 'InvalidBlobType');
    assert.equal(await textOf(blob), 'one');
  });

  test('a snapshot keeps what was appended until then', async () => {
    const blob = await appended('one');
    const { snapshot } = await blob.createSnapshot();
    await blob.appendBlock('two', 3);
    const kept = blob.withSnapshot(snapshot);
    assert.ok(kept instanceof AppendBlobClient);
    assert.deepEqual([await textOf(kept), await textOf(blob)], ['one', 'onetwo']);
  });
});

describe('page blobs', () => {
  test('pages are written, cleared and listed', async () => {
    const blob = await paginated(8);
    assert.equal((await blob.getProperties()).contentLength, 8 * PAGE);
    assert.deepEqual(await blob.downloadToBuffer(), Buffer.alloc(8 * PAGE));
    const pages = Buffer.concat([page('a'), page('b')]);
    await blob.uploadPages(pages, PAGE, 2 * PAGE, { transactionalContentMD5: md5(pages) });
    await blob.uploadPages(page('c'), 3 * PAGE, PAGE);
    await blob.uploadPages(page('d'), 6 * PAGE, PAGE);
    assert.deepEqual(rangesOf((await blob.getPageRanges()).pageRange), [[1, 3], [6, 1]]);
    await blob.clearPages(2 * PAGE, PAGE);
    const listing = await blob.getPageRanges(0, 4 * PAGE);
    assert.deepEqual(rangesOf(listing.pageRange), [[1, 1], [3, 1]]);
    assert.deepEqual(pagesOf(await listed(blob.listPageRanges())), [[1, 1], [3, 1], [6, 1]]);
    const found = await paged(blob.listPageRanges(), { maxPageSize: 2 });
    assert.deepEqual(pagesOf(found.flatMap((one) => one.pageRange ?? [])), [[1, 1], [3, 1], [6, 1]]);
    const expected = [0, 'a', 0, 'c', 0, 0, 'd', 0].map(page);
    assert.deepEqual(await blob.downloadToBuffer(), Buffer.concat(expected));
  });

  test('pages that are not aligned, or are beyond the end, are rejected', async () => {
    const blob = await paginated(2);
    await rejected(blob.uploadPages(page('a'), 1, PAGE), 416, 'InvalidPageRange');
    await rejected(blob.uploadPages(page('a'), 2 * PAGE, PAGE), 416, 'InvalidPageRange');
    await rejected(blob.clearPages(0, PAGE + 1), 416, 'InvalidPageRange');
    await rejected((await clients.container()).getPageBlobClient('x').create(1), 400, 'InvalidHeaderValue');
    await rejected((await clients.blob()).getPageBlobClient().uploadPages(page('a'), 0, PAGE),
      409, 'InvalidBlobType');
  });

  test('a page blob is resized', async () => {
    const blob = await paginated(2, { blobHTTPHeaders: { blobContentType: 'a/b' } });
    await blob.uploadPages(Buffer.concat([page('a'), page('b')]), 0, 2 * PAGE);
    await blob.resize(PAGE);
    await blob.resize(3 * PAGE);
    assert.deepEqual(await blob.downloadToBuffer(), Buffer.concat(['a', 0, 0].map(page)));
    assert.equal((await blob.getProperties()).contentType, 'a/b');
    await rejected(blob.resize(1), 400, 'InvalidHeaderValue');
    assert.equal((await blob.createIfNotExists(PAGE)).succeeded, false);
    await blob.delete();
    assert.equal((await blob.createIfNotExists(PAGE)).succeeded, true);
  });

  test('sequence numbers are changed, and are conditions', async () => {
    const blob = await paginated(1, { blobSequenceNumber: 5 });
    const number = async () => (await blob.getProperties()).blobSequenceNumber;
    assert.equal(await number(), 5);
    await blob.updateSequenceNumber('max', 3);
    assert.equal(await number(), 5);
    await blob.updateSequenceNumber('max', 8);
    await blob.updateSequenceNumber('increment');
    assert.equal(await number(), 9);
    await blob.updateSequenceNumber('update', 2);
    const write = (conditions) => blob.uploadPages(page('a'), 0, PAGE, { conditions });
    for (const conditions of [
      { ifSequenceNumberEqualTo: 2 }, { ifSequenceNumberLessThan: 3 },
      { ifSequenceNumberLessThanOrEqualTo: 2 },
    ]) {
      assert.equal((await write(conditions)).blobSequenceNumber, 2);
    }
    for (const conditions of [
      { ifSequenceNumberEqualTo: 3 }, { ifSequenceNumberLessThan: 2 },
      { ifSequenceNumberLessThanOrEqualTo: 1 },
    ]) {
      await rejected(write(conditions), 412, 'SequenceNumberConditionNotMet');
    }
  });

  test('pages are written from a URL', async () => {
    const source = await clients.blob('x'.repeat(PAGE) + 'y'.repeat(PAGE));
    const blob = await paginated(3);
    await blob.uploadPagesFromURL(source.url, PAGE, 2 * PAGE, PAGE);
    assert.deepEqual(await blob.downloadToBuffer(), Buffer.concat([0, 0, 'y'].map(page)));
    const { etag } = await source.getProperties();
    await rejected(
      blob.uploadPagesFromURL(source.url, 0, 0, PAGE, { sourceConditions: { ifNoneMatch: etag } }),
      412, 'SourceConditionNotMet',
    );
  });

  test('the difference from a snapshot has what was written and cleared', async () => {
    const blob = await paginated(8);
    await blob.uploadPages(Buffer.concat([page('a'), page('b')]), 0, 2 * PAGE);
    const { snapshot } = await blob.createSnapshot();
    const kept = blob.withSnapshot(snapshot);
    assert.ok(kept instanceof PageBlobClient);
    await blob.clearPages(0, PAGE);
    await blob.uploadPages(page('c'), 4 * PAGE, PAGE);
    const size = 8 * PAGE;
    const { pageRange, clearRange } = await blob.getPageRangesDiff(0, size, snapshot);
    assert.deepEqual([rangesOf(pageRange), rangesOf(clearRange)], [[[4, 1]], [[0, 1]]]);
    const all = await listed(blob.listPageRangesDiff(0, size, snapshot));
    const seen = all.map(({ start, end, isClear }) => [start / PAGE, (end + 1) / PAGE, isClear]);
    assert.deepEqual(seen.sort(), [[0, 1, true], [4, 5, false]]);
    assert.deepEqual(rangesOf((await kept.getPageRanges()).pageRange), [[0, 2]]);
    const later = '2099-01-01T00:00:00.0000000Z';
    await assert.rejects(blob.getPageRangesDiff(0, size, later), { name: 'RestError' });
  });

  test('what this server has not is not implemented', async () => {
    const blob = await paginated(1);
    const { snapshot } = await blob.createSnapshot();
    const kept = blob.withSnapshot(snapshot).url;
    const copy = (await clients.container()).getPageBlobClient('copy');
    await rejected(copy.startCopyIncremental(kept), 501, 'NotImplemented');
  });
});
