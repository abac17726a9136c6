// The interactive lesson, in a browser: what it shows is what the library computes natively and what the notebook
// prints, and it stays quiet. XGRAD_LEARN_PAGE names the page, XGRAD_PROGRAMS the folder of the native programs, and
// XGRAD_COMPILE and XGRAD_LINK the beginning and the end of the compiler's command line; ctest sets them.

import assert from "node:assert/strict";
import { execFileSync, execSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { axeFindings, browserPath, openFile, start, stop, twoFrames } from "../report/browser.mjs";
import { checkFormulas, checkFormulasOf, numbersOf, readReport } from "../report/recomputed.mjs";
import { needPackages } from "../report/tools.mjs";

const { XGRAD_LEARN_PAGE: file, XGRAD_PROGRAMS: programs, XGRAD_COMPILE: compile, XGRAD_LINK: link } = process.env;
needPackages("playwright-core", "axe-core");

const html = readFileSync(file, "utf8");
const folder = mkdtempSync(join(tmpdir(), "xgrad-learn-"));
before(async () => {
  assert.notEqual(browserPath(), undefined, "a browser is installed");
  await start();
});
after(async () => {
  await stop();
  rmSync(folder, { recursive: true });
});

const stops = ["words", "places", "projections", "scores", "softmax", "heads", "norm", "feed", "backward", "training"];

/** `body` with the page at a stop. */
async function withStop(stop, body, options) {
  const { page, close } = await openFile(file, options);
  await page.locator("html[data-ready]").waitFor();
  await go(page, stop);
  await body(page);
  await close();
}

async function go(page, stop) {
  await page.evaluate((hash) => (location.hash = hash), stop);
  await page.locator(`.stops a[href="#${stop}"][aria-current]`).waitFor();
  if (stop === "training") await page.locator(".guesses").waitFor();
  else await page.locator(".figures").waitFor();
}

/** Keeps back what the page asks its worker, which may start, until release(). */
async function hold(page) {
  await page.evaluate(() => {
    const send = Worker.prototype.postMessage;
    window.hold = () => {
      window.held = [];
      Worker.prototype.postMessage = function (message) {
        if ("core" in message) send.call(this, message);
        else window.held.push(() => send.call(this, message));
      };
    };
    window.release = () => {
      Worker.prototype.postMessage = send;
      for (const go of window.held) go();
    };
    window.hold();
  });
}

const asked = (page) => page.waitForFunction(() => window.held.length > 0);
const release = (page) => page.evaluate(() => window.release());
/** Releases what is held, and holds what is asked from then on. */
const releaseThese = (page) =>
  page.evaluate(() => {
    window.release();
    window.hold();
  });

/** The replies of a worker of its own, made of the page's parts, to requests one after the other. */
async function replies(requests) {
  const { page, close } = await openFile(file);
  const texts = await page.evaluate(async (list) => {
    const text = (id) => document.getElementById(id).textContent;
    const worker = new Worker(URL.createObjectURL(new Blob([text("worker")], { type: "text/javascript" })));
    worker.postMessage({ core: text("core") });
    const found = [];
    for (const [id, request] of list.entries()) {
      worker.postMessage({ id, request: JSON.stringify(request) });
      found.push(await new Promise((done) => (worker.onmessage = ({ data }) => done(data.reply))));
    }
    worker.terminate();
    return found;
  }, requests);
  await close();
  return texts.map((text) => JSON.parse(text));
}

const runOf = ({ report }) => readReport(JSON.stringify(report))[0];

/** The same natively. */
function nativeReplies(requests) {
  const input = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
  const output = execFileSync(join(programs, "answer_lesson"), { input, encoding: "utf8", maxBuffer: 2 ** 28 });
  return output.trim().split("\n").map((line) => JSON.parse(line));
}

function assertNear(got, expected, tolerance, what) {
  assert.equal(got.length, expected.length, what);
  got.forEach((number, i) => {
    const same = number === expected[i] || Math.abs(number - expected[i]) <= tolerance * Math.max(1, Math.abs(expected[i]));
    assert.ok(same, `${what} [${i}]: ${number}, expected ${expected[i]}`);
  });
}

/** The numbers of a .npy file. */
function npy(name) {
  const bytes = readFileSync(fileURLToPath(new URL(`../data/002_encoder_block/${name}.npy`, import.meta.url)));
  const start = 10 + bytes.readUInt16LE(8);
  const header = bytes.toString("latin1", 10, start);
  const data = bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + bytes.length);
  return header.includes("<i8") ? Float64Array.from(new BigInt64Array(data), Number) : new Float32Array(data);
}

