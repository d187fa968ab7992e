'use strict';
// The fixtures of a test file: a server of its own, a client, and empty tables.

const assert = require('node:assert/strict');
const { after, before } = require('node:test');
const { connect } = require('./client');
const { start, temporaryDirectory } = require('./server');

/**
 * Starts a server before the tests of a file and runs `prepare`; stops the server after the tests,
 * which must end well.
 */
function suite(prepare = async () => {}) {
  const world = { server: undefined, client: undefined };
  const data = temporaryDirectory();
  let tables = 0;

  before(async () => {
    world.server = await start(data.directory);
    world.client = connect(world.server.grpc);
    // Not a hook of its own: hooks of a file do not wait for each other.
    await prepare();
  });
  after(async () => {
    world.client?.close();
    const code = await world.server?.terminate();
    data.remove();
    assert.equal(code, 0, 'the server drains and ends with code 0');
  });

  /** Creates an empty table; its name. */
  world.table = async () => {
    tables += 1;
    const table = `Table${tables}`;
    await world.client.CreateTable({ table: { name: table } });
    return table;
  };
  return world;
}

module.exports = { suite };
