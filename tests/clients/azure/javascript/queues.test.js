'use strict';
// Queues and messages through @azure/storage-queue.

const assert = require('node:assert/strict');
const { describe } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const {
  QueueClient, QueueSASPermissions, QueueServiceClient, StorageSharedKeyCredential,
} = require('@azure/storage-queue');
const { ACCOUNT, KEY, listed, paged, rejected, suite, test } = require('./target');

const world = suite();
const credential = new StorageSharedKeyCredential(ACCOUNT, KEY);
const once = { retryOptions: { maxTries: 1 } };
const serviceOf = () => new QueueServiceClient(world.queue, credential, once);
const queueOf = (name) => serviceOf().getQueueClient(name);

/** The client of an empty queue. */
async function created() {
  const queue = queueOf(world.name());
  await queue.create();
  return queue;
}
const textsOf = (answer, field) => answer[field].map((message) => message.messageText);

describe('queues', () => {
  test('a queue is created, found, listed and deleted', async () => {
    const [service, name] = [serviceOf(), world.name()];
    const queue = queueOf(name);
    assert.equal(await queue.exists(), false);
    await service.createQueue(name, { metadata: { owner: 'a' } });
    assert.equal(await queue.exists(), true);
    const found = await listed(service.listQueues({ prefix: name, includeMetadata: true }));
    assert.deepEqual(found.map((one) => [one.name, one.metadata]), [[name, { owner: 'a' }]]);
    await queue.delete();
    await rejected(queue.delete(), 404, 'QueueNotFound');
    assert.equal((await queue.deleteIfExists()).succeeded, false);
  });

  test('creating a queue again is 204 or a conflict by its metadata', async () => {
    const queue = queueOf(world.name());
    const first = await queue.create({ metadata: { a: 'b' } });
    const second = await queue.create({ metadata: { a: 'b' } });
    assert.deepEqual([first._response.status, second._response.status], [201, 204]);
    await rejected(queue.create({ metadata: { a: 'c' } }), 409, 'QueueAlreadyExists');
    assert.equal((await queue.createIfNotExists({ metadata: { a: 'c' } })).succeeded, false);
  });

  test('queues are listed page by page in order', async () => {
    const [service, name] = [serviceOf(), world.name()];
    for (const number of [4, 2, 0, 1, 3]) await service.createQueue(`${name}-${number}`);
    const pages = await paged(service.listQueues({ prefix: `${name}-` }), { maxPageSize: 2 });
    const names = pages.map((page) => page.queueItems.map((queue) => queue.name.slice(-1)));
    assert.deepEqual(names, [['0', '1'], ['2', '3'], ['4']]);
    const token = { maxPageSize: 2, continuationToken: pages[0].continuationToken };
    await service.deleteQueue(`${name}-2`);
    const next = await service.listQueues({ prefix: `${name}-` }).byPage(token).next();
    const left = next.value.queueItems.map((queue) => queue.name.slice(-1));
    assert.deepEqual(left, ['3', '4']);
  });

  test('metadata is replaced completely', async () => {
    const queue = await created();
    await queue.setMetadata({ first: '1', second: 'two words' });
    assert.deepEqual((await queue.getProperties()).metadata, { first: '1', second: 'two words' });
    await queue.setMetadata();
    assert.deepEqual((await queue.getProperties()).metadata ?? {}, {});
  });

  test('a malformed name is rejected', async () => {
    await rejected(queueOf('a--b').create(), 400, 'InvalidResourceName');
    await rejected(queueOf('ab').create(), 400, 'OutOfRangeInput');
  });
});

