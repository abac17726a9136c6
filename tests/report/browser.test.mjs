// The page of a report in a browser. Run by itself it ends with 77 where there is no browser.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { report, stored } from "./arrays.mjs";
import { axeFindings, browserPath, start, stop, twoFrames, withPage } from "./browser.mjs";
import { random } from "./random.mjs";
import { emptyRun, largeAttentionRun, largeGraphRun, trainedRun } from "./sample.mjs";
import { needPackages, sources, template } from "./tools.mjs";

if (browserPath() === undefined) {
  console.log("skipped: no browser");
  process.exit(77);
}

needPackages("playwright-core", "axe-core");

before(start);
after(stop);

const run = trainedRun();
const other = trainedRun({ seed: 1, rate: 0.003, title: "toy encoder, seed 1" });

function floats({ base64 }) {
  const bytes = Buffer.from(base64, "base64");
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

async function moveTo(page, notch) {
  await page.locator(".scrub input").focus();
  await page.keyboard.press("Home");
  for (let i = 0; i < notch; ++i) await page.keyboard.press("ArrowRight");
}

function assertBits(text, expected) {
  assert.ok(Object.is(Math.fround(Number(text)), expected), `${text} has the bits of ${expected}`);
}

test("the template is small, and its policy has the hashes of its script and style", () => {
  assert.ok(Buffer.byteLength(template) <= 170_000, `${Buffer.byteLength(template)} bytes`);
  const hash = (element) => {
    const [, text] = new RegExp(`<${element}>([\\s\\S]*?)</${element}>`).exec(template);
    return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  };
  const policy = `default-src 'none'; script-src ${hash("script")}; style-src ${hash("style")}; base-uri 'none'; form-action 'none'`;
  assert.ok(template.startsWith(`<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta http-equiv="Content-Security-Policy" content="${policy}">`));
  assert.equal(template.split('"@XGRAD_REPORT@"').length, 2);
});

test("the page never makes code or HTML of text", () => {
  const script = template.slice(template.lastIndexOf("<script>"));
  assert.doesNotMatch(script, /\beval\(|new Function|document\.write|insertAdjacentHTML|outerHTML/);
  // preact can set innerHTML, but only where a source asks for it by this name.
  for (const text of sources()) assert.doesNotMatch(text, /innerHTML|dangerouslySetInnerHTML/i);
});

test("the template alone says that there is no report", () =>
  withPage(null, async (page) => {
    assert.match(await page.getByRole("alert").textContent(), /this is the page alone, without a report/);
  }));

test("a run with nothing but a title, large runs and two runs keep quiet", async () => {
  for (const runs of [[emptyRun("nothing")], [run], [run, other], [largeAttentionRun()], [largeGraphRun()]]) {
    await withPage(report(...runs), async (page) => {
      assert.equal(await page.locator("h1").count(), 1);
      assert.equal(await page.getByRole("alert").count(), 0);
    });
  }
});

test("weights and gradients have the bits of the run, at three steps, by keyboard", () =>
  withPage(report(run), async (page) => {
    const [attention] = run.attention;
    const tokens = attention.keys.length;
    for (const notch of [0, 3, 7]) {
      await moveTo(page, notch);
      const [weights, gradient] = [floats(attention.snapshots[notch].weights), floats(attention.snapshots[notch].gradient)];
      await page.locator('#attention [role="grid"]').first().locator('[tabindex="0"]').focus();
      await page.keyboard.press("Control+Home");
      for (let place = 0; place < tokens * tokens; ++place) {
        assertBits(await page.locator('#attention [data-exact="weights"]').textContent(), weights[place]);
        assertBits(await page.locator('#attention [data-exact="gradient"]').textContent(), gradient[place]);
        await page.keyboard.press("ArrowRight");
        if (place % tokens === tokens - 1) {
          await page.keyboard.press("ArrowDown");
          await page.keyboard.press("Home");
        }
      }
    }
  }));

test("heads of layers without a name can be told apart and chosen, of each example", () => {
  const nameless = structuredClone(run);
  nameless.attention.push({ ...structuredClone(nameless.attention[1]), example: "another" });
  for (const attention of nameless.attention) attention.module = "";
  return withPage(report(nameless), async (page) => {
    const pressed = () => page.locator("#attention .head[aria-pressed=true]").evaluateAll((all) => all.map((head) => head.ariaLabel));
    assert.deepEqual(await pressed(), ["Head 0 of attention 0"]);
    await page.getByRole("button", { name: "Head 0 of attention 1" }).press("Enter");
    assert.deepEqual(await pressed(), ["Head 0 of attention 1"]);
    assert.equal(await page.locator("#attention h3").last().textContent(), "Head 0 of attention 1");
    await page.locator('#attention [role="grid"] tbody td').first().click();
    assertBits(await page.locator('#attention [data-exact="weights"]').textContent(), floats(nameless.attention[1].snapshots.at(-1).weights)[0]);
    assert.equal(await page.locator("#attention .verdict.agrees").count(), 2);
    await page.getByLabel("Example").selectOption("another");
    assert.deepEqual(await pressed(), ["Head 0 of attention"]);
  });
});

test("nan, infinities, -0 and the smallest numbers of a tensor are named exactly", () => {
  const numbers = Float32Array.of(NaN, Infinity, -Infinity, -0, 2 ** -149, 3.4028234663852886e38, 0.1, 16777217);
  const tensor = { section: "1", name: "edges", value: stored(numbers) };
  return withPage(report({ title: "edges", tensors: [tensor] }), async (page) => {
    await page.locator("#tensors summary").click();
    await page.locator('#tensors [role="grid"] [tabindex="0"]').focus();
    const names = { nan: NaN, inf: Infinity, "-inf": -Infinity };
    for (const number of numbers) {
      const text = await page.locator('#tensors [data-exact="value"]').textContent();
      assertBits(text in names ? names[text] : text, number);
      await page.keyboard.press("ArrowRight");
    }
  });
});

test("a key that is pressed before a tensor's first picture moves its cursor", () => {
  const tensor = { section: "1", name: "three", value: stored(Float32Array.of(1, 2, 3)) };
  return withPage(report({ title: "early", tensors: [tensor] }), async (page) => {
    await page.evaluate(() => {
      const pressed = new MutationObserver(() => {
        const cell = document.querySelector('#tensors [role="grid"] [tabindex="0"]');
        if (cell === null) return;
        pressed.disconnect();
        cell.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
      });
      pressed.observe(document.querySelector("#tensors"), { childList: true, subtree: true });
    });
    await page.locator("#tensors summary").click();
    await twoFrames(page);
    assert.equal(await page.locator('#tensors [data-exact="value"]').textContent(), "2");
  });
});

test("the scrub moves curves, predictions, attention and parameters", () =>
  withPage(report(run), async (page) => {
    const losses = floats(run.curves[0].values);
    for (const [notch, step] of run.steps.entries()) {
      await moveTo(page, notch);
      assert.match(await page.locator(".scrub input").getAttribute("aria-valuetext"), new RegExp(`after ${step} steps`));
      assertBits(await page.locator('#curves [data-exact="curve"]').first().textContent(), losses[step]);
      const [answer] = run.predictions[0].snapshots[notch].answers;
      assert.equal(await page.locator("#predictions li .name").first().textContent(), answer.label);
    }
    const norm = () => page.locator("#parameters tbody td.number").first().textContent();
    const last = await norm();
    await page.keyboard.press("Home");
    assert.notEqual(await norm(), last);
    await page.keyboard.press("End");
    assert.equal(await norm(), last);
  }));

test("the scrub moves through the steps of curves alone, as logs have them", () => {
  const values = Float32Array.from({ length: 30 }, (_, i) => 1 / (i + 1));
  const steps = stored(BigInt64Array.from(values, (_, i) => BigInt(3 + 2 * i)));
  return withPage(report({ title: "a log", curves: [{ name: "loss", steps, values: stored(values) }] }), async (page) => {
    const text = page.locator('#curves [data-exact="curve"]');
    assertBits(await text.textContent(), values[29]);
    for (const [notch, [step, place]] of [[3, 0], [5, 1], [10, 3], [20, 8], [50, 23], [61, 29]].entries()) {
      await moveTo(page, notch);
      assert.equal(await page.locator(".scrub output").textContent(), `step ${step}`);
      assertBits(await text.textContent(), values[place]);
    }
  });
});

test("play goes through the steps; little motion forbids it", async () => {
  await withPage(report(run), async (page) => {
    await page.getByRole("button", { name: "Play the training" }).click();
    await page.waitForFunction(() => document.querySelector(".scrub input").value === "2");
    await page.getByRole("button", { name: "Stop" }).click();
  });
  await withPage(report(run), async (page) => {
    assert.ok(await page.getByRole("button", { name: "Play the training" }).isDisabled());
  }, { reducedMotion: "reduce" });
});

test("the formulas of attention agree with the run, and lead to their operands and back", () =>
  withPage(report(run), async (page) => {
    const panel = page.locator("#attention .formula");
    for (const notch of [0, 4]) {
      await moveTo(page, notch);
      for (const cell of [0, 6, 18]) {
        await page.locator('#attention [role="grid"]').first().locator("tbody td").nth(cell).click();
        assert.equal(await panel.locator(".verdict.agrees").count(), 2);
        assert.equal(await panel.locator(".verdict.differs").count(), 0);
      }
    }
    const title = await panel.locator("h4").textContent();
    const hasFocus = () => panel.locator("h4").evaluate((heading) => heading === document.activeElement);
    await panel.locator(".operand").first().press("Enter");
    assert.match(await panel.locator("h4").textContent(), /^masked_fill/);
    assert.ok(await hasFocus());
    await panel.locator(".operand").first().press("Enter");
    await panel.getByRole("button", { name: "Back" }).press("Enter");
    await panel.getByRole("button", { name: "Back" }).press("Enter");
    assert.equal(await panel.locator("h4").textContent(), title);
    assert.ok(await hasFocus());
  }));

test("a number that its operands do not give is flagged", () => {
  const wrong = structuredClone(run);
  const { value } = wrong.attention[0];
  for (const snapshot of wrong.graphs[0].snapshots) {
    const numbers = floats(snapshot.values[value]);
    numbers[0] += 1e-5;
    snapshot.values[value] = stored(numbers, snapshot.values[value].shape);
  }
  return withPage(report(wrong), async (page) => {
    await page.locator("#attention tbody td").first().click();
    assert.match(await page.locator("#attention .verdict.differs").first().textContent(), /differs from the run/);
  });
});

test("where the numbers of a graph are of the last step alone, the page says so at the others", () => {
  const last = structuredClone(run);
  for (const snapshot of last.graphs[0].snapshots.slice(0, -1)) {
    delete snapshot.values;
    delete snapshot.gradients;
  }
  return withPage(report(last), async (page) => {
    assert.equal(await page.locator("#attention .formula").count(), 1);
    await moveTo(page, 2);
    assert.equal(await page.locator("#attention .formula").count(), 0);
    assert.match(await page.locator("#attention .one-head").textContent(), /for step 80 alone: move the scrub there/);
    await page.locator("#tensors summary").first().click();
    await page.locator("#tensors .formula").waitFor();
  });
});

test("the graph is walked by keyboard alone", () =>
  withPage(report(run), async (page) => {
    const box = (name) => page.locator("#graph .box", { hasText: name }).first();
    const focused = () => page.evaluate(() => document.activeElement.title || document.activeElement.textContent);
    await box("layers.0 … 1").focus();
    await page.keyboard.press("Enter");
    assert.equal(await focused(), "encoder.layers.0");
    await box("layers.1").focus();
    await page.keyboard.press("Enter");
    assert.equal(await focused(), "encoder.layers.1.self_attention");
    await box("1.self_attention").focus();
    await page.keyboard.press("Enter");
    await box("softmax").focus();
    await page.keyboard.press("Enter");
    assert.match(await page.locator("#graph .value h3").textContent(), /^softmax #/);
    assert.equal(await page.locator("#graph .verdict.agrees").count(), 2);
    await page.getByRole("searchbox").pressSequentially("masked layers.0");
    assert.match(await page.locator("#graph [role=status]").textContent(), /^1 value found/);
    await page.locator("#graph .outline .link").focus();
    await page.keyboard.press("Enter");
    assert.match(await page.locator("#graph .value h3").textContent(), /^masked_fill #/);
    await page.getByRole("searchbox").fill("");
    assert.ok(await page.getByRole("searchbox").evaluate((box) => box === document.activeElement), "the search keeps the focus");
    await page.locator("#graph .open-modules button", { hasText: "encoder.layers.1 ×" }).press("Enter");
    assert.equal(await focused(), "encoder.layers.1");
    await page.locator("#graph .open-modules button", { hasText: /^encoder ×$/ }).press("Enter");
    assert.equal(await page.locator("#graph .box.module", { hasText: /^encoder/ }).count(), 1);
    assert.equal(await focused(), "encoder");
    await page.getByRole("button", { name: "Expand all" }).press("Enter");
    assert.equal(await page.locator("#graph .box").count(), run.graphs[0].values.length);
  }));

test("tab goes through the sections, the scrub and the controls in the order of the page", () =>
  withPage(report(run), async (page) => {
    const visited = [];
    for (let i = 0; i < 16; ++i) {
      await page.keyboard.press("Tab");
      visited.push(await page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent));
    }
    const sections = ["Curves", "Attention", "Predictions", "Parameters", "Graph", "Notebook", "Profile", "Options"];
    assert.deepEqual(visited.slice(0, 10), [...sections, "Play the training", "Step of training"]);
    assert.ok(visited.includes("Head 0 of encoder.layers.0.self_attention"));
  }));

test("matrices of more than 32 tokens have a cursor and a readout", () =>
  withPage(report(largeAttentionRun()), async (page) => {
    const weights = floats(largeAttentionRun().attention[0].snapshots[0].weights);
    await page.getByRole("application").first().focus();
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("ArrowDown");
    for (let i = 0; i < 3; ++i) await page.keyboard.press("ArrowRight");
    assertBits(await page.locator('#attention [data-exact="weights"]').textContent(), weights[128 + 3]);
    await page.keyboard.press("Control+End");
    assertBits(await page.locator('#attention [data-exact="weights"]').textContent(), weights[128 * 128 - 1]);
  }));

test("a graph of 2,000 ops opens collapsed, its layers as one box, and is a list beyond 300 boxes", () =>
  withPage(report(largeGraphRun()), async (page) => {
    assert.match(await page.locator("#graph .box").first().textContent(), /layers.0 … 11 × 12/);
    assert.equal(await page.getByRole("button", { name: "Expand all" }).count(), 0);
    await page.locator("#graph .box").first().click();
    assert.equal(await page.locator("#graph .box.module").count(), 12);
    await page.locator('#graph .box[title="encoder.layers.1"]').press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.title), "encoder.layers.1.parta");
    assert.ok((await page.locator("#graph .box").count()) <= 300);
    await page.getByRole("searchbox").fill("relu layers.7");
    assert.match(await page.locator("#graph [role=status]").textContent(), /^33 values found/);
  }));

test("where too many boxes are open to be drawn, closing one leads to the next", () => {
  const modules = { "": "", few: "Few", many: "Many" };
  const values = [["few", 2], ["many", 310]].flatMap(([module, count]) =>
    Array.from({ length: count }, () => ({ kind: "op", name: "relu", module, inputs: [], shape: [] })));
  return withPage(report({ title: "wide", graphs: [{ modules, values }] }), async (page) => {
    for (const name of ["few", "many"]) await page.locator(`#graph .box[title=${name}]`).press("Enter");
    assert.equal(await page.locator("#graph .box").count(), 0);
    await page.getByRole("button", { name: "few" }).press("Enter");
    assert.match(await page.evaluate(() => document.activeElement.textContent), /^many/);
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.title), "many");
  });
});