/** What the page shows of a tensor, cell by cell. */
async function shownNumbers(page, caption) {
  const grid = page.getByRole("grid", { name: caption, exact: true });
  return grid.evaluate(async (table) => {
    const numbers = [];
    for (const cell of table.querySelectorAll("tbody td")) {
      cell.click();
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      numbers.push(Number(document.querySelector(".readout [data-exact]").textContent));
    }
    return numbers;
  });
}

test("the file is small, and its policy lets nothing in", () => {
  assert.ok(Buffer.byteLength(html) <= 1_200_000, `${Buffer.byteLength(html)} bytes`);
  const hash = (element) => {
    const [, text] = new RegExp(`<${element}>([\\s\\S]*?)</${element}>`).exec(html);
    return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  };
  const policy = `default-src 'none'; script-src ${hash("script")} 'wasm-unsafe-eval'; worker-src blob:; style-src ${hash("style")}; base-uri 'none'; form-action 'none'`;
  assert.ok(html.startsWith(`<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta http-equiv="Content-Security-Policy" content="${policy}">`));
  assert.doesNotMatch(html, /\beval\(|new Function|document\.write|insertAdjacentHTML|outerHTML/);
});

test("every stop shows numbers whose formulas are right, and keeps quiet", async () => {
  const { page, close } = await openFile(file);
  for (const [i, name] of stops.entries()) {
    await go(page, name);
    assert.equal(await page.locator("h1").count(), 1);
    assert.match(await page.locator("h2").textContent(), new RegExp(`^${i + 1}\\. .*\\?$`));
    if (name === "training") await page.getByText("The formula of this weight").click();
    assert.ok((await page.locator(".verdict.agrees").count()) >= 1, name);
    assert.equal(await page.locator(".verdict.differs").count(), 0, name);
    assert.equal(await page.getByRole("alert").count(), 0, name);
  }
  await close();
});

test("the stops show what the notebook prints", async () => {
  const shown = [
    ["words", "ids", "printed_token_ids"],
    ["words", "the words' rows", "printed_embedded_tokens"],
    ["places", "x, what goes into the block", "printed_x_with_pe"],
    ["projections", "Q, queries", "printed_single_Q"],
    ["scores", "scores: who looks at whom", "printed_shoes_scores", 8],
    ["softmax", "weights: shares of attention", "printed_shoes_weights", 8],
    ["softmax", "context", "printed_shoes_context", 4],
    ["heads", "weights of a head", "printed_attn_weights_per_head"],
    ["heads", "attended", "printed_mha_out"],
    ["norm", "normed", "printed_normed_1"],
    ["feed", "fed", "printed_ffn_out"],
    ["feed", "encoded: what comes out of the block", "printed_encoder_out"],
  ];
  const { page, close } = await openFile(file);
  for (const [stop, caption, name, from = 0] of shown) {
    await go(page, stop);
    assert.match(await page.locator(".whose").textContent(), /those of the notebook/);
    const printed = npy(name);
    const numbers = await shownNumbers(page, caption);
    // Of shares the notebook's text is cut off in the first head; a row of one word is the second of eight.
    const count = Math.min(printed.length, numbers.length);
    assert.ok(count > 0);
    assertNear(numbers.slice(from, from + count), Array.from(printed.slice(0, count)), 1e-4, name);
  }
  await close();
});

const walks = [
  { do: "walk" },
  { do: "walk", heads: 1, asked: 5 },
  { do: "walk", heads: 4, hidden: [0, 3], positions: false },
  { do: "walk", d_model: 6, heads: 3, residual: false },
  { do: "walk", words: ["time", "flies", "fast"], asked: 2, edits: [{ parameter: "W_Q.weight", index: 5, value: 2.5 }, { parameter: "linear1.bias", index: 0, value: -4 }] },
];

test("the walk has the native library's numbers, and its formulas give them", async () => {
  const native = nativeReplies(walks).map(runOf);
  (await replies(walks)).map(runOf).forEach((run, i) => {
    checkFormulas(run);
    const [[graph], [expected]] = [run.graphs, native[i].graphs];
    assert.deepEqual(graph.values, expected.values);
    for (const part of ["values", "gradients"]) {
      graph.snapshots[0][part].forEach((array, id) => {
        const other = expected.snapshots[0][part][id];
        assert.equal(array === null, other === null);
        if (array) assertNear(Array.from(numbersOf(array)), Array.from(numbersOf(other)), 2e-6, `${part} of ${graph.values[id].name} #${id}`);
      });
    }
  });
});

test("the first stop stands in the page, as the worker replies, which starts with the first key or click", async () => {
  const [, request, reply] = /id="first">(.*)\n(.*)<\/script>/.exec(html);
  const [computed] = await replies([JSON.parse(request)]);
  assert.deepEqual(JSON.parse(reply), computed);
  await withStop("words", async (page) => {
    assert.equal(await page.locator(".verdict.agrees").count(), 1);
    assert.equal(page.workers().length, 0);
    const started = page.waitForEvent("worker");
    await page.keyboard.press("Tab");
    await started;
    await hold(page);
    await page.getByLabel("Sentence").fill("time flies");
    await page.locator(".whose").filter({ hasText: "You changed: the sentence" }).waitFor();
    await asked(page);
    const pending = page.locator(".part[data-pending]");
    assert.equal(await pending.count(), 1);
    await release(page);
    await page.locator(".task.done").waitFor();
    assert.equal(await pending.count(), 0);
    assert.equal(page.workers().length, 1);
    await page.getByRole("button", { name: "Back to the notebook's" }).click();
    await page.locator(".task:not(.done)").waitFor();
    assertNear(await shownNumbers(page, "the words' rows"), Array.from(npy("printed_embedded_tokens")), 1e-4, "embedded");
  });
  await withStop("words", async (page) => {
    assert.equal(page.workers().length, 0);
    const started = page.waitForEvent("worker");
    await page.mouse.down();
    await started;
  });
});

test("numbers of one head are not shown where there are two, and a worker that fails is replaced", async () => {
  const { page, close } = await openFile(file);
  await page.locator("html[data-ready]").waitFor();
  const worker = page.locator("#worker");
  const text = await worker.textContent();
  await worker.evaluate((element) => (element.textContent = 'onmessage = () => postMessage({ failure: "broken" })'));
  const alert = page.getByRole("alert").filter({ hasText: "The library ended with an error: broken" });
  await page.evaluate(() => (location.hash = "heads"));
  await alert.waitFor();
  assert.equal(await page.locator(".figures").count(), 0);
  await page.evaluate(() => (location.hash = "words"));
  await alert.waitFor({ state: "detached" });
  for (const words of ["time flies", "time flew"]) {
    await page.getByLabel("Sentence").fill(words);
    await alert.waitFor();
    await page.getByRole("button", { name: "Back to the notebook's" }).click();
    await alert.waitFor({ state: "detached" });
  }
  await worker.evaluate((element, whole) => (element.textContent = whole), text);
  await page.getByLabel("Sentence").fill("time flies");
  await page.locator(".task.done").waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  await close();
});

test("losses and attention are those of train_toy_encoder at steps 0, 1, 2 and 200", async () => {
  const [log, report] = [join(folder, "log.jsonl"), join(folder, "report.json")];
  const options = ["--steps", "1000", "--seed", "1", "--log", log, "--report", report];
  execFileSync(join(programs, "train_toy_encoder"), options, { stdio: "ignore" });
  const losses = readFileSync(log, "utf8").trim().split("\n").slice(1).map((line) => JSON.parse(line).loss);
  const [native] = readReport(readFileSync(report, "utf8"));
  const counts = [1, 1, 198, 1];
  const answers = await replies([{ do: "start", seed: 1, steps: 1000 }, ...counts.map((steps) => ({ do: "train", steps }))]);
  const found = answers.flatMap((answer) => answer.losses);
  for (const step of [0, 1, 2, 200]) assertNear([found[step]], [losses[step]], 1e-4, `loss of step ${step}`);
  assert.equal(found.length, 201);
  for (const [i, step] of [0, 1, 2, 200].entries()) {
    const run = runOf(answers[i]);
    assert.deepEqual(run.steps, [step]);
    checkFormulasOf(run.graphs[0], run.graphs[0].snapshots[0], run.attention[0].value, 1);
    const { weights } = native.attention[0].snapshots[native.steps.indexOf(step)];
    assertNear(Array.from(numbersOf(run.attention[0].snapshots[0].weights)), Array.from(numbersOf(weights)), 1e-4, `attention at step ${step}`);
  }
  checkFormulas(runOf(answers.at(-1)));
});

const steps = (page) => page.locator("[data-steps]").textContent().then((text) => Number(/step (\d+)/.exec(text)[1]));
const reached = (page, step) => page.waitForFunction((least) => Number(/step (\d+)/.exec(document.querySelector("[data-steps]").textContent)[1]) >= least, step);

test("one step after the other shows the native run's attention and gradient", () =>
  withStop("training", async (page) => {
    const native = nativeReplies([{ do: "start", steps: 1000 }, ...Array(3).fill({ do: "train", steps: 1 })]).map(runOf);
    for (const [step, run] of native.entries()) {
      await reached(page, step);
      assert.equal(await steps(page), step);
      const { snapshots } = run.attention[0];
      // The first head, from the hidden word (place 1) to its clue (place 3).
      for (const part of ["weights", "gradient"]) {
        const shown = Number(await page.locator(`.attention [data-exact="${part}"]`).textContent());
        assertNear([shown], [numbersOf(snapshots[0][part])[8 + 3]], 1e-4, `${part} at step ${step}`);
      }
      await page.getByRole("button", { name: "One step" }).click();
    }
  }));

/** What was asked for is done. */
const idle = (page) => page.locator('[data-steps][aria-busy="false"]').waitFor();
const press = (page, name) => page.getByRole("button", { name, exact: true }).click();

/** Trains up to this step, or some more, and stops. */
async function trainTo(page, step) {
  await press(page, "Train");
  await reached(page, step);
  await press(page, "Stop");
  await page.getByRole("button", { name: "Train", exact: true }).waitFor();
  await idle(page); // what the worker had begun
}

test("stop stops, and the training goes on where it was", () =>
  withStop("training", async (page) => {
    await trainTo(page, 20);
    const before = await steps(page);
    for (let i = 0; i < 3; ++i) await press(page, "One step");
    await idle(page);
    assert.equal(await steps(page), before + 3, "a step by each press, none else");
    await press(page, "Train");
    await reached(page, before + 10);
  }));

test("stop stops with reduced motion, too", () =>
  withStop("training", async (page) => {
    await page.getByLabel("Speed").selectOption("fast");
    await hold(page);
    await press(page, "Train");
    await asked(page);
    await press(page, "Stop");
    await release(page);
    await reached(page, 1);
    await idle(page);
    assert.equal(await steps(page), 20, "what had been asked for, not all of a second");
  }, { reducedMotion: "reduce" }));

test("no steps of a training are made by the next", () =>
  withStop("training", async (page) => {
    const name = page.locator(".keys li").last();
    const leave = async () => {
      await page.evaluate(() => (location.hash = "words"));
      await page.locator(".figures").waitFor();
      await page.evaluate(() => (location.hash = "training"));
      await page.locator(".stops a[href='#training'][aria-current]").waitFor();
    };
    const ways = [[() => press(page, "8 layers"), "8 layers"], [leave, "as in the library's program"]];
    for (const [way, expected] of ways) {
      await hold(page);
      for (let i = 0; i < 3; ++i) await press(page, "One step");
      await way();
      await release(page);
      await name.filter({ hasText: expected }).waitFor();
      await idle(page);
      assert.deepEqual([await steps(page), (await name.textContent()).trim()], [0, expected]);
      await press(page, "One step");
      await reached(page, 1);
      await idle(page);
      assert.equal(await steps(page), 1);
    }
  }));

test("numbers stand under the question that they belong to", () =>
  withStop("training", async (page) => {
    const guess = (i) => page.locator(".guesses button").nth(i);
    const shown = () => page.locator(".attention [data-exact]").allTextContents();
    const settled = async (i) => {
      await page.locator(`.guesses li:nth-child(${i + 1}) button[aria-pressed="true"]`).waitFor();
      await idle(page);
    };
    await trainTo(page, 20);
    await hold(page);
    await press(page, "Train");
    await asked(page); // for the first question
    await guess(2).click();
    await press(page, "Stop");
    await release(page);
    await settled(2);
    const first = await shown();
    for (const i of [0, 2]) {
      await guess(i).click();
      await settled(i);
    }
    assert.deepEqual(first, await shown());
  }));

test("a slider on its way keeps the curve that was there once", () =>
  withStop("training", async (page) => {
    await trainTo(page, 25);
    await hold(page);
    for (const seed of [1, 2, 3]) {
      await page.getByLabel("Seed").press("ArrowRight");
      await page.waitForFunction((count) => window.held.length === count, seed);
    }
    await release(page);
    await page.locator(".keys li", { hasText: "seed 3" }).waitFor();
    assert.equal(await page.locator(".keys li").count(), 2);
    assert.equal(await page.locator(".keys li", { hasText: "as in the library's program" }).count(), 1);
  }));

test("a training guesses the held-out sentence, and what is broken stays behind", () =>
  withStop("training", async (page) => {
    await page.getByLabel("Speed").selectOption("fast");
    await trainTo(page, 320);
    assert.match(await page.locator("h3", { hasText: "guesses are right" }).textContent(), /^6 of 6/);
    const tasks = page.locator(".task.done");
    assert.equal(await tasks.count(), 1, "attention found the clue");
    await page.getByRole("button", { name: "Rate 0.1" }).click();
    await page.locator("[data-steps]", { hasText: "step 0 of" }).waitFor();
    await trainTo(page, 320);
    assert.equal(await page.locator(".curve .line").count(), 2, "the first curve stays");
    assert.equal(await tasks.count(), 2);
    assert.match(await tasks.last().textContent(), /You did it: rate 0\.1\./);
    for (let i = 0; i < 4; ++i) {
      await press(page, "As it was");
      await page.locator("[data-steps]", { hasText: "step 0 of" }).waitFor();
      if (i < 3) await trainTo(page, 25);
    }
    assert.doesNotMatch(await page.locator(".keys").textContent(), /rate 0\.1/, "that curve has made room for others");
    assert.equal(await tasks.count(), 2, "but it was done");
  }));

const fieldOf = { projections: "W_Q, weights", softmax: "W_Q, weights", feed: "linear1, biases" };

/** Puts another number into the weight that is chosen. */
async function change(page, stop, value, place = 0) {
  await page.getByRole("grid", { name: fieldOf[stop], exact: true }).locator("tbody td").nth(place).click();
  await page.getByRole("spinbutton").fill(String(value));
  await page.getByRole("spinbutton").press("Enter");
}

const deeds = {
  words: (page) => page.getByLabel("Sentence").fill("small shoes hurt big feet"),
  places: (page) => page.getByLabel("Add the places").uncheck(),
  projections: (page) => change(page, "projections", 2),
  scores: (page) => page.getByRole("checkbox", { name: "are" }).first().check(),
  softmax: async (page) => {
    for (const place of [0, 1, 2, 4, 5, 6, 7]) await page.getByRole("group", { name: "Hide from all" }).getByRole("checkbox").nth(place).check();
  },
  heads: (page) => page.getByLabel("Heads").selectOption("4"),
  norm: (page) => page.getByLabel("Residual").uncheck(),
  feed: (page) => change(page, "feed", 1, 2),
  backward: (page) => page.getByLabel("Ask for").selectOption("5"),
};

for (const [stop, deed] of Object.entries(deeds)) {
  test(`${stop}: what there is to do can be done, and is noticed`, () =>
    withStop(stop, async (page) => {
      assert.equal(await page.locator(".task.done").count(), 0);
      await deed(page);
      await page.locator(".task.done").waitFor();
      const results = { projections: "Q, queries", feed: "fed" }; // there a weight is chosen now
      if (results[stop]) await page.getByRole("grid", { name: results[stop], exact: true }).locator("tbody td").first().click();
      await page.locator(".verdict.agrees").first().waitFor();
      assert.equal(await page.locator(".verdict.differs").count(), 0);
      if (stop === "backward") return;
      await page.getByRole("button", { name: "Back to the notebook's" }).click();
      await page.locator(".whose", { hasText: "those of the notebook" }).waitFor();
      await page.locator(".task.done").waitFor({ state: "detached" });
    }));
}

test("what cannot be is refused in a sentence, and the last numbers stay", () =>
  withStop("words", async (page) => {
    await page.getByLabel("Sentence").fill("");
    await page.getByRole("alert", { name: "" }).waitFor();
    assert.equal(await page.getByRole("alert").textContent(), "The sentence must have 1 to 10 words, and has 0.");
    assert.equal(await page.locator(".formula").count(), 1);
    assert.equal(await page.locator(".part[data-pending]").count(), 0);
    assert.equal(await page.getByText("The same in C++").count(), 0, "no program for it");
    await page.getByLabel("Sentence").fill("my \u202e<img src=x> shoes");
    await page.getByRole("alert").waitFor({ state: "detached" });
    assert.equal(await page.locator("img").count(), 0);
    assert.match(await page.locator("table").last().textContent(), /\\u202E<img/);
    assert.equal(await page.getByText("The same in C++").count(), 1);
  }));

test("numbers follow a slider that moves faster than the library answers", () =>
  withStop("projections", async (page) => {
    await change(page, "projections", 2);
    await page.locator(".task.done").waitFor();
    const product = page.getByRole("grid", { name: "Q, queries" }).locator("tbody td").first();
    const seen = [await product.textContent()];
    await hold(page);
    for (const expected of ["1.2", "0.4", "-0.4", "-1.2", "-2"]) {
      await page.getByRole("slider").press("PageDown");
      await asked(page);
      await twoFrames(page);
      assert.equal(await page.getByRole("slider").inputValue(), expected, "where it was moved to");
    }
    assert.equal(await page.evaluate(() => window.held.length), 1, "one walk at a time");
    await releaseThese(page);
    await asked(page);
    seen.push(await product.textContent());
    await releaseThese(page);
    await page.locator(".part[data-pending]").waitFor({ state: "detached" });
    await twoFrames(page);
    seen.push(await product.textContent());
    assert.equal(new Set(seen).size, 3, `${seen}`);
    assert.equal(await page.evaluate(() => window.held.length), 0, "not those that were passed over");
  }));

test("a weight too large for a float is none", () =>
  withStop("projections", async (page) => {
    await hold(page);
    await change(page, "projections", 1e39);
    await twoFrames(page);
    assert.equal(await page.evaluate(() => window.held.length), 0, "nothing is asked");
    await change(page, "projections", 2);
    await asked(page);
    await release(page);
    await page.locator(".changes").first().waitFor();
  }));

test("a formula that was followed is left when another number is chosen, or the shapes change", async () => {
  const cell = (page, grid, i) => page.getByRole("grid", { name: grid }).locator("tbody td").nth(i);
  const title = (page) => page.locator(".formula h4").textContent();
  const follow = async (page, grid, i) => {
    await cell(page, grid, i).click();
    const before = await title(page);
    await page.locator(".formula .operand").first().click();
    assert.notEqual(await title(page), before);
  };
  await withStop("heads", async (page) => {
    await follow(page, "attended", 31);
    await cell(page, "attended", 0).click();
    assert.equal(await title(page), "attended [0, 0]");
    await cell(page, "attended", 31).click();
    assert.equal(await title(page), "attended [7, 3]");
    await follow(page, "attended", 31);
    await page.getByLabel("d_model").selectOption("2");
    await page.locator(".formula h4", { hasText: "attended [7, 1]" }).waitFor();
  });
  await withStop("words", async (page) => {
    await follow(page, "the words' rows", 31);
    await page.getByLabel("Sentence").fill("my shoes");
    await page.locator(".formula h4", { hasText: "embedded [1, 3]" }).waitFor();
  });
  await withStop("training", async (page) => {
    await page.getByText("The formula of this weight").click();
    await page.getByLabel("Layers").press("ArrowRight");
    await page.getByRole("rowheader", { name: "layer 1 head 3" }).first().waitFor();
    await follow(page, "Weights", 7 * 8); // of the second layer
    await page.getByLabel("Layers").press("ArrowLeft");
    await page.getByRole("rowheader", { name: "layer 1 head 3" }).first().waitFor({ state: "detached" });
    assert.match(await title(page), /^softmax/);
  });
});

test("the stops say whose the numbers are", () =>
  withStop("backward", async (page) => {
    assert.equal(await page.locator(".whose").textContent(), "The block is the notebook's; the guess and its loss are added here.");
    await go(page, "softmax");
    assert.doesNotMatch(await page.locator(".task").textContent(), /head 0/);
    await go(page, "heads");
    await deeds.heads(page);
    await page.locator(".task.done").waitFor();
    await go(page, "softmax");
    assert.match(await page.locator(".task").textContent(), /% now, in head 0\./);
  }));

test("a changed number is marked with all that follow from it", () =>
  withStop("projections", async (page) => {
    await change(page, "projections", 2);
    await page.locator(".changes").first().waitFor();
    const marked = (name) => page.getByRole("grid", { name, exact: true }).locator("td.marked").count();
    assert.deepEqual([await marked("W_Q, weights"), await marked("Q, queries"), await marked("K, keys")], [1, 8, 0]);
  }));

test("op by op, forward and backward, with formulas that are right", () =>
  withStop("backward", async (page) => {
    const right = page.locator(".verdict.agrees").or(page.locator(".formula", { hasText: "A parameter" }));
    for (const direction of ["backward", "forward"]) {
      await page.getByRole("radio", { name: direction }).check();
      await page.getByRole("slider", { name: "Step" }).press("Home");
      const names = [];
      for (;;) {
        names.push(await page.locator(".step-name b").textContent());
        await twoFrames(page); // what was chosen in the step before is let go of
        if (direction === "forward") await right.first().waitFor();
        assert.equal(await page.locator(".verdict.differs").count(), 0, `${direction}: ${names.at(-1)}`);
        const next = page.getByRole("button", { name: "Next op" });
        if (await next.isDisabled()) break;
        await next.click();
      }
      if (direction === "forward") names.reverse();
      assert.equal(names[0], "cross_entropy");
      assert.equal(names.at(-1), "embedding");
      for (const name of ["linear", "layer_norm", "add", "relu", "softmax", "matmul", "div"]) assert.ok(names.includes(name), name);
    }
  }));

test("by keyboard alone: from stop to stop, to a weight and to another number for it", () =>
  withStop("words", async (page) => {
    const focused = () => page.evaluate(() => document.activeElement.textContent);
    for (const name of ["1. Words", "2. Places", "3. Q, K, V"]) {
      await page.keyboard.press("Tab");
      assert.equal(await focused(), name);
    }
    await page.keyboard.press("Enter");
    await page.getByRole("grid", { name: fieldOf.projections, exact: true }).waitFor();
    assert.match(await focused(), /^3\. /);
    const role = () => page.evaluate(() => document.activeElement.getAttribute("role"));
    for (let i = 0; i < 20 && (await role()) !== "gridcell"; ++i) await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowRight");
    assert.match(await page.locator(".readout").textContent(), /W_Q \[0, 1\]/);
    const type = () => page.evaluate(() => document.activeElement.type);
    for (let i = 0; i < 20 && (await type()) !== "number"; ++i) await page.keyboard.press("Tab");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("1.5");
    await page.keyboard.press("Enter");
    await page.locator(".whose", { hasText: "W_Q[1] = 1.50" }).waitFor();
    assert.equal(await page.locator(".task.done").count(), 1);
  }));

/** The numbers that a program printed after the line `name`. */
function printed(output, name) {
  const [, text] = new RegExp(`^${name}\\n(tensor\\([\\s\\S]*?\\))(?:\\n\\n|$)`, "m").exec(output.trimEnd() + "\n\n");
  return (text.replace(/grad_fn.*/, "").match(/-?(?:inf|\d+\.?\d*(?:e[+-]?\d+)?)/g) ?? []).map((number) => Number(number.replace("inf", "Infinity")));
}

/** Compiles and runs the program that the page copies. */
async function outputOfCopied(page) {
  await page.getByText("The same in C++").click();
  await page.getByRole("button", { name: "Copy the whole program" }).click();
  await page.getByText("Copied: ").waitFor();
  const source = join(folder, "lesson.cpp");
  const program = join(folder, "lesson");
  writeFileSync(source, await page.evaluate(() => window.copied));
  execSync(`${compile} ${source} -o ${program} ${link}`, { stdio: ["ignore", "ignore", "inherit"] });
  return execFileSync(program, { encoding: "utf8" });
}

async function catchCopies(page) {
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => void (window.copied = text) } }));
}

