'use strict';
// A `trestle serve` process on free ports, which a test stops, or kills as a crash would.

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const readline = require('node:readline');

const READY_MS = 30_000;

/** Makes a directory for a store; `remove` takes it away again. */
function temporaryDirectory() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'trestle-clients-'));
  return { directory, remove: () => fs.rmSync(directory, { recursive: true, force: true }) };
}

/** The first line that the process prints; fails when it ends, or prints nothing for too long. */
async function firstLine(child) {
  const lines = readline.createInterface({ input: child.stdout });
  const silence = AbortSignal.timeout(READY_MS);
  const ended = once(child, 'exit', { signal: silence }).then(([code]) => {
    throw new Error(`the server ended with code ${code}`);
  });
  const [line] = await Promise.race([once(lines, 'line', { signal: silence }), ended]);
  ended.catch(() => {}); // it ends later, without a waiter
  return line;
}

/** Starts a server on the data in `directory`, with more settings as variables. */
async function start(directory, settings = {}) {
  const free = '127.0.0.1:0';
  const grpc = ['--listen', free, '--admin', free];
  const listeners = [...grpc, '--azure-table', free, '--azure-queue', free, '--azure-blob', free];
  const child = spawn(process.env.TRESTLE_BIN, ['serve', '--data-dir', directory, ...listeners], {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const end = (signal) => async () => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const exit = once(child, 'exit');
    child.kill(signal);
    const [code] = await exit;
    return code;
  };
  const [kill, terminate] = [end('SIGKILL'), end('SIGTERM')];
  try {
    const [word, ...listening] = (await firstLine(child)).split(' ');
    if (word !== 'ready') throw new Error(`the server printed `);
    const addresses = Object.fromEntries(listening.map((address) => address.split('=')));
    return { ...addresses, kill, terminate };
  } catch (error) {
    await kill();
    throw error;
  }
}

module.exports = { start, temporaryDirectory };