test("what has no elements is empty, what has none that is finite is not finite", () => {
  const none = { min: null, max: null, mean: null, rms: null };
  const values = [{ ...none }, { ...none, nonfinite: 2 }, { min: 1, max: 1, mean: 1, rms: null }];
  const graph = { values: values.map(() => ({ kind: "constant", inputs: [], shape: [] })), snapshots: [{ value: values, gradient: [] }] };
  const parameter = { name: "p", shape: [0], snapshots: [{ weight: { ...none, norm: null, counts: [] } }] };
  return withPage(report({ title: "edges", steps: [0], graphs: [graph], parameters: [parameter] }), async (page) => {
    assert.deepEqual(await page.locator("#graph .box .number").allTextContents(), ["rms empty", "rms not finite", "rms not finite"]);
    assert.deepEqual(await page.locator("#parameters .histogram dd").allTextContents(), Array(5).fill("empty"));
  });
});

test("two runs: curves over each other, numbers beside each other, options that differ", () =>
  withPage(report(run, other), async (page) => {
    assert.equal(await page.locator("#curves .curve").first().locator(".line").count(), 2);
    const readouts = page.locator("#curves .curve").first().locator('[data-exact="curve"]');
    assertBits(await readouts.nth(0).textContent(), floats(run.curves[0].values).at(-1));
    assertBits(await readouts.nth(1).textContent(), floats(other.curves[0].values).at(-1));
    assert.equal(await page.locator('#attention [data-exact="weights"]').count(), 2);
    assert.equal(await page.locator("#parameters .histogram").count(), 6);
    const differing = await page.locator("#options tr.differs th").allTextContents();
    assert.deepEqual(differing.sort(), ["≠ --lr", "≠ --warmup", "≠ seed"]);
  }));

