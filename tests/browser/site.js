'use strict';
// A web site on a port of its own, and so an origin of its own, that serves the page.

const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { once } = require('node:events');
const { SERVICE, contract } = require('./contract');

const HTML = `<!doctype html><title>page</title>
<script src="/protobuf.js"></script><script type="module" src="/page.js"></script>`;
const SCRIPTS = {
  '/page.js': path.join(__dirname, 'page.js'),
  '/grpc-web.js': path.join(__dirname, 'node_modules/grpc-web/index.esm.js'),
  '/protobuf.js': path.join(__dirname, 'node_modules/protobufjs/dist/protobuf.min.js'),
};

/** Starts a site; its `origin`, and how to `close` it. */
async function site() {
  const server = http.createServer((request, answer) => {
    const script = SCRIPTS[request.url];
    if (script) {
      answer.setHeader('content-type', 'text/javascript');
      fs.createReadStream(script).pipe(answer);
    } else if (request.url === '/contract.json') {
      answer.end(JSON.stringify({ contract, service: SERVICE }));
    } else if (request.url === '/') {
      answer.setHeader('content-type', 'text/html');
      answer.end(HTML);
    } else {
      answer.writeHead(404).end();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { origin: `http://127.0.0.1:${server.address().port}`, close };
}

module.exports = { site };
