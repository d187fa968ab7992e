'use strict';
// Calls that must fail: the code, and the google.rpc details unpacked.

const assert = require('node:assert/strict');
const grpc = require('@grpc/grpc-js');
const { Status, details } = require('./client');

const DOMAIN = 'trestle.table.v1.TableService';

/** Takes the details of a failed call apart: `{ info, violations, resource }`. */
function unpack(status) {
  const found = { info: undefined, violations: [], resource: undefined };
  for (const { type_url: url, value } of status.details) {
    const name = url.replace('type.googleapis.com/google.rpc.', '');
    assert.ok(details[name], `a detail of a supported type: ${url}`);
    const detail = details[name].deserialize(value);
    if (name === 'ErrorInfo') found.info = detail;
    if (name === 'BadRequest') found.violations = detail.field_violations.map((v) => v.field);
    if (name === 'ResourceInfo') found.resource = detail;
  }
  return found;
}

/** Expects that `call` fails with a code and a reason; returns the details. */
async function rejected(code, reason, call) {
  let error;
  await assert.rejects(call, (caught) => {
    error = caught;
    return true;
  });
  const name = grpc.status[error.code];
  const [encoded] = error.metadata?.get('grpc-status-details-bin') ?? [];
  assert.ok(encoded, `details of the failure: ${error.message}`);
  const status = Status.deserialize(encoded);
  const failure = unpack(status);
  assert.deepEqual([name, failure.info.reason], [code, reason], error.details);
  assert.equal(status.code, error.code);
  assert.equal(failure.info.domain, DOMAIN);
  return failure;
}

module.exports = { rejected, unpack };
