// The training as a C++ program: the library's own headers of its task, and a line a step.

import clozeTask from "../../../apps/cloze_task.hpp";
import toyLanguage from "../../../apps/toy_language.hpp";
import warmupAndCosine from "../../../apps/training/warmup_and_cosine.hpp";
import partialEncoder from "../../partial_encoder.hpp";
import { type TrainingSettings, nameOf, steps } from "./trainer";

export function trainingLines({ seed, lr, heads, layers, positions, residual }: TrainingSettings): string {
  return `xgrad::manual_seed(${seed});
const xgrad::ToyEncoderConfig config{.vocab_size = vocabulary.size(),
                                     .max_len = apps::longest_sentence,
                                     .encoder = {.d_model = 32, .heads = ${heads}, .d_ff = 64, .layers = ${layers}},
                                     .pad_id = apps::pad_id};
const learn::PartialEncoder model(config, {.positions = ${positions}, .residual = ${residual}});
xgrad::AdamW<float> optimizer(model.parameters(), {.lr = ${lr}});
xgrad::LRScheduler<float> schedule = apps::warmup_and_cosine(optimizer, ${steps}, ${steps / 20});
for (int step = 0; step < ${steps}; ++step) {
  std::vector<apps::Question> batch;
  for (const std::int64_t i : xgrad::randint(0, count, {64})) batch.push_back(questions[i]);
  optimizer.zero_grad();
  const xgrad::WeightedLoss<float> loss = cloze_loss(model, vocabulary, batch);
  (loss.sum / static_cast<float>(loss.weight)).backward();
  clip_grad_norm(model.parameters(), 1.0);
  optimizer.step();
  schedule.step();
  if (step % 100 < 3) std::printf("step %d: loss %.6f\\n", step, loss.sum.item() / loss.weight);
}
`;
}

/** A header's own lines. */
function body(header: string): string {
  return header.replace(/^#pragma once\n/, "").replace(/^#include .*\n/gm, "").trim();
}

export function trainingProgram(settings: TrainingSettings): string {
  return `// The toy encoder (${nameOf(settings)}), trained to guess hidden words
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <xgrad/xgrad.hpp>

${[toyLanguage, clozeTask, warmupAndCosine, partialEncoder].map(body).join("\n\n")}

int main() {
  const xgrad::Vocabulary vocabulary = apps::vocabulary_of_language();
  const std::vector<apps::Sentence> language = apps::all_sentences();
  const std::vector<apps::Question> questions = all_questions(apps::split(language).training);
  const auto count = static_cast<std::int64_t>(questions.size());

${trainingLines(settings).replace(/^(?=.)/gm, "  ")}  return 0;
}
`;
}
