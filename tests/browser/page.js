// What runs in the page: the gRPC-Web client of the gRPC project, over a contract that the site
// serves. The tests reach it as `window.call`.

import { GrpcWebClientBase, MethodDescriptor, MethodType } from '/grpc-web.js';

const { contract, service: SERVICE } = await (await fetch('/contract.json')).json();
const root = protobuf.Root.fromJSON(contract).resolveAll();
const FRAME_HEAD_BYTES = 5;
const TRAILERS = 0x80;
const PLAIN = { longs: String, enums: String, bytes: String, defaults: true };

/** How a method of the contract is called. */
function described(name) {
  const method = root.lookupService(SERVICE).methods[name];
  const [Request, Response] = [method.resolvedRequestType, method.resolvedResponseType];
  const type = method.responseStream ? MethodType.SERVER_STREAMING : MethodType.UNARY;
  return new MethodDescriptor(
    `/${SERVICE}/${name}`,
    type,
    Request.ctor,
    Response.ctor,
    (message) => Request.encode(message).finish(),
    (bytes) => Response.decode(bytes),
  );
}

/** The names of the details that an error carries, and the content of its `ErrorInfo`. */
function details(metadata) {
  const encoded = metadata?.['grpc-status-details-bin'];
  if (!encoded) return { types: [], info: null };
  const bytes = Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
  const status = root.lookupType('google.rpc.Status').decode(bytes);
  const names = status.details.map((any) => any.type_url.split('/').pop());
  const at = names.indexOf('google.rpc.ErrorInfo');
  const Info = root.lookupType('google.rpc.ErrorInfo');
  return { types: names, info: Info.toObject(Info.decode(status.details[at].value), PLAIN) };
}

/** Calls a method; returns the outcome as plain data. */
window.call = ({ address, format, name, request = {}, metadata = {} }) =>
  new Promise((done) => {
    const method = root.lookupService(SERVICE).methods[name];
    const { resolvedRequestType: Request, resolvedResponseType: Response } = method;
    const client = new GrpcWebClientBase({ format });
    const found = { messages: [], headers: {}, code: 0, text: '' };
    const take = (message) => found.messages.push(Response.toObject(message, PLAIN));
    const fail = (error) => {
      Object.assign(found, { code: error.code, text: error.message, ...details(error.metadata) });
      done(found);
    };
    const parts = [`http://${address}/${SERVICE}/${name}`, Request.fromObject(request), metadata];
    const answer = method.responseStream
      ? client.serverStreaming(...parts, described(name))
      : client.rpcCall(...parts, described(name), (error, message) => {
          if (error) return fail(error);
          take(message);
          done(found);
        });
    answer.on('metadata', (headers) => Object.assign(found.headers, headers));
    if (method.responseStream) {
      answer.on('data', take);
      answer.on('error', fail);
      answer.on('end', () => done(found));
    }
  });

/** Reads a stream in bytes, which the library cannot: its messages, and the text of its trailers. */
window.stream = async ({ address, name, request }) => {
  const { resolvedRequestType: Request, resolvedResponseType: Response } =
    root.lookupService(SERVICE).methods[name];
  const message = Request.encode(Request.fromObject(request)).finish();
  const sent = new Uint8Array(FRAME_HEAD_BYTES + message.length);
  new DataView(sent.buffer).setUint32(1, message.length);
  sent.set(message, FRAME_HEAD_BYTES);
  const answer = await fetch(`http://${address}/${SERVICE}/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/grpc-web+proto', 'x-grpc-web': '1' },
    body: sent,
  });
  const body = new Uint8Array(await answer.arrayBuffer());
  const messages = [];
  for (let at = 0; ; ) {
    const length = new DataView(body.buffer).getUint32(at + 1);
    const frame = body.subarray(at + FRAME_HEAD_BYTES, at + FRAME_HEAD_BYTES + length);
    if (body[at] === TRAILERS) return { messages, trailers: new TextDecoder().decode(frame) };
    messages.push(Response.toObject(Response.decode(frame), PLAIN));
    at += FRAME_HEAD_BYTES + length;
  }
};

window.ready = true;
