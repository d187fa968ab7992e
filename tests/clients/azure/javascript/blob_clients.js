'use strict';
// Clients of blobs for the suites of @azure/storage-blob, which try each request once.

const {
  AnonymousCredential, BlobServiceClient, StorageSharedKeyCredential, newPipeline,
} = require('@azure/storage-blob');
const { ACCOUNT, KEY } = require('./target');

const credential = new StorageSharedKeyCredential(ACCOUNT, KEY);
const once = { retryOptions: { maxTries: 1 } };
const unsigned = newPipeline(new AnonymousCredential(), once);

/** What makes the containers and blobs of the tests of a file. */
function clientsOf(world) {
  // A client that mints signatures needs its credential, not only a pipeline.
  const service = () => new BlobServiceClient(world.blob, credential, once);
  /** The client of a new container. */
  const container = async (settings) => {
    const client = service().getContainerClient(world.name());
    await client.create(settings);
    return client;
  };
  /** The client of a new block blob in a container of its own. */
  const blob = async (text = 'hello', settings = undefined) => {
    const client = (await container()).getBlockBlobClient('dir/a b.txt');
    await client.upload(text, Buffer.byteLength(text), settings);
    return client;
  };
  return { service, container, blob };
}

/** The content of a blob, or of bytes of it, as text. */
async function textOf(client, ...range) {
  return (await client.downloadToBuffer(...range)).toString();
}

/** All bytes of a stream. */
async function collected(stream) {
  return Buffer.concat(await stream.toArray());
}

module.exports = { clientsOf, collected, credential, once, textOf, unsigned };