const names = { normed: "normed_1" };

test("the C++ of the walk compiles and prints what the page shows, as in the notebook and after changes", () =>
  withStop("projections", async (page) => {
    await catchCopies(page);
    const check = async (request) => {
      const output = await outputOfCopied(page);
      const [run] = (await replies([request])).map(runOf);
      const numbers = (name, part) => Array.from(numbersOf(run.tensors.find((tensor) => tensor.name === (names[name] ?? name))[part]));
      for (const name of ["embedded", "x", "Q", "K", "V", "scores", "weights", "context", "attended", "normed", "fed", "encoded", "logits", "loss"])
        assertNear(printed(output, name), numbers(name, "value"), 1e-5, name);
      for (const name of ["weights", "Q", "x"]) assertNear(printed(output, `gradient of ${name}`), numbers(name, "gradient"), 1e-5, `gradient of ${name}`);
    };
    await check({ do: "walk", heads: 1 });
    await change(page, "projections", 2, 5);
    await go(page, "scores");
    await page.getByRole("checkbox", { name: "small" }).check();
    await go(page, "norm");
    await page.getByLabel("Residual").uncheck();
    await page.locator(".task.done").waitFor();
    await check({ do: "walk", heads: 2, hidden: [3], residual: false, edits: [{ parameter: "W_Q.weight", index: 5, value: 2 }] });
  }));