test("runs with one title are told apart by the options that differ, else by a number", () => {
  const curves = [{ name: "loss", values: stored(Float32Array.of(2, 1)) }];
  const rated = (rate) => ({ title: "a", options: { "--lr": rate, "--steps": "2" }, curves });
  const runs = [rated("0.1"), rated("0.1"), rated("3"), { title: "b", curves }];
  const titles = ["a, lr 0.1, no. 1", "a, lr 0.1, no. 2", "a, lr 3", "b"];
  return withPage(report(...runs), async (page) => {
    assert.equal(await page.locator("h1").textContent(), titles.join(" and "));
    assert.equal(await page.title(), titles.join(" and "));
    for (const place of [".headline", "#curves", "#options"]) {
      assert.deepEqual((await page.locator(`${place} .run-name`).allTextContents()).map((name) => name.trim()), titles);
    }
  });
});

test("six runs have six styles of lines", () => {
  const runs = Array.from({ length: 6 }, (_, i) => ({ title: `run ${i}`, curves: [{ name: "loss", values: stored(Float32Array.of(i, 1)) }] }));
  return withPage(report(...runs), async (page) => {
    for (const property of ["stroke", "strokeDasharray"]) {
      const lines = page.locator("#curves .line");
      const styles = await lines.evaluateAll((all, name) => all.map((line) => getComputedStyle(line)[name]), property);
      assert.equal(new Set(styles).size, 6, styles.join());
    }
  });
});

