// Hugging Face's Rust library, which bench_tokenizer measures beside xgrad's tokenizer, on one thread.
// Needs node and npm, which installs the library into the folder that is the first argument. The others: a folder
// with a tokenizer.json, a file with a text a line, and how many seconds to measure.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { npmPackage } from '../npm_package.mjs';

const PACKAGE = 'tokenizers';
const VERSION = '0.23.2';

const [cache, model, file, seconds] = process.argv.slice(2);
process.env.TOKENIZERS_PARALLELISM = 'false';

const tokenizer = npmPackage(PACKAGE, VERSION, join(cache, VERSION)).Tokenizer.fromFile(join(model, 'tokenizer.json'));
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
