'use strict';
// Access to tables and the service as a whole, through @azure/data-tables.

const assert = require('node:assert/strict');
const { describe } = require('node:test');
const {
  AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient, generateAccountSas,
  generateTableSas,
} = require('@azure/data-tables');
const { ACCOUNT, KEY, listed, rejected, suite, test } = require('./target');

const world = suite();
const credential = new AzureNamedKeyCredential(ACCOUNT, KEY);
const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
const hour = 3600_000;
const later = (by = hour) => new Date(Date.now() + by);
const MISMATCH = 'AuthorizationPermissionMismatch';

const tableOf = (name, by = credential) => new TableClient(world.table, name, by, options);
const serviceOf = (by = credential) => new TableServiceClient(world.table, by, options);
const signedBy = (name, values) => {
  const sas = generateTableSas(name, credential, { expiresOn: later(), ...values });
  return tableOf(name, new AzureSASCredential(sas));
};
const ofAccount = (permissions, values = {}) =>
  new AzureSASCredential(generateAccountSas(credential, {
    permissions, resourceTypes: 'sco', services: { table: true }, expiresOn: later(), ...values,
  }));

/** A table with an entity for each of a1, a2, b1, b2. */
async function filled() {
  const name = world.name();
  const table = tableOf(name);
  await table.createTable();
  for (const partitionKey of ['a', 'b']) {
    for (const rowKey of ['1', '2']) await table.createEntity({ partitionKey, rowKey });
  }
  return { name, table };
}
const keysOf = (rows) => rows.map((row) => row.partitionKey + row.rowKey);

describe('signatures', () => {
  test('a table SAS permits its operations and no others', async () => {
    const { name } = await filled();
    const reader = signedBy(name, { permissions: { query: true } });
    assert.equal((await listed(reader.listEntities())).length, 4);
    const entity = { partitionKey: 'p', rowKey: 'r' };
    await rejected(reader.createEntity(entity), 403, MISMATCH);
    await rejected(reader.deleteEntity('a', '1'), 403, MISMATCH);
    const writer = signedBy(name, { permissions: { add: true, update: true, delete: true } });
    await writer.createEntity(entity);
    await writer.upsertEntity(entity);
    await writer.updateEntity(entity);
    await writer.submitTransaction([['upsert', entity], ['create', { ...entity, rowKey: 's' }]]);
    await writer.deleteEntity('p', 'r');
    await rejected(writer.getEntity('p', 's'), 403, MISMATCH);
    await rejected(reader.getAccessPolicy(), 403, 'AuthorizationFailure');
  });

  test('a SAS is limited by time, addresses and protocol', async () => {
    const { name } = await filled();
    const read = { permissions: { query: true } };
    const cases = [
      [{ expiresOn: later(-hour) }, 'AuthenticationFailed'],
      [{ startsOn: later(), expiresOn: later(2 * hour) }, 'AuthenticationFailed'],
      [{ ipRange: { start: '10.0.0.1' } }, 'AuthorizationSourceIPMismatch'],
      [{ protocol: 'https' }, 'AuthorizationProtocolMismatch'],
    ];
    for (const [limits, code] of cases) {
      await rejected(signedBy(name, { ...read, ...limits }).getEntity('a', '1'), 403, code);
    }
    const local = { ipRange: { start: '127.0.0.0', end: '127.0.0.255' }, protocol: 'https,http' };
    await signedBy(name, { ...read, ...local }).getEntity('a', '1');
  });

  test('a key range applies', async () => {
    const { name } = await filled();
    const permissions = { query: true, add: true, update: true };
    const range = {
      startPartitionKey: 'a', startRowKey: '2', endPartitionKey: 'b', endRowKey: '1',
    };
    const signed = signedBy(name, { permissions, ...range });
    assert.deepEqual(keysOf(await listed(signed.listEntities())), ['a2', 'b1']);
    const outside = { partitionKey: 'b', rowKey: '2' };
    await signed.updateEntity({ partitionKey: 'a', rowKey: '2', x: 1 });
    await rejected(signed.updateEntity(outside), 403, 'AuthorizationFailure');
    await rejected(signed.getEntity('b', '2'), 403, 'AuthorizationFailure');
    await rejected(
      signed.submitTransaction([['upsert', { partitionKey: 'b', rowKey: '1' }], ['upsert', outside]]),
      403, 'AuthorizationFailure',
    );
  });

  test('a stored policy grants and revokes access, and survives a round trip', async () => {
    const { name, table } = await filled();
    const accessPolicy = {
      start: new Date('2026-01-02T03:04:05Z'), expiry: later(), permission: 'r',
    };
    await table.setAccessPolicy([{ id: 'reader', accessPolicy }]);
    const kept = await table.getAccessPolicy();
    assert.equal(kept.length, 1);
    assert.equal(kept[0].id, 'reader');
    assert.deepEqual(kept[0].accessPolicy.start, accessPolicy.start);
    assert.equal(kept[0].accessPolicy.permission, 'r');
    // With a policy the client names neither permissions nor an end of its own.
    const sas = generateTableSas(name, credential, { identifier: 'reader' });
    assert.doesNotMatch(sas, /\bs[pe]=/);
    const signed = tableOf(name, new AzureSASCredential(sas));
    assert.equal((await listed(signed.listEntities())).length, 4);
    await rejected(signed.deleteEntity('a', '1'), 403, MISMATCH);
    await table.setAccessPolicy([]);
    assert.equal((await table.getAccessPolicy()).length, 0);
    await rejected(signed.getEntity('a', '1'), 403, 'AuthenticationFailed');
  });

  test('an account SAS permits exactly its grant', async () => {
    const name = world.name();
    const all = ofAccount({
      query: true, write: true, delete: true, list: true, add: true, create: true, update: true,
    });
    await serviceOf(all).createTable(name);
    assert.ok((await listed(serviceOf(all).listTables())).some((table) => table.name === name));
    await tableOf(name, all).upsertEntity({ partitionKey: 'p', rowKey: 'r' });
    const reader = ofAccount({ query: true }, { resourceTypes: 'o' });
    assert.equal((await listed(tableOf(name, reader).listEntities())).length, 1);
    await rejected(tableOf(name, reader).deleteEntity('p', 'r'), 403, MISMATCH);
    const service = ofAccount({ query: true }, { resourceTypes: 's' });
    await rejected(
      tableOf(name, service).getEntity('p', 'r'), 403, 'AuthorizationResourceTypeMismatch',
    );
    const elsewhere = ofAccount({ query: true }, { ipRange: { start: '10.0.0.1' } });
    await rejected(
      tableOf(name, elsewhere).getEntity('p', 'r'), 403, 'AuthorizationSourceIPMismatch',
    );
    const late = ofAccount({ query: true }, { expiresOn: later(-hour) });
    await rejected(tableOf(name, late).getEntity('p', 'r'), 403, 'AuthenticationFailed');
    await serviceOf(all).deleteTable(name);
  });

  test('a connection string with a signature is enough', async () => {
    const { name } = await filled();
    const token = ofAccount({ query: true }).signature;
    const string = `TableEndpoint=${world.table};SharedAccessSignature=${token};AccountName=${ACCOUNT}`;
    const table = TableClient.fromConnectionString(string, name, options);
    assert.equal((await listed(table.listEntities())).length, 4);
    await rejected(table.deleteEntity('a', '1'), 403, MISMATCH);
  });

  test('a wrong key is rejected', async () => {
    const wrong = new AzureNamedKeyCredential(ACCOUNT, Buffer.from('wrong').toString('base64'));
    await rejected(tableOf('abc', wrong).getEntity('p', 'r'), 403, 'AuthenticationFailed');
  });
});