test("a run that ended before the scrub's step says of which step its numbers are", () => {
  const short = structuredClone(other);
  short.steps.length = 4;
  for (const { snapshots } of [...short.attention, ...short.predictions, ...short.parameters, ...short.graphs]) snapshots.length = 4;
  return withPage(report(run, short), async (page) => {
    const saysStep5 = (selector) => page.locator(selector, { hasText: "Of step 5, the last that is in the file" }).count();
    const ofRun = (section, index, part) => saysStep5(`#${section} .runs >> nth=${part} >> .run >> nth=${index} >> p`);
    for (const [section, part, times] of [["attention", 0, 2], ["attention", 1, 1], ["predictions", 0, 2], ["parameters", 0, 1]]) {
      assert.equal(await ofRun(section, 0, part), 0, section);
      assert.equal(await ofRun(section, 1, part), times, section);
    }
    assert.equal(await saysStep5("#parameters thead p"), 1);
    assert.equal(await saysStep5("#graph p"), 0);
    await page.locator("#graph select").first().selectOption("1");
    assert.equal(await saysStep5("#graph p"), 1);
    await moveTo(page, 3);
    assert.equal(await saysStep5("main p"), 0);
  });
});

test("the colours of two runs stand for the same numbers", () =>
  withPage(report(run, other), async (page) => {
    const ends = await page.locator("#attention .one-head .legend .number").allTextContents();
    assert.equal(ends.length, 8);
    assert.deepEqual(ends.slice(4), ends.slice(0, 4));
    const largest = [run, other].map(({ attention: [{ snapshots }] }) => Math.max(...floats(snapshots.at(-1).gradient).map(Math.abs)));
    assert.notEqual(largest[0], largest[1]);
    assert.ok(Math.abs(Number(ends[3]) / Math.max(...largest) - 1) < 0.01, `${ends[3]}, the largest are ${largest}`);
  }));

