'use strict';
// The contract as a page can load it, and calls from this process, which no cross-origin rule
// binds.

const fs = require('node:fs');
const path = require('node:path');
const protobuf = require('protobufjs');

// Where protos are found; those built into the library may be absent.
const DIRECTORIES = [
  path.resolve(__dirname, '../../proto'),
  path.resolve(__dirname, '../clients/javascript/protos'),
  path.dirname(require.resolve('protobufjs/package.json')),
];
const FILES = [
  'trestle/table/v1/table_service.proto',
  'google/rpc/error_details.proto',
  'google/rpc/status.proto',
];
const SERVICE = 'trestle.table.v1.TableService';
const FRAME_HEAD_BYTES = 5;
const TRAILERS = 0x80;

/** The table service, and the details of errors, out of the protos of the repository. */
function load() {
  const protos = new protobuf.Root();
  protos.resolvePath = (_, target) => {
    const candidates = DIRECTORIES.map((directory) => path.join(directory, target));
    return candidates.find((candidate) => fs.existsSync(candidate)) ?? target;
  };
  return protos.loadSync(FILES, { keepCase: true }).resolveAll();
}

const root = load();

/** Calls a method with one message for an answer; `headers` may hold credentials. */
async function call(address, method, request, headers = {}) {
  const described = root.lookupService(SERVICE).methods[method];
  const { resolvedRequestType: Request, resolvedResponseType: Response } = described;
  const message = Request.encode(Request.fromObject(request)).finish();
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUInt32BE(message.length, 1);
  const answer = await fetch(`http://${address}/${SERVICE}/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/grpc-web+proto', ...headers },
    body: Buffer.concat([head, message]),
  });
  const body = Buffer.from(await answer.arrayBuffer());
  const end = FRAME_HEAD_BYTES + (body[0] === TRAILERS ? 0 : body.readUInt32BE(1));
  if (body[0] === TRAILERS) throw new Error(body.subarray(end).toString());
  return Response.decode(body.subarray(FRAME_HEAD_BYTES, end));
}

module.exports = { SERVICE, call, contract: root.toJSON() };
