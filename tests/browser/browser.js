'use strict';
// A headless browser, without background requests.

const { chromium } = require('playwright-core');

const ARGUMENTS = [
  '--no-sandbox', // run as root on build machines; the pages are our own
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts the browser, with a profile of its own that is deleted afterwards. */
function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    headless: true,
    args: ARGUMENTS,
  });
}

/**
 * Opens the page of a site. `call` and `stream` run in it; `complaints` is what the browser wrote
 * into its console.
 */
async function open(browser, origin) {
  const page = await (await browser.newContext()).newPage();
  const complaints = [];
  page.on('console', (message) => complaints.push(message.text()));
  await page.goto(origin);
  await page.waitForFunction(() => window.ready === true);
  const call = (request) => page.evaluate((what) => window.call(what), request);
  const stream = (request) => page.evaluate((what) => window.stream(what), request);
  return { call, stream, complaints };
}

module.exports = { launch, open };