const hostile = "</script><img src=x onerror=alert(1)><!--<script>\u202Ereversed\u2028\u0007&amp;";
const shown = "</script><img src=x onerror=alert(1)><!--<script>\\u202Ereversed\\u2028\\u0007&amp;";

test("hostile text is shown as it is, what cannot be seen as escapes", () => {
  const bad = structuredClone(run);
  Object.assign(bad, { title: hostile, program: hostile, notes: [hostile], options: { [hostile]: hostile, constructor: hostile } });
  Object.assign(bad.attention[0], { example: hostile, module: hostile, queries: Array(5).fill(hostile), keys: Array(5).fill(hostile) });
  Object.assign(bad.predictions[0], { text: hostile, truth: hostile });
  Object.assign(bad.curves[0], { name: hostile });
  Object.assign(bad.parameters[0], { name: hostile });
  Object.assign(bad.tensors[0], { section: hostile, name: hostile, axes: [hostile], rows: Array(5).fill(hostile) });
  bad.graphs[0].values[3].name = hostile;
  bad.graphs[0].modules[hostile] = hostile;
  return withPage(report(bad), async (page) => {
    assert.equal(await page.locator("h1").textContent(), shown);
    assert.equal(await page.title(), shown);
    assert.equal(await page.locator(".note").textContent(), shown);
    assert.equal(await page.locator("img").count(), 0);
    const hidden = await page.evaluate(() => /[\u202e\u2028\u0007]/.test(document.querySelector("#page").outerHTML));
    assert.equal(hidden, false);
    await page.locator("#tensors summary").first().click();
    assert.equal(await page.locator('#tensors [role="grid"] th[scope="row"]').first().textContent(), shown);
  });
});

