'use strict';
// The real Azurite on free ports, with clients of the real libraries.

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const readline = require('node:readline');

const { AzureNamedKeyCredential, TableClient } = require('@azure/data-tables');
const { BlobServiceClient, StorageSharedKeyCredential: BlobKey } = require('@azure/storage-blob');
const { QueueServiceClient, StorageSharedKeyCredential } = require('@azure/storage-queue');

const READY_MS = 60_000;
const ACCOUNT = 'devstoreaccount1';
// The key of every emulator.
const KEY =
  'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const PROGRAM = path.join(__dirname, 'node_modules', 'azurite', 'dist', 'src', 'azurite.js');

/** Starts Azurite on a directory and waits until its services listen. */
async function start(directory) {
  const ports = ['--blobPort', '0', '--queuePort', '0', '--tablePort', '0'];
  const args = [PROGRAM, '--location', directory, '--skipApiVersionCheck', ...ports];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const found = {};
  const lines = readline.createInterface({ input: child.stdout });
  // One listener for all of it: lines that come together would pass one that is made anew for each.
  const ready = new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      const match = /Azurite (\w+) service is successfully listening at (\S+)/.exec(line);
      if (match) found[match[1]] = `${match[2]}/${ACCOUNT}`;
      if (found.Table && found.Queue && found.Blob) resolve();
    });
    child.once('exit', (code) => reject(new Error(`Azurite ended with ${code}`)));
    AbortSignal.timeout(READY_MS).onabort = () => reject(new Error('Azurite does not get ready'));
  });
  await ready.catch((error) => {
    child.kill('SIGKILL');
    throw error;
  });
  const stop = async () => {
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    await exit;
  };
  const key = new AzureNamedKeyCredential(ACCOUNT, KEY);
  const options = { allowInsecureConnection: true };
  const queues = new QueueServiceClient(found.Queue, new StorageSharedKeyCredential(ACCOUNT, KEY));
  const blobs = new BlobServiceClient(found.Blob, new BlobKey(ACCOUNT, KEY));
  return {
    tables: found.Table,
    queues: found.Queue,
    connection:
      `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};` +
      `TableEndpoint=${found.Table};QueueEndpoint=${found.Queue};BlobEndpoint=${found.Blob};`,
    table: (name) => new TableClient(found.Table, name, key, options),
    container: (name) => blobs.getContainerClient(name),
    queue: (name) => queues.getQueueClient(name),
    stop,
  };
}

module.exports = { start, ACCOUNT, KEY };
