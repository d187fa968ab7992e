'use strict';
// Retries of the clients while a server is busy.

const assert = require('node:assert/strict');
const { AzureNamedKeyCredential, TableClient } = require('@azure/data-tables');
const { QueueClient, StorageSharedKeyCredential } = require('@azure/storage-queue');
const { proxyTo } = require('./proxy');
const { ACCOUNT, KEY, listed, suite, test } = require('./target');

const world = suite();

test('a table client retries while the service is busy', async (context) => {
  const proxy = await proxyTo(world.server.table);
  context.after(proxy.close);
  const table = new TableClient(
    proxy.endpoint, world.name(), new AzureNamedKeyCredential(ACCOUNT, KEY),
    { allowInsecureConnection: true, retryOptions: { maxRetries: 4, retryDelayInMs: 50 } },
  );
  await table.createTable();
  proxy.busy = 2;
  await table.createEntity({ partitionKey: 'p', rowKey: 'r' });
  proxy.busy = 1;
  await table.submitTransaction([['upsert', { partitionKey: 'p', rowKey: 's' }]]);
  assert.equal((await listed(table.listEntities())).length, 2);
  assert.deepEqual(proxy.requests, ['POST', 'POST', 'POST', 'POST', 'POST', 'POST', 'GET']);
});

test('a queue client tries again while the service is busy', async (context) => {
  const proxy = await proxyTo(world.server.queue);
  context.after(proxy.close);
  const queue = new QueueClient(
    `${proxy.endpoint}/${world.name()}`, new StorageSharedKeyCredential(ACCOUNT, KEY),
    { retryOptions: { maxTries: 4, retryDelayInMs: 50 } },
  );
  await queue.create();
  proxy.busy = 2;
  await queue.sendMessage('once');
  proxy.busy = 1;
  const { receivedMessageItems } = await queue.receiveMessages();
  assert.deepEqual(receivedMessageItems.map((one) => one.messageText), ['once']);
  assert.deepEqual(proxy.requests, ['PUT', 'POST', 'POST', 'POST', 'GET', 'GET']);
});

test('the clients support the names of development storage', () => {
  const string = 'UseDevelopmentStorage=true';
  const table = TableClient.fromConnectionString(string, 'orders');
  assert.match(table.url, /^http:\/\/127\.0\.0\.1:10002\/devstoreaccount1/);
  const queue = new QueueClient(string, 'jobs');
  assert.equal(queue.url, 'http://127.0.0.1:10001/devstoreaccount1/jobs');
});