describe('messages', () => {
  test('a message is sent, peeked, received, changed and deleted', async () => {
    const queue = await created();
    const sent = await queue.sendMessage('hello');
    assert.equal(sent.expiresOn - sent.insertedOn, 604_800_000);
    assert.deepEqual(textsOf(await queue.peekMessages(), 'peekedMessageItems'), ['hello']);
    const { receivedMessageItems: [got] } = await queue.receiveMessages({ visibilityTimeout: 60 });
    assert.deepEqual([got.messageId, got.dequeueCount], [sent.messageId, 1]);
    const changed = await queue.updateMessage(got.messageId, got.popReceipt, 'changed', 60);
    await rejected(queue.deleteMessage(got.messageId, got.popReceipt), 404, 'MessageNotFound');
    const again = await queue.updateMessage(got.messageId, changed.popReceipt, undefined, 0);
    assert.ok(again.popReceipt);
    const { receivedMessageItems: [second] } = await queue.receiveMessages();
    assert.deepEqual([second.messageText, second.dequeueCount], ['changed', 2]);
    await queue.deleteMessage(second.messageId, second.popReceipt);
    await rejected(queue.deleteMessage(second.messageId, second.popReceipt), 404, 'MessageNotFound');
  });

  // The client itself takes line feeds out of what it sends, so they are a test of their own.
  for (const text of ['<a>&amp;</a> ]]> "\'', '\u{1F600} ä €', ' \t sides ',
    'x'.repeat(65536), '%41+b']) {
    test(`the text ${JSON.stringify(text.slice(0, 20))} comes back as it was`, async () => {
      const queue = await created();
      await queue.sendMessage(text);
      assert.deepEqual(textsOf(await queue.peekMessages(), 'peekedMessageItems'), [text]);
      assert.deepEqual(textsOf(await queue.receiveMessages(), 'receivedMessageItems'), [text]);
    });
  }

  test('line feeds of another client are received unchanged', async () => {
    const queue = await created();
    const url = queue.generateSasUrl({
      permissions: QueueSASPermissions.parse('a'), expiresOn: new Date(Date.now() + 60_000),
    });
    const body = '<QueueMessage><MessageText>a\nb\n\n\tc</MessageText></QueueMessage>';
    const headers = { 'content-type': 'application/xml', 'x-ms-version': '2021-12-02' };
    const answer = await fetch(url.replace('?', '/messages?'), { method: 'POST', headers, body });
    assert.equal(answer.status, 201, await answer.text());
    const texts = textsOf(await queue.receiveMessages(), 'receivedMessageItems');
    assert.deepEqual(texts, ['a\nb\n\n\tc']);
  });

  test('a text that is too large is rejected', async () => {
    const queue = await created();
    await rejected(queue.sendMessage('x'.repeat(65537)), 413, 'RequestBodyTooLarge');
  });

  test('32 messages are received at once, each with its own receipt', async () => {
    const queue = await created();
    for (let number = 0; number < 33; number += 1) await queue.sendMessage(`${number}`);
    const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 32 });
    assert.deepEqual(receivedMessageItems.map((one) => +one.messageText), [...Array(32).keys()]);
    assert.equal(new Set(receivedMessageItems.map((one) => one.popReceipt)).size, 32);
    await rejected(
      queue.receiveMessages({ numberOfMessages: 33 }), 400, 'OutOfRangeQueryParameterValue',
    );
    assert.equal((await queue.getProperties()).approximateMessagesCount, 33);
    await queue.clearMessages();
    assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
  });

  test('a message has a visibility timeout, is received again, and expires', async () => {
    const queue = await created();
    await queue.sendMessage('later', { visibilityTimeout: 1, messageTimeToLive: 5 });
    const permanent = await queue.sendMessage('permanent', { messageTimeToLive: -1 });
    assert.equal(permanent.expiresOn.getUTCFullYear(), 9999);
    await queue.deleteMessage(permanent.messageId, permanent.popReceipt);
    assert.deepEqual(textsOf(await queue.receiveMessages(), 'receivedMessageItems'), []);
    await sleep(1500);
    const { receivedMessageItems: [first] } = await queue.receiveMessages({ visibilityTimeout: 1 });
    assert.equal(first.dequeueCount, 1);
    await sleep(1500);
    const { receivedMessageItems: [second] } = await queue.receiveMessages({ visibilityTimeout: 1 });
    assert.equal(second.dequeueCount, 2);
    await sleep(3500);
    assert.deepEqual(textsOf(await queue.receiveMessages(), 'receivedMessageItems'), []);
  });

  test('a time out of bounds is rejected', async () => {
    const queue = await created();
    const wrong = { visibilityTimeout: 10, messageTimeToLive: 10 };
    await rejected(queue.sendMessage('x', wrong), 400, 'InvalidQueryParameterValue');
    await rejected(
      queue.sendMessage('x', { visibilityTimeout: 604_801 }), 400, 'OutOfRangeQueryParameterValue',
    );
  });

  test('a missing queue is not found', async () => {
    const queue = queueOf(world.name());
    await rejected(queue.sendMessage('x'), 404, 'QueueNotFound');
    await rejected(queue.receiveMessages(), 404, 'QueueNotFound');
    await rejected(queue.clearMessages(), 404, 'QueueNotFound');
    await rejected(queue.getProperties(), 404, 'QueueNotFound');
  });
});

test('a connection string is enough', async () => {
  const name = world.name();
  const service = QueueServiceClient.fromConnectionString(world.connectionString);
  await service.createQueue(name);
  const queue = new QueueClient(world.connectionString, name);
  await queue.sendMessage('x');
  assert.deepEqual(textsOf(await queue.receiveMessages(), 'receivedMessageItems'), ['x']);
});