test("the C++ of the training compiles and prints the page's losses", () =>
  withStop("training", async (page) => {
    await catchCopies(page);
    await page.getByLabel("Places").uncheck();
    await page.getByLabel("Layers").press("ArrowRight");
    await page.locator("[data-steps]", { hasText: "step 0 of" }).waitFor();
    const lines = [...(await outputOfCopied(page)).matchAll(/^step (\d+): loss (\S+)$/gm)];
    const [, { losses }] = await replies([{ do: "start", steps: 1000, layers: 2, positions: false }, { do: "train", steps: 103 }]);
    assert.deepEqual(lines.slice(0, 6).map(([, step]) => Number(step)), [0, 1, 2, 100, 101, 102]);
    for (const [, step, loss] of lines.slice(0, 6)) assertNear([losses[step]], [Number(loss)], 1e-4, `loss of step ${step}`);
  }));

test("nothing is wider than a narrow screen", async () => {
  const { page, close } = await openFile(file, { width: 400, height: 800 });
  for (const name of stops) {
    await go(page, name);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 400, name);
  }
  await close();
});

test("what is chosen by keys is not behind the panel of a narrow screen", async () => {
  const { page, close } = await openFile(file, { width: 400, height: 800 });
  await go(page, "projections");
  const covered = () =>
    page.evaluate(() => document.activeElement.getBoundingClientRect().bottom - document.querySelector(".chosen-number").getBoundingClientRect().top);
  const grid = page.getByRole("grid", { name: "Q, queries" });
  await grid.locator("tbody td").first().focus();
  for (let i = 0; i < 8; ++i) {
    assert.ok((await covered()) <= 0, `row ${i}: ${await covered()} px`);
    await page.keyboard.press("ArrowDown");
    await twoFrames(page);
  }
  await close();
});

