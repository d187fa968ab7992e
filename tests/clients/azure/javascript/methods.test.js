'use strict';
// Every method of the clients is called by one of these suites: a new method in a client fails this
// test.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const tables = require('@azure/data-tables');
const blobs = require('@azure/storage-blob');
const queues = require('@azure/storage-queue');
const { test } = require('./target');

const CLIENTS = [
  tables.TableServiceClient, tables.TableClient, tables.TableTransaction,
  queues.QueueServiceClient, queues.QueueClient,
  blobs.BlobServiceClient, blobs.ContainerClient, blobs.BlobClient, blobs.BlockBlobClient,
  blobs.AppendBlobClient, blobs.PageBlobClient, blobs.BlobLeaseClient, blobs.BlobBatchClient,
  blobs.BlobBatch,
];
// What a client does by itself, or on behalf of a method that pages.
const OWN = new Set([
  'constructor', 'listTablesAll', 'listTablesPage', 'listEntitiesAll', 'listEntitiesPage',
  'listSegments', 'listItems', 'listQueuesSegment', 'getQueueNameFromUrl',
  'generateSasStringToSign', 'listContainersSegment', 'listBlobFlatSegment',
  'listBlobFlatSegmentApacheArrow', 'listBlobHierarchySegment',
  'listBlobHierarchySegmentApacheArrow', 'listHierarchySegments', 'listItemsByHierarchy',
  'findBlobsByTagsSegment', 'findBlobsByTagsSegments', 'findBlobsByTagsItems',
  'listPageRangesSegment', 'listPageRangeItemSegments', 'listPageRangeItems',
  'listPageRangesDiffSegment', 'listPageRangeDiffItemSegments', 'listPageRangeDiffItems',
  'getContainerNameFromUrl', 'getBlobAndContainerNamesFromUrl', 'startCopyFromURL',
  'uploadSeekableInternal', 'getMultiPartContentType', 'getHttpRequestBody', 'getSubRequests',
  'addSubRequestInternal', 'setBatchType',
]);
// For callers with a bearer token, which the suite of Python has.
const DIRECTORY = new Set([
  'getUserDelegationKey', 'generateUserDelegationSasUrl', 'generateUserDelegationStringToSign',
  'generateUserDelegationSasStringToSign',
]);
// For browsers, whose data this machine cannot send, and for disks that only Azure has.
const ELSEWHERE = new Set(['uploadBrowserData', 'getPageRangesDiffForManagedDisks']);

/** The text of the suites whose names match, without this one. */
function suites(names) {
  const files = fs.readdirSync(__dirname).filter((file) => file.endsWith('.test.js'));
  const others = files.filter((file) => file !== path.basename(__filename) && names.test(file));
  return others.map((file) => fs.readFileSync(path.join(__dirname, file), 'utf8')).join('\n');
}

for (const client of CLIENTS) {
  test(`every method of ${client.name} is called`, () => {
    const statics = Object.getOwnPropertyNames(client).filter(
      (name) => typeof client[name] === 'function',
    );
    const all = [...Object.getOwnPropertyNames(client.prototype), ...statics];
    const names = all.filter(
      (name) => !name.startsWith('_') && ![OWN, DIRECTORY, ELSEWHERE].some((set) => set.has(name)),
    );
    assert.ok(names.length > 1, 'the client has methods');
    const text = suites(client.name in blobs ? /^blob/ : /^(?!.*blob)/);
    const missing = names.filter((name) => !new RegExp(`\\.${name}\\b`).test(text));
    assert.deepEqual(missing, []);
  });
}
