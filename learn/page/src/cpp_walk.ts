// The walk as a C++ program, a line a step: what the library computes in the worker, with the settings in it.

import { type Settings, wordsOf } from "./walk";

/** Lines by stop, in their order. */
export type WalkLines = Map<string, string[]>;

const quoted = (text: string): string => `"${text.replace(/[\\"]/g, "\\$&").replace(/[^\x20-\x7e]/gu, (c) => `\\u{${c.codePointAt(0)?.toString(16)}}`)}"`;

export function floatText(value: number): string {
  const text = String(Number(value.toPrecision(9)));
  return /[.e]/.test(text) ? `${text}f` : `${text}.0f`;
}

function changes(settings: Settings, ...modules: string[]): string[] {
  return settings.edits
    .filter(({ parameter }) => modules.some((module) => parameter.startsWith(`${module}.`)))
    .map(({ parameter, index, value }) => `change(${parameter}(), ${index}, ${floatText(value)});`);
}

export function walkLines(settings: Settings, heads: number): WalkLines {
  const words = wordsOf(settings.sentence);
  const vocabulary = [...new Set(words)];
  const ids = words.map((word) => vocabulary.indexOf(word));
  const { d_model: d, hidden, asked } = settings;
  const drawn = (name: string, arguments_: string): string => `const xgrad::Linear<float> ${name}(${arguments_});`;
  return new Map([
    [
      "words",
      [
        `const xgrad::Ids ids{${ids.join(", ")}};  // ${words.join(" ").replace(/[^\x20-\x7e]/gu, "?").replace(/\\/g, "/")}`,
        "xgrad::manual_seed(123);",
        `const xgrad::Embedding<float> embed(${vocabulary.length}, ${d});`,
        ...changes(settings, "embed"),
        "const Variable<float> embedded = embed(ids);  // a row of the table for each id",
      ],
    ],
    [
      "places",
      settings.positions
        ? [
            "xgrad::manual_seed(123);",
            `const xgrad::Embedding<float> positions(10, ${d});`,
            ...changes(settings, "positions"),
            `const Variable<float> x = embedded + slice(positions.weight(), 0, 0, ${words.length});`,
          ]
        : ["const Variable<float> x = embedded;  // no places"],
    ],
    [
      "projections",
      [
        "xgrad::manual_seed(123);",
        ...["W_Q", "W_K", "W_V", "out_proj"].map((name) => drawn(name, `${d}, ${d}, false`)),
        ...changes(settings, "W_Q", "W_K", "W_V", "out_proj"),
        "const Variable<float> Q = W_Q(x), K = W_K(x), V = W_V(x);",
      ],
    ],
    [
      "scores",
      [
        "const auto split_heads = [](const Variable<float>& y) {",
        `  return transpose(reshape(y, {${words.length}, ${heads}, ${d / heads}}), 0, 1);`,
        "};",
        "const Variable<float> q = split_heads(Q), k = split_heads(K), v = split_heads(V);",
        `${hidden.length > 0 ? "" : "const "}Variable<float> scores = matmul(q, transpose(k, -1, -2)) / std::sqrt(${d / heads}.0f);`,
        ...(hidden.length > 0
          ? [
              `const xgrad::Mask hidden{${words.map((_, place) => hidden.includes(place)).join(", ")}};`,
              "scores = masked_fill(scores, hidden, -std::numeric_limits<float>::infinity());",
            ]
          : []),
      ],
    ],
    ["softmax", ["const Variable<float> weights = softmax(scores, -1);  // each row adds up to 1", "const Variable<float> context = matmul(weights, v);  // a mixture of the values"]],
    ["heads", [`const Variable<float> joined = reshape(transpose(context, 0, 1), {${words.length}, ${d}});`, "const Variable<float> attended = out_proj(joined);"]],
    [
      "norm",
      [
        `const xgrad::LayerNorm<float> norm1(${d});`,
        ...changes(settings, "norm1"),
        settings.residual ? "const Variable<float> normed = norm1(x + attended);" : "const Variable<float> normed = norm1(attended);  // no residual",
      ],
    ],
    [
      "feed",
      [
        `const xgrad::FeedForward<float> run_before(${d}, 8);  // the notebook drew these weights twice`,
        drawn("linear1", `${d}, 8`),
        drawn("linear2", `8, ${d}`),
        ...changes(settings, "linear1", "linear2"),
        "const Variable<float> fed = linear2(relu(linear1(normed)));",
        `const xgrad::LayerNorm<float> norm2(${d});`,
        ...changes(settings, "norm2"),
        settings.residual ? "const Variable<float> encoded = norm2(normed + fed);" : "const Variable<float> encoded = norm2(fed);",
      ],
    ],
    [
      "backward",
      [
        drawn("head", `${d}, ${vocabulary.length}`),
        ...changes(settings, "head"),
        "const Variable<float> logits = head(encoded);",
        `const xgrad::Ids answers{${ids.map((id, place) => (place === asked ? id : -100)).join(", ")}};  // -100: not asked for`,
        "const Variable<float> loss = cross_entropy(logits, answers);",
        "const std::vector<Variable<float>> gradients = grad(loss, {weights, Q, x});  // all the way back",
      ],
    ],
  ]);
}

const printed: Record<string, string[]> = {
  words: ["embedded"],
  places: ["x"],
  projections: ["Q", "K", "V"],
  scores: ["scores"],
  softmax: ["weights", "context"],
  heads: ["attended"],
  norm: ["normed"],
  feed: ["fed", "encoded"],
  backward: ["logits", "loss"],
};

/** All lines as one program, which prints what it computes. */
export function walkProgram(settings: Settings, heads: number): string {
  const words = wordsOf(settings.sentence);
  const body = [...walkLines(settings, heads)].flatMap(([stop, lines]) => [
    ...lines.map((line) => `  ${line}`),
    ...printed[stop].map((name) => `  std::cout << "${name}\\n" << ${name}.detach() << "\\n\\n";`),
    "",
  ]);
  const change = `/// Puts another number into a weight.
void change(Variable<float> weight, std::size_t index, float value) {
  xgrad::Array<float> numbers = weight.value();
  numbers.data()[index] = value;
  weight.assign(numbers);
}

`;
  return `// An encoder block on ${quoted(words.join(" "))}, a line a step
#include <cmath>
#include <cstddef>
#include <iostream>
#include <limits>
#include <vector>

#include <xgrad/xgrad.hpp>

using xgrad::Variable;

${settings.edits.length > 0 ? change : ""}int main() {
  xgrad::set_print_options({.precision = 6});

${body.join("\n")}
  std::cout << "gradient of weights\\n" << gradients[0] << "\\n\\ngradient of Q\\n" << gradients[1]
            << "\\n\\ngradient of x\\n" << gradients[2] << '\\n';
  return 0;
}
`;
}
