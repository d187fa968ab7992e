'use strict';
// Contents of many MiB both ways, and retries of lost requests, through @azure/storage-blob.

const assert = require('node:assert/strict');
const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { Readable, Writable } = require('node:stream');
const { pipeline } = require('node:stream/promises');
const { describe } = require('node:test');
const { BlobServiceClient } = require('@azure/storage-blob');
const { temporaryDirectory } = require('../../javascript/server');
const { clientsOf, collected, credential, textOf } = require('./blob_clients');
const { proxyTo } = require('./proxy');
const { ACCOUNT, rejected, start, suite, test } = require('./target');

const world = suite();
const clients = clientsOf(world);
const MIB = 1024 * 1024;
// More than one block of each client, and no whole number of them.
const CONTENT = crypto.randomBytes(37 * MIB + 11);
const hashOf = (data) => crypto.createHash('sha256').update(data).digest('hex');
const HASH = hashOf(CONTENT);
const BLOCKS = { blockSize: 4 * MIB, maxSingleShotSize: MIB, concurrency: 4 };

const newBlob = async () => (await clients.container()).getBlockBlobClient('large');
const blocksOf = async (blob) => (await blob.getBlockList('committed')).committedBlocks ?? [];

/** The content in pieces; calls `each` with the position of each. */
function* pieces(each = () => {}) {
  for (let at = 0; at < CONTENT.length; at += 100_000) {
    each(at);
    yield CONTENT.subarray(at, at + 100_000);
  }
}

/** The hash of a stream, which is never in memory as a whole. */
async function hashOfStream(stream) {
  const hash = crypto.createHash('sha256');
  await pipeline(stream, new Writable({
    write(chunk, _, done) {
      hash.update(chunk);
      done();
    },
  }));
  return hash.digest('hex');
}

describe('large contents', () => {
  test('a content is written by one request, and read as a stream', async () => {
    const blob = await newBlob();
    const { contentMD5 } = await blob.upload(CONTENT, CONTENT.length);
    const md5 = crypto.createHash('md5').update(CONTENT).digest();
    assert.deepEqual(Buffer.from(contentMD5), md5);
    const { readableStreamBody, contentLength } = await blob.download();
    assert.equal(contentLength, CONTENT.length);
    assert.equal(await hashOfStream(readableStreamBody), HASH);
    assert.deepEqual(await blocksOf(blob), []);
  });

  test('a buffer is written as blocks at once, and read as ranges at once', async () => {
    const blob = await newBlob();
    const progress = [];
    await blob.uploadData(CONTENT, {
      ...BLOCKS, onProgress: ({ loadedBytes }) => progress.push(loadedBytes),
      blobHTTPHeaders: { blobContentType: 'a/b' },
    });
    assert.equal(progress.at(-1), CONTENT.length);
    assert.equal((await blocksOf(blob)).length, 10);
    assert.equal((await blob.getProperties()).contentType, 'a/b');
    const all = await blob.downloadToBuffer(0, undefined, { blockSize: 3 * MIB, concurrency: 4 });
    assert.equal(hashOf(all), HASH);
    const middle = await blob.downloadToBuffer(5 * MIB - 1, 9 * MIB, { blockSize: 2 * MIB });
    assert.equal(hashOf(middle), hashOf(CONTENT.subarray(5 * MIB - 1, 14 * MIB - 1)));
  });

  test('a stream of unknown length is written as blocks', async () => {
    const blob = await newBlob();
    await blob.uploadStream(Readable.from(pieces()), 5 * MIB, 3, { metadata: { k: 'v' } });
    assert.equal(hashOf(await blob.downloadToBuffer()), HASH);
    assert.deepEqual((await blob.getProperties()).metadata, { k: 'v' });
    await blob.uploadStream(Readable.from([]));
    assert.equal((await blob.getProperties()).contentLength, 0);
  });

  test('a file is written and read', async (context) => {
    const { directory, remove } = temporaryDirectory();
    context.after(remove);
    const [from, to] = ['from', 'to'].map((name) => path.join(directory, name));
    fs.writeFileSync(from, CONTENT);
    const blob = await newBlob();
    await blob.uploadFile(from, BLOCKS);
    await blob.downloadToFile(to);
    assert.equal(hashOf(fs.readFileSync(to)), HASH);
    await blob.downloadToFile(to, MIB, 10);
    assert.deepEqual(fs.readFileSync(to), CONTENT.subarray(MIB, MIB + 10));
  });

  test('an append blob has the data of many large blocks in their order', async () => {
    const blob = (await clients.container()).getAppendBlobClient('log');
    await blob.create();
    for (let at = 0; at < CONTENT.length; at += 7 * MIB) {
      const part = CONTENT.subarray(at, at + 7 * MIB);
      await blob.appendBlock(part, part.length, { conditions: { appendPosition: at } });
    }
    assert.equal(hashOf(await blob.downloadToBuffer()), HASH);
  });

  test('a read gives one state of a blob that is overwritten meanwhile', async () => {
    const blob = await newBlob();
    await blob.upload(CONTENT, CONTENT.length);
    const { readableStreamBody } = await blob.download();
    await blob.upload('new', 3);
    assert.equal(await hashOfStream(readableStreamBody), HASH);
    assert.equal(await textOf(blob), 'new');
  });

  test('an upload that the client ends leaves the blob as it was', async () => {
    const blob = await newBlob();
    await blob.upload('old', 3);
    const abort = new AbortController();
    const body = () => Readable.from(pieces((at) => at > 5 * MIB && abort.abort()));
    await assert.rejects(
      blob.upload(body, CONTENT.length, { abortSignal: abort.signal }), { name: 'AbortError' },
    );
    const other = new AbortController();
    const onProgress = ({ loadedBytes }) => loadedBytes > 5 * MIB && other.abort();
    const settings = { ...BLOCKS, abortSignal: other.signal, onProgress };
    await assert.rejects(blob.uploadData(CONTENT, settings), { name: 'AbortError' });
    assert.equal(await textOf(blob), 'old');
  });
});

