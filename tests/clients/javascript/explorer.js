'use strict';
// A client without the contract, which uses reflection, as grpcurl does.

const assert = require('node:assert/strict');
const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const { OPTIONS, collect, connect, load } = require('./client');

const { FileDescriptorProto } = load(
  'google/protobuf/descriptor.proto',
  path.dirname(require.resolve('protobufjs/package.json')),
).google.protobuf;

/** Services of a server, by one version of the reflection protocol. */
class Explorer {
  constructor(address, ServerReflection) {
    this.client = connect(address, ServerReflection);
  }

  close() {
    this.client.close();
  }

  /** The answer to one question. */
  async query(question) {
    const call = this.client.ServerReflectionInfo();
    const answers = collect(call);
    call.end(question);
    const [answer] = await answers;
    assert.ok(!answer.error_response, answer.error_response?.error_message);
    return answer;
  }

  /** The names of all services. */
  async services() {
    const { list_services_response: list } = await this.query({ list_services: '' });
    return list.service.map((service) => service.name);
  }

  /** A client class for a service. */
  async service(name) {
    const files = new Map();
    await this.files({ file_containing_symbol: name }, files);
    const protos = grpc.loadPackageDefinition(
      loader.loadFileDescriptorSetFromBuffer(fileSet([...files.values()]), OPTIONS),
    );
    return name.split('.').reduce((found, part) => found[part], protos);
  }

  /** Adds the files that answer a question, and what they import, by their names. */
  async files(question, found) {
    const { file_descriptor_response: answer } = await this.query(question);
    for (const bytes of answer.file_descriptor_proto) {
      const file = FileDescriptorProto.deserialize(bytes);
      if (found.has(file.name)) continue;
      found.set(file.name, bytes);
      for (const imported of file.dependency) {
        if (!found.has(imported)) await this.files({ file_by_filename: imported }, found);
      }
    }
  }
}

/** The encoded `FileDescriptorSet` of encoded files: each as field 1, with its length. */
function fileSet(files) {
  const parts = files.flatMap((bytes) => {
    const head = [0x0a];
    let rest = bytes.length;
    for (; rest > 0x7f; rest >>>= 7) head.push((rest & 0x7f) | 0x80);
    head.push(rest);
    return [Buffer.from(head), bytes];
  });
  return Buffer.concat(parts);
}

module.exports = { Explorer };