test("data that does not fit is refused in one sentence", async () => {
  const changed = (change) => {
    const copy = report(structuredClone(run));
    change(copy, copy.runs[0]);
    return copy;
  };
  const cases = [
    ["{", /^The data is not JSON\.$/],
    ["[]", /^The data must be an object\.$/],
    [{ ...report(run), version: 2 }, /^The data has version 2 of the format, and this page reads version 1\.$/],
    [{ ...report(run), format: "other" }, /must say \{"format": "xgrad-report"\}\.$/],
    [report(), /^The data holds no run\.$/],
    [report({}), /^runs\[0\]\.title must be text\.$/],
    [changed((_, run) => (run.steps[1] = "1")), /^runs\[0\]\.steps\[1\] must be a number\.$/],
    [changed((_, run) => run.steps.reverse()), /^runs\[0\]\.steps must ascend\.$/],
    [changed((_, run) => (run.curves[1].steps = stored(BigInt64Array.from({ length: 81 }, (_, i) => BigInt(i === 7 ? 6 : i))))),
      /^runs\[0\]\.curves\[1\]\.steps must ascend\.$/],
    [changed((_, run) => run.steps.pop()),
      /^runs\[0\]\.parameters\[0\]\.snapshots must be as long as steps, 7, but has 8\.$/],
    [changed((_, run) => (run.curves[0].values.shape = [3])),
      /^runs\[0\]\.curves\[0\]\.values has the shape \(3\) of 3 elements, but its base64 holds 81\.$/],
    [changed((_, run) => (run.curves[0].values.dtype = "f16")), /^runs\[0\]\.curves\[0\]\.values\.dtype must be one of/],
    [changed((_, run) => run.attention[0].keys.pop()), /^runs\[0\]\.attention\[0\]\.masked must have the shape 4 × 4, but has 5 × 5\.$/],
    [changed((_, run) => (run.attention[0].value = 999)), /^runs\[0\]\.attention\[0\] names a value that is in no graph\.$/],
    [changed((_, run) => (run.graphs[0].values[5].inputs = [5])),
      /^runs\[0\]\.graphs\[0\]\.values\[5\]\.inputs must have smaller ids than their result\.$/],
    [changed((_, run) => (run.graphs[0].snapshots[0].value = [])), null],
    [changed((_, run) => (run.curves[0].values.base64 = "!".repeat(run.curves[0].values.base64.length - 1) + "=")), /base64/],
  ];
  for (const [data, sentence] of cases) {
    await withPage(data, async (page) => {
      const alerts = await page.getByRole("alert").allTextContents();
      if (sentence === null) assert.deepEqual(alerts, []);
      else assert.match(alerts.join(), sentence);
      assert.equal(await page.locator("h1").count(), 1);
    });
  }
});