test("who wants no motion gets ten pictures in one", async () => {
  for (const [reducedMotion, expected] of [["no-preference", 5], ["reduce", 50]]) {
    await withStop("training", async (page) => {
      await page.evaluate(() => {
        window.pictures = [];
        const text = document.querySelector("[data-steps]");
        new MutationObserver(() => window.pictures.push(Number(/step (\d+)/.exec(text.textContent)[1]))).observe(text, { characterData: true, subtree: true });
      });
      await page.getByRole("button", { name: "Train", exact: true }).click();
      await reached(page, 3 * expected);
      const pictures = await page.evaluate(() => [...new Set(window.pictures)].filter((step) => step > 0));
      assert.deepEqual(pictures.slice(0, 3), [expected, 2 * expected, 3 * expected]);
    }, { reducedMotion });
  }
});

test("axe finds nothing, light and dark", async () => {
  const { page, close } = await openFile(file, { bypassCSP: true });
  for (const name of stops) {
    await go(page, name);
    if (deeds[name]) {
      await deeds[name](page);
      await page.locator(".task.done").waitFor();
    }
    for (const summary of await page.locator("summary").all()) await summary.click();
    assert.deepEqual(await axeFindings(page), [], name);
    const back = page.getByRole("button", { name: "Back to the notebook's" });
    if (await back.isVisible()) await back.click();
  }
  await close();
});
