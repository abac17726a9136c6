// Hugging Face's Rust library, which bench_tokenizer measures beside xgrad's tokenizer, on one thread.
// Needs node and npm, which installs the library into the folder that is the first argument. The others: a folder
// with a tokenizer.json, a file with a text a line, and how many seconds to measure.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const PACKAGE = 'tokenizers';
const VERSION = '0.23.2';

const [cache, model, file, seconds] = process.argv.slice(2);
process.env.TOKENIZERS_PARALLELISM = 'false';

function tokenizers() {
  const folder = join(cache, VERSION);
  if (!existsSync(join(folder, 'node_modules', PACKAGE))) {
    mkdirSync(folder, { recursive: true });
    const options = ['--ignore-scripts', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'];
    const install = ['install', ...options, '--prefix', folder, `${PACKAGE}@${VERSION}`];
    execFileSync('npm', install, { stdio: ['ignore', 2, 2] });
  }
  return createRequire(join(folder, 'index.js'))(PACKAGE);
}

const tokenizer = tokenizers().Tokenizer.fromFile(join(model, 'tokenizer.json'));
tokenizer.disableTruncation();
tokenizer.disablePadding();
const texts = readFileSync(file, 'utf8').split('\n').slice(0, -1);

// What was encoded is read once; the time is that of the library alone, which keeps its results in Rust.
let tokens = 0;
let sum = 0;
for (const encoding of await tokenizer.encodeBatch(texts)) {
  const ids = encoding.getIds();
  tokens += ids.length;
  sum = ids.reduce((a, b) => a + b, sum);
}
let rounds = 0;
const start = performance.now();
do {
  await tokenizer.encodeBatch(texts);
  ++rounds;
} while (performance.now() - start < 1e3 * seconds);
const texts_per_second = (1e3 * rounds * texts.length) / (performance.now() - start);
console.log(JSON.stringify({ library: `${PACKAGE} ${VERSION}`, tokens, sum, texts_per_second }));