/** A place in data, as the object or list that holds it and the name there. */
function somePlace(data, uniform) {
  const names = Object.keys(data);
  const name = names[Math.floor(uniform() * names.length)];
  const isLeaf = typeof data[name] !== "object" || data[name] === null || Object.keys(data[name]).length === 0;
  return isLeaf || uniform() < 0.2 ? [data, name] : somePlace(data[name], uniform);
}

test("whatever is changed in the data, the page shows it or refuses it in a sentence", async () => {
  const { uniform } = random(5);
  const replacements = [null, -1, 0, 2.5, 1e300, "", "x", true, [], {}, [null], undefined];
  for (let i = 0; i < 20; ++i) {
    const data = report(structuredClone(run));
    const changes = Array.from({ length: 3 }, () => {
      const [holder, name] = somePlace(data, uniform);
      const replacement = replacements[Math.floor(uniform() * replacements.length)];
      if (replacement === undefined) delete holder[name];
      else holder[name] = replacement;
      return `${name}: ${JSON.stringify(replacement)}`;
    });
    await withPage(data, async (page) => {
      assert.equal(await page.locator("h1").count(), 1, changes.join());
      for (const alert of await page.getByRole("alert").allTextContents()) assert.match(alert, /\.$/, changes.join());
    });
  }
});

test("names that this page does not know are ignored", () =>
  withPage({ ...report({ ...run, future: [1, { a: null }] }), more: true }, async (page) => {
    assert.equal(await page.locator("h1").textContent(), run.title);
  }));

test("nothing is wider than a page of 400 pixels", async () => {
  for (const runs of [[run], [run, other], [largeAttentionRun()]]) {
    await withPage(report(...runs), async (page) => {
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 400);
    }, { width: 400 });
  }
});

test("on paper every head is drawn", () =>
  withPage(report(largeAttentionRun()), async (page) => {
    const drawn = () => page.locator(".pictures canvas").count();
    assert.ok((await drawn()) < 2 * 144);
    await page.pdf();
    assert.equal(await drawn(), 2 * 144);
  }));

test("paper is light, whatever the screen is", async () => {
  const colors = new Map();
  for (const [name, media] of Object.entries({
    light: { media: "screen", colorScheme: "light" },
    dark: { media: "screen", colorScheme: "dark" },
    paper: { media: "print", colorScheme: "dark" },
  })) {
    await withPage(report(run), async (page) => {
      await page.emulateMedia(media);
      await twoFrames(page);
      const cell = page.locator('#attention [role="grid"]').nth(1).locator("tbody td").first();
      colors.set(name, await cell.evaluate((element) => getComputedStyle(element).backgroundColor));
    });
  }
  assert.notEqual(colors.get("dark"), colors.get("light"));
  assert.equal(colors.get("paper"), colors.get("light"));
});

test("axe finds nothing, light and dark", async () => {
  for (const runs of [[run], [run, other], [largeAttentionRun()]]) {
    await withPage(report(...runs), async (page) => {
      for (const summary of await page.locator("summary").all()) await summary.click();
      await page.waitForFunction(() => {
        const count = (selector) => document.querySelectorAll(`#tensors ${selector}`).length;
        return count(".tensor") === count("details");
      });
      if ((await page.locator("#graph .box").count()) > 0) await page.locator("#graph .box.op").first().click();
      assert.deepEqual(await axeFindings(page), []);
    }, { bypassCSP: true });
  }
});
