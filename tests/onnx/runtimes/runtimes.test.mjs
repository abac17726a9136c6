// Exported models in other runtimes: ONNX Runtime computes what the model did, and transformers.js takes a folder as it
// is. XGRAD_ONNX_FILES names the folder that onnx_files wrote, XGRAD_PROGRAMS that of the programs, and XGRAD_PRETRAINED
// that of the pretrained folders; ctest sets them.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { env, pipeline } from '@huggingface/transformers';
import { InferenceSession, Tensor } from 'onnxruntime-node';

const { XGRAD_ONNX_FILES: files, XGRAD_PROGRAMS: programs, XGRAD_PRETRAINED: pretrained } = process.env;
const folder = mkdtempSync(join(tmpdir(), 'xgrad-onnx-'));
after(() => rmSync(folder, { recursive: true }));

const run = (program, ...options) => execFileSync(join(programs, program), options, { encoding: 'utf8' });

/** In parts of the largest number; 0 where all are equal. */
function deviation(got, expected) {
  assert.equal(got.length, expected.length);
  const largest = Math.max(...expected.map(Math.abs));
  const worst = Math.max(...expected.map((number, i) => Math.abs(got[i] - number)));
  return worst === 0 ? 0 : worst / largest;
}

function assertNear(got, expected, what) {
  const difference = deviation(got, expected);
  assert.ok(difference <= 1e-5, `${what}: ${difference}`);
}

// ---- ONNX Runtime ----

const names = readdirSync(files).filter((name) => name.endsWith('.onnx'));
test('every kind of model was exported', () => assert.ok(names.length >= 11, names.join()));

for (const name of names) {
  test(`ONNX Runtime runs ${name}`, async () => {
    const session = await InferenceSession.create(join(files, name), { intraOpNumThreads: 1 });
    const cases = JSON.parse(readFileSync(join(files, name.replace('.onnx', '.json')), 'utf8'));
    assert.equal(cases.length, 3);
    for (const { inputs, outputs } of cases) {
      const feeds = {};
      for (const [input, { dims, data }] of Object.entries(inputs))
        feeds[input] = new Tensor('int64', BigInt64Array.from(data, BigInt), dims);
      const results = await session.run(feeds);
      assert.deepEqual(Object.keys(results).sort(), Object.keys(outputs).sort());
      for (const [output, { dims, data }] of Object.entries(outputs)) {
        assert.deepEqual(Array.from(results[output].dims), dims);
        assertNear(results[output].data, data, `${output} (${dims})`);
      }
    }
  });
}

// ---- transformers.js ----

env.allowRemoteModels = false;
env.localModelPath = folder;

/** A pipeline with an exported folder. */
function pipelineOf(task, name) {
  run('export_onnx', join(pretrained, name), join(folder, name));
  return pipeline(task, name, { dtype: 'fp32' });
}

const texts = ['My shoes are small, my feet are big.', 'xylophone quiz'];

test('transformers.js embeds texts as embed does', async () => {
  const embed = await pipelineOf('feature-extraction', 'bert_sentence');
  const vectors = run('embed', join(pretrained, 'bert_sentence'), ...texts).trim().split('\n');
  for (const [i, text] of texts.entries()) {
    const { data } = await embed(text, { pooling: 'mean', normalize: true });
    assertNear(data, vectors[i].trim().split(/\s+/).map(Number), text);
  }
});

test('transformers.js classifies texts as classify does', async () => {
  const classify = await pipelineOf('text-classification', 'bert_classifier');
  const lines = run('classify', join(pretrained, 'bert_classifier'), ...texts).split('\n');
  for (const text of texts) {
    const [{ label, score }] = await classify(text);
    assert.ok(lines.some((line) => line.startsWith(`${label} ${score.toFixed(4)} `) && line.endsWith(text)), text);
  }
});
