'use strict';
// A client made at run time from the protos of the repository, with promises for callbacks.

const path = require('node:path');
const { promisify } = require('node:util');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const CONTRACT = path.resolve(__dirname, '../../../proto');
const OPTIONS = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true };

/** Loads protos; `file` is found in `directories`. */
function load(file, ...directories) {
  return grpc.loadPackageDefinition(
    loader.loadSync(file, { ...OPTIONS, includeDirs: directories }),
  );
}

const contract = load('trestle/table/v1/table_service.proto', CONTRACT);
const { TableService } = contract.trestle.table.v1;
// What google.protobuf.Any holds in an error, by its type.
const details = load('google/rpc/error_details.proto', path.join(__dirname, 'protos')).google.rpc;
const { Status } = load('google/rpc/status.proto', CONTRACT).google.rpc;

/** A client whose unary methods return promises; streams are as the library makes them. */
function connect(address, Service = TableService) {
  const client = new Service(address, grpc.credentials.createInsecure());
  for (const [name, method] of Object.entries(Service.service)) {
    if (!method.requestStream && !method.responseStream) {
      client[name] = promisify(client[name]).bind(client);
    }
  }
  return client;
}

/** All messages of a stream. */
async function collect(stream) {
  const messages = [];
  for await (const message of stream) messages.push(message);
  return messages;
}

module.exports = { OPTIONS, Status, TableService, collect, connect, details, load };
