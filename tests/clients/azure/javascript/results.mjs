// Writes what became of each test, for the comparison with Azurite.

import path from 'node:path';

export default async function* results(events) {
  const outcomes = { 'test:pass': 'passed', 'test:fail': 'failed' };
  for await (const { type, data } of events) {
    if (!outcomes[type] || data.details?.type === 'suite' || !data.file) continue;
    if (data.name === data.file || data.name.endsWith('.test.js')) continue;
    yield `javascript/${path.basename(data.file)}::${data.name}\t${outcomes[type]}\n`;
  }
}