describe('retries', () => {
  const settings = { retryOptions: { maxTries: 4, retryDelayInMs: 20 } };

  /** A client of a new container through a proxy that makes failures, and the proxy. */
  async function unreliable(context) {
    const proxy = await proxyTo(world.server.blob);
    context.after(proxy.close);
    const service = new BlobServiceClient(proxy.endpoint, credential, settings);
    const container = service.getContainerClient(world.name());
    await container.create();
    proxy.requests.length = 0;
    return [proxy, container];
  }

  test('a client tries again while the service is busy', async (context) => {
    const [proxy, container] = await unreliable(context);
    const blob = container.getBlockBlobClient('x');
    proxy.busy = 2;
    await blob.upload('text', 4);
    proxy.busy = 1;
    assert.equal(await textOf(blob), 'text');
    assert.deepEqual(proxy.requests, ['PUT', 'PUT', 'PUT', 'HEAD', 'HEAD', 'GET']);
  });

  test('blocks whose answers were lost are in the blob once', async (context) => {
    const [proxy, container] = await unreliable(context);
    const blob = container.getBlockBlobClient('x');
    proxy.busy = 2;
    proxy.lost = 3;
    await blob.uploadData(CONTENT, BLOCKS);
    assert.ok(proxy.requests.length > 12, `${proxy.requests.length} requests`);
    assert.equal((await blocksOf(blob)).length, 10);
    assert.equal(hashOf(await blob.downloadToBuffer()), HASH);
  });

  test('a list of blocks whose answer was lost is committed again', async (context) => {
    const [proxy, container] = await unreliable(context);
    const blob = container.getBlockBlobClient('x');
    await blob.stageBlock('AAAA', 'one', 3);
    proxy.lost = 1;
    await blob.commitBlockList(['AAAA', 'AAAA']);
    assert.deepEqual(proxy.requests, ['PUT', 'PUT', 'PUT']);
    assert.equal(await textOf(blob), 'oneone');
  });

  test('a condition shows that the lost request had its effect', async (context) => {
    const [proxy, container] = await unreliable(context);
    const log = container.getAppendBlobClient('log');
    await log.create();
    await log.appendBlock('one', 3);
    proxy.lost = 1;
    const next = { conditions: { appendPosition: 3 } };
    await rejected(log.appendBlock('two', 3, next), 412, 'AppendPositionConditionNotMet');
    assert.equal(await textOf(log), 'onetwo');
    proxy.lost = 1;
    const create = { conditions: { ifNoneMatch: '*' } };
    const blob = container.getBlockBlobClient('x');
    await rejected(blob.upload('new', 3, create), 409, 'BlobAlreadyExists');
    assert.equal(await textOf(blob), 'new');
    const { etag } = await blob.getProperties();
    proxy.lost = 1;
    await rejected(blob.upload('newer', 5, { conditions: { ifMatch: etag } }), 412, 'ConditionNotMet');
    assert.equal(await textOf(blob), 'newer');
    proxy.lost = 1;
    await rejected(blob.delete(), 404, 'BlobNotFound');
  });

  test('a read whose connection ends goes on where it was, of the same content only', async (context) => {
    const [proxy, container] = await unreliable(context);
    const blob = container.getBlockBlobClient('x');
    await blob.upload(CONTENT, CONTENT.length);
    proxy.cut = 10 * MIB;
    const { readableStreamBody, etag } = await blob.download();
    const read = [];
    await assert.rejects(async () => {
      for await (const part of readableStreamBody) read.push(part);
    });
    const begin = Buffer.concat(read);
    assert.ok(begin.length > 0 && begin.length <= 10 * MIB, `${begin.length} bytes`);
    const rest = () => blob.download(begin.length, undefined, { conditions: { ifMatch: etag } });
    const end = await collected((await rest()).readableStreamBody);
    assert.equal(hashOf(Buffer.concat([begin, end])), HASH);
    await blob.upload(Buffer.alloc(CONTENT.length), CONTENT.length);
    await rejected(rest(), 412, 'ConditionNotMet');
  });
});

test('what was answered is there after the server was killed', async () => {
  const { directory, remove } = temporaryDirectory();
  try {
    const first = await start(directory);
    const of = (server) => new BlobServiceClient(
      `http://${server.blob}/${ACCOUNT}`, credential,
    ).getContainerClient('kept');
    await of(first).create();
    await of(first).getBlockBlobClient('x').uploadData(CONTENT, BLOCKS);
    await of(first).getBlockBlobClient('staged').stageBlock('AAAA', 'x', 1);
    await first.kill();
    const second = await start(directory);
    try {
      assert.equal(hashOf(await of(second).getBlobClient('x').downloadToBuffer()), HASH);
      const { uncommittedBlocks } = await of(second).getBlockBlobClient('staged').getBlockList('all');
      assert.deepEqual(uncommittedBlocks.map((block) => block.name), ['AAAA']);
    } finally {
      assert.equal(await second.terminate(), 0);
    }
  } finally {
    remove();
  }
});
