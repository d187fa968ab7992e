'use strict';
// A proxy before a server, which makes failures that a client tries again after.

const http = require('node:http');
const { once } = require('node:events');
const { ACCOUNT } = require('./target');

/**
 * A proxy to `upstream`. It answers 503 to the next `busy` requests; it loses the answers to the
 * `lost` requests after those, which have had their effect; and it ends the connection after `cut`
 * bytes of the answer to the next request, if that has as many.
 */
async function proxyTo(upstream) {
  const proxy = { busy: 0, lost: 0, cut: 0, requests: [] };
  const [host, port] = upstream.split(':');
  const server = http.createServer((request, response) => {
    proxy.requests.push(request.method);
    if (proxy.busy > 0) {
      proxy.busy -= 1;
      request.resume();
      response.writeHead(503, { 'x-ms-error-code': 'ServerBusy' }).end();
      return;
    }
    const isLost = proxy.lost > 0;
    if (isLost) proxy.lost -= 1;
    const { method, url: path, headers } = request;
    const forward = http.request({ host, port, method, path, headers }, (answer) => {
      if (isLost) {
        answer.resume().on('end', () => request.socket.destroy());
        return;
      }
      response.writeHead(answer.statusCode, answer.headers);
      if (proxy.cut > 0 && Number(answer.headers['content-length']) > proxy.cut) {
        cutShort(answer, response, proxy);
      } else {
        answer.pipe(response);
      }
    });
    forward.on('error', () => response.destroy());
    request.pipe(forward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy.endpoint = `http://127.0.0.1:${server.address().port}/${ACCOUNT}`;
  proxy.close = () => {
    server.close();
    server.closeAllConnections();
  };
  return proxy;
}

/** Passes on so many bytes of an answer as `proxy.cut` has, and ends the connection. */
function cutShort(answer, response, proxy) {
  let left = proxy.cut;
  proxy.cut = 0;
  answer.on('data', (data) => {
    const part = data.subarray(0, left);
    left -= part.length;
    if (left > 0) {
      response.write(part);
      return;
    }
    answer.destroy();
    response.write(part, () => response.destroy());
  });
}

module.exports = { proxyTo };