describe('the service', () => {
  test('properties survive a round trip', async () => {
    const retentionPolicy = { enabled: true, days: 7 };
    const cors = [{
      allowedOrigins: 'http://a.example', allowedMethods: 'GET', allowedHeaders: 'x-ms-*',
      exposedHeaders: '*', maxAgeInSeconds: 60,
    }];
    await serviceOf().setProperties({
      logging: { version: '1.0', read: true, write: false, delete: false, retentionPolicy },
      hourMetrics: { version: '1.0', enabled: true, includeAPIs: false, retentionPolicy },
      minuteMetrics: { version: '1.0', enabled: false, retentionPolicy: { enabled: false } },
      cors,
    });
    const got = await serviceOf().getProperties();
    assert.deepEqual(got.cors.map((rule) => ({ ...rule })), cors);
    assert.deepEqual([got.logging.read, got.logging.retentionPolicy.days], [true, 7]);
    assert.deepEqual([got.hourMetrics.enabled, got.minuteMetrics.enabled], [true, false]);
    await serviceOf().setProperties({ cors: [] });
    assert.deepEqual((await serviceOf().getProperties()).cors ?? [], []);
  });

  test('statistics are at the secondary', async () => {
    // The client finds the secondary by the first label of the host, which an address has none of.
    const account = `${world.table}-secondary`;
    const statistics = await new TableServiceClient(account, credential, options).getStatistics();
    assert.equal(statistics.geoReplication.status, 'live');
    assert.ok(Math.abs(Date.now() - statistics.geoReplication.lastSyncTime) < 300_000);
  });
});
