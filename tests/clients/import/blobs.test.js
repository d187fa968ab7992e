'use strict';
// `trestle import` of blobs from the real Azurite: its files, and its REST protocol.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const crypto = require('node:crypto');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { after, before, describe, it } = require('node:test');

const { BlobServiceClient, StorageSharedKeyCredential } = require('@azure/storage-blob');

const azurite = require('./azurite');
const { start, temporaryDirectory } = require('../javascript/server');

const PROGRESS_MS = 60_000;
const MANY = 1200;
const LARGE_BYTES = 9 * 1024 * 1024 + 7;

/** Runs a command against a server: its exit code, its output, and its errors. */
async function trestle(server, args, { kill } = {}) {
  const child = spawn(process.env.TRESTLE_BIN, [...args, '--endpoint', `http://${server.grpc}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text));
  const ended = once(child, 'close');
  if (kill) {
    await kill();
    child.kill('SIGKILL');
  }
  const [code, signal] = await ended;
  const lines = output.startsWith('{') ? output.split('\n').filter(Boolean).map(JSON.parse) : [];
  return { code, signal, output, errors, lines };
}

/** What a client library reports of every state of every blob of a container, and its content. */
async function everything(container, { snapshots }) {
  const found = [];
  const include = { includeMetadata: true, includeTags: true, includeSnapshots: snapshots };
  for await (const item of container.listBlobsFlat(include)) {
    const blob = container.getBlobClient(item.name);
    const state = item.snapshot ? blob.withSnapshot(item.snapshot) : blob;
    const { properties } = item;
    const isArchived = properties.accessTier === 'Archive';
    const content = isArchived ? Buffer.alloc(0) : await state.downloadToBuffer();
    found.push({
      name: item.name,
      snapshot: item.snapshot || undefined,
      type: properties.blobType,
      size: properties.contentLength,
      contentType: properties.contentType,
      cacheControl: properties.cacheControl || undefined,
      contentLanguage: properties.contentLanguage || undefined,
      contentEncoding: properties.contentEncoding || undefined,
      contentDisposition: properties.contentDisposition || undefined,
      tier: properties.accessTier,
      sequenceNumber: properties.blobSequenceNumber,
      isSealed: Boolean(properties.isSealed),
      metadata: item.metadata || {},
      tags: item.tags ?? {},
      hash: crypto.createHash('sha256').update(content).digest('hex'),
    });
  }
  // Snapshots by age, each before its blob; their times are those of the copy.
  const key = ({ name, snapshot }) => `${name}\n${snapshot ?? '~'}`;
  found.sort((first, second) => (key(first) < key(second) ? -1 : 1));
  return found.map(({ snapshot, ...blob }) => ({ ...blob, isSnapshot: Boolean(snapshot) }));
}

async function fill(source) {
  const docs = source.container('docs');
  await docs.create({ metadata: { Owner: 'me' } });
  const [startsOn, expiresOn] = [new Date('2026-01-01'), new Date('2027-01-01')];
  const accessPolicy = { startsOn, expiresOn, permissions: 'racwdl' };
  await docs.setAccessPolicy('blob', [{ id: 'p1', accessPolicy }]);
  const text = docs.getBlockBlobClient('a/ü 1 +%.txt');
  await text.upload('before', 6, { tier: 'Cool', metadata: { Old: 'x' } });
  await text.createSnapshot();
  await text.upload('between', 7, { metadata: { Old: 'y' } });
  await text.createSnapshot();
  await text.upload('hello', 5, {
    blobHTTPHeaders: {
      blobContentType: 'text/plain',
      blobCacheControl: 'no-cache',
      blobContentLanguage: 'de',
      blobContentDisposition: 'inline',
    },
    metadata: { Kind: 'v' },
    tags: { project: 'x y', state: 'new' },
  });
  await docs.getBlockBlobClient(' leading and trailing ').upload('space', 5);
  await docs.getBlockBlobClient('empty').upload('', 0);
  const large = Buffer.from(Array.from({ length: LARGE_BYTES }, (_, at) => (at * 31) >> 7));
  await docs.getBlockBlobClient('large').uploadData(large, { maxSingleShotSize: 1024, blockSize: 4e6 });
  await docs.getBlockBlobClient('staged').stageBlock('MQ==', 'abc', 3);
  const log = docs.getAppendBlobClient('log');
  await log.create();
  for (const block of ['one', 'two!', 'three']) await log.appendBlock(block, block.length);
  const sealed = docs.getAppendBlobClient('sealed');
  await sealed.create();
  await sealed.appendBlock('x', 1);
  await sealed.seal();
  const disk = docs.getPageBlobClient('disk');
  await disk.create(1024 * 1024, { blobSequenceNumber: 7 });
  await disk.uploadPages(Buffer.alloc(1024, 1), 512, 1024);
  await disk.createSnapshot();
  await disk.uploadPages(Buffer.alloc(512, 2), 65_536, 512);
  await disk.clearPages(512, 512);
  const many = source.container('many');
  await many.create();
  for (let first = 0; first < MANY; first += 50) {
    const names = Array.from({ length: 50 }, (_, at) => String(first + at).padStart(5, '0'));
    await Promise.all(names.map((name) => many.getBlockBlobClient(name).upload(name, 5)));
  }
}

describe('blobs from the real Azurite', () => {
  let source;
  let workspace;
  const started = [];

  /** A server on an empty directory, and clients of its containers. */
  async function fresh() {
    const data = temporaryDirectory();
    const server = await start(data.directory);
    started.push(async () => {
      await server.kill();
      data.remove();
    });
    const key = new StorageSharedKeyCredential(azurite.ACCOUNT, azurite.KEY);
    const blobs = new BlobServiceClient(`http://${server.azure_blob}/${azurite.ACCOUNT}`, key);
    return Object.assign(server, { container: (name) => blobs.getContainerClient(name) });
  }

  before(async () => {
    workspace = temporaryDirectory();
    source = await azurite.start(path.join(workspace.directory, 'ws'));
    await fill(source);
  });

  after(async () => {
    for (const end of started) await end();
    if (source) await source.stop();
    workspace.remove();
  });

  async function check(server, expected, { snapshots }) {
    assert.deepEqual(await everything(server.container('docs'), { snapshots }), expected);
    const docs = await server.container('docs').getProperties();
    assert.deepEqual(docs.metadata, { owner: 'me' });
    const { blobPublicAccess, signedIdentifiers } = await server.container('docs').getAccessPolicy();
    assert.equal(blobPublicAccess, 'blob');
    assert.deepEqual(signedIdentifiers.map(({ id, accessPolicy }) => [id, accessPolicy.permissions]), [
      ['p1', 'racwdl'],
    ]);
    const { pageRange } = await server.container('docs').getPageBlobClient('disk').getPageRanges();
    // The library counts one byte less than a range has.
    assert.deepEqual(pageRange.map(({ offset, count }) => [offset, count + 1]), [
      [1024, 512],
      [65_536, 512],
    ]);
    const { lines } = await trestle(server, ['blob', 'ls', 'many', '--json']);
    assert.equal(lines.length, MANY);
  }

  it('a running account is copied with every type, property, tag and snapshot', async () => {
    const server = await fresh();
    const checkpoint = path.join(workspace.directory, 'account.checkpoint');
    const expected = await everything(source.container('docs'), { snapshots: true });

    const from = ['import', 'azure', source.connection, '--checkpoint', checkpoint];
    const { code, lines, errors } = await trestle(server, [...from, '--snapshots', '--json']);

    assert.equal(code, 0, errors);
    const { containers, blobs, match } = lines.at(-1);
    assert.deepEqual([containers, blobs, match], [2, expected.length + MANY, true]);
    await check(server, expected, { snapshots: true });
    assert.ok(!fs.existsSync(checkpoint), 'the checkpoint is removed');
  });

  it('a blob that is archived in the account is named and the others are copied', async () => {
    const server = await fresh();
    const checkpoint = path.join(workspace.directory, 'archived.checkpoint');
    const archived = source.container('docs').getBlockBlobClient('archived');
    await archived.upload('cold', 4, { tier: 'Archive' });
    const expected = await everything(source.container('docs'), { snapshots: false });

    const args = ['import', 'azure', source.connection, '--checkpoint', checkpoint];
    const ended = await trestle(server, args);

    assert.equal(ended.code, 1, JSON.stringify(ended));
    assert.match(ended.output, /not copied: container `docs`, blob `archived`: /);
    const others = expected.filter((blob) => blob.name !== 'archived');
    await check(server, others, { snapshots: false });
    await archived.delete();
  });

  it('an import that is killed resumes and copies each blob once', async () => {
    const server = await fresh();
    const checkpoint = path.join(workspace.directory, 'killed.checkpoint');
    const args = ['import', 'azure', source.connection, '--checkpoint', checkpoint, '--snapshots'];
    const saved = () => (fs.existsSync(checkpoint) ? fs.readFileSync(checkpoint, 'utf8') : '');
    const deadline = Date.now() + PROGRESS_MS;
    const expected = await everything(source.container('docs'), { snapshots: true });

    const killed = await trestle(server, [...args, '--parallel', '1'], {
      kill: async () => {
        while (!saved().includes('"done":["') && Date.now() < deadline) {
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      },
    });

    assert.equal(killed.signal, 'SIGKILL', 'it was killed on the way');
    const { code, lines, errors } = await trestle(server, [...args, '--resume', '--json']);
    assert.equal(code, 0, errors);
    assert.equal(lines.at(-1).match, true);
    assert.equal(lines.find((line) => line.container === 'many').written, MANY);
    await check(server, expected, { snapshots: true });
  });

  it('the files of a stopped Azurite are copied whole', async () => {
    const archived = source.container('docs').getBlockBlobClient('archived');
    await archived.upload('cold', 4, { tier: 'Archive' });
    const expected = await everything(source.container('docs'), { snapshots: true });
    await source.stop();
    source = undefined;
    const server = await fresh();
    const directory = path.join(workspace.directory, 'ws');

    const { code, lines, errors } = await trestle(server, [
      ...['import', 'azurite', directory, '--snapshots', '--json'],
    ]);

    assert.equal(code, 0, errors + JSON.stringify(lines));
    const { containers, blobs, not_copied: notCopied, match } = lines.at(-1);
    assert.deepEqual([containers, blobs, notCopied, match], [2, expected.length + MANY, 0, true]);
    await check(server, expected, { snapshots: true });
    source = await azurite.start(directory);
  });
});
