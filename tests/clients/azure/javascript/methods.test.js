'use strict';
// Every method of the clients is called by one of these suites: a new method in a client fails this
// test.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const tables = require('@azure/data-tables');
const queues = require('@azure/storage-queue');
const { test } = require('./target');

const CLIENTS = [
  tables.TableServiceClient, tables.TableClient, tables.TableTransaction,
  queues.QueueServiceClient, queues.QueueClient,
];
// What a client does by itself, or on behalf of a method that pages.
const OWN = new Set([
  'constructor', 'listTablesAll', 'listTablesPage', 'listEntitiesAll', 'listEntitiesPage',
  'listSegments', 'listItems', 'listQueuesSegment', 'getQueueNameFromUrl',
  'generateSasStringToSign',
]);
// For Entra ID, which this server does not support.
const DIRECTORY = new Set([
  'getUserDelegationKey', 'generateUserDelegationSasUrl', 'generateUserDelegationStringToSign',
]);

/** The text of all suites but this one. */
function suites() {
  const files = fs.readdirSync(__dirname).filter((file) => file.endsWith('.test.js'));
  const others = files.filter((file) => file !== path.basename(__filename));
  return others.map((file) => fs.readFileSync(path.join(__dirname, file), 'utf8')).join('\n');
}

for (const client of CLIENTS) {
  test(`every method of ${client.name} is called`, () => {
    const statics = Object.getOwnPropertyNames(client).filter(
      (name) => typeof client[name] === 'function',
    );
    const all = [...Object.getOwnPropertyNames(client.prototype), ...statics];
    const names = all.filter(
      (name) => !name.startsWith('_') && !OWN.has(name) && !DIRECTORY.has(name),
    );
    assert.ok(names.length > 3, 'the client has methods');
    const text = suites();
    const missing = names.filter((name) => !new RegExp(`\\.${name}\\b`).test(text));
    assert.deepEqual(missing, []);
  });
}
