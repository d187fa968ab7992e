'use strict';
// The server under test: Trestle, or Azurite for a comparison, on free ports of this machine.

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { after, before, test: nodeTest } = require('node:test');
const assert = require('node:assert/strict');
const trestle = require('../../javascript/server');

const ACCOUNT = 'devstoreaccount1';
// The key of every emulator, printed in its documentation; it protects nothing.
const KEY =
  'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const READY_MS = 30_000;
const TEST_MS = 60_000;
const MOST_PAGES = 100;

async function startTrestle(directory, settings) {
  const server = await trestle.start(directory, settings);
  return {
    ...server, table: server.azure_table, queue: server.azure_queue, blob: server.azure_blob,
  };
}

async function startAzurite(directory) {
  const home = path.join(process.env.AZURITE_HOME, 'node_modules/azurite/dist/src/azurite.js');
  const flags = ['--silent', '--skipApiVersionCheck', '--disableTelemetry', '--location', directory];
  for (const service of ['blob', 'queue', 'table']) flags.push(`--${service}Port`, '0');
  const child = spawn('node', [home, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
  const addresses = {};
  let output = '';
  const silence = AbortSignal.timeout(READY_MS);
  while (Object.keys(addresses).length < 3) {
    const [more] = await once(child.stdout, 'data', { signal: silence });
    output += more;
    for (const [, service, address] of output.matchAll(
      /Azurite (\w+) service .*? listening at http:\/\/(\S+)\s/g,
    )) {
      addresses[service.toLowerCase()] = address;
    }
  }
  const end = (signal) => async () => {
    const exit = once(child, 'exit');
    child.kill(signal);
    return (await exit)[0];
  };
  return { ...addresses, kill: end('SIGKILL'), terminate: end('SIGTERM') };
}

/** Starts a server of its own on the data in `directory`, with more settings as variables. */
const start = process.env.AZURE_TARGET === 'azurite' ? startAzurite : startTrestle;

/**
 * Starts a server before the tests of a file and stops it after them; it must end well. The object
 * gives the endpoints in path style, and names that no other test of the file has.
 */
function suite() {
  const world = { server: undefined };
  const data = trestle.temporaryDirectory();
  let names = 0;

  before(async () => {
    world.server = await start(data.directory);
    world.table = `http://${world.server.table}/${ACCOUNT}`;
    world.queue = `http://${world.server.queue}/${ACCOUNT}`;
    world.blob = `http://${world.server.blob}/${ACCOUNT}`;
    world.connectionString =
      `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};` +
      `TableEndpoint=${world.table};QueueEndpoint=${world.queue};BlobEndpoint=${world.blob};`;
  });
  after(async () => {
    const code = await world.server?.terminate();
    data.remove();
    assert.equal(code, 0, 'the server drains and ends with code 0');
  });
  world.name = () => `name${(names += 1)}`;
  return world;
}

/** Checks that a call is rejected with a status and a code. */
async function rejected(call, status, code) {
  await assert.rejects(call, (error) => {
    const { statusCode } = error;
    const found = error.code ?? error.details?.errorCode ?? error.details?.odataError?.code;
    assert.deepEqual([statusCode, found], [status, code], `${error.name}: ${error.message}`);
    assert.equal(error.name, 'RestError');
    return true;
  });
}

/** All items of a paged answer. */
async function listed(pages) {
  const items = [];
  for await (const item of pages) items.push(item);
  return items;
}

/** The pages of a paged answer, each a list. A server that never ends gets an end. */
async function paged(items, settings) {
  const pages = [];
  for await (const page of items.byPage(settings)) {
    assert.ok(pages.push(page) <= MOST_PAGES, 'the pages have an end');
  }
  return pages;
}

/** Writes the outcome of a test, for the comparison with Azurite. */
function record(name, outcome) {
  const file = path.basename(require.main.filename);
  const line = `javascript/${file}::${name}\t${outcome}\n`;
  if (process.env.AZURE_RESULTS) fs.appendFileSync(process.env.AZURE_RESULTS, line);
}

/** A test that a hung call fails, instead of holding up a whole run. */
function test(name, body) {
  nodeTest(name, { timeout: TEST_MS }, async (context) => {
    try {
      await body(context);
    } catch (error) {
      record(name, 'failed');
      throw error;
    }
    record(name, 'passed');
  });
}

module.exports = { ACCOUNT, KEY, listed, paged, rejected, start, suite, test };
