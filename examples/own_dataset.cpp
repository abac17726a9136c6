// Trains on a dataset of one's own: a function that gives texts and their labels
#include <iostream>
#include <xgrad/xgrad.hpp>

struct Example {
  std::string text;
  std::int64_t label;  // 1: somebody liked it
};

std::vector<Example> dataset() {
  return {{"a fine film", 1},       {"not a fine film", 0},   {"I liked it", 1},
          {"a dull film", 0},       {"not dull at all", 1},   {"dull and long", 0},
          {"I did not like it", 0}, {"fine and not long", 1}, {"it was a fine day", 1},
          {"a long dull day", 0},   {"not a dull day", 1},    {"not fine at all", 0}};
}

int main() {
  std::vector<std::vector<std::string>> texts;
  for (const Example& example : dataset())
    texts.push_back(xgrad::whitespace_tokens(xgrad::to_ascii_lowercase(example.text)));
  const auto vocabulary = xgrad::Vocabulary::build(texts);

  xgrad::manual_seed(0);
  const xgrad::ToyEncoder<float> model({.vocab_size = vocabulary.size(),
                                        .max_len = 8,
                                        .classes = 2,
                                        .encoder = {.d_model = 16, .heads = 2, .d_ff = 32},
                                        .pad_id = vocabulary.id("[PAD]")});
  xgrad::AdamW<float> optimizer(model.parameters(), {.lr = 0.01});
  xgrad::BatchSampler batches(texts.size(), {.batch_size = 4});
  const auto step = [&](std::size_t) -> xgrad::StepResult {
    const std::vector<std::size_t> chosen = batches.next();
    std::vector<std::vector<std::int64_t>> rows;
    xgrad::Ids labels = xgrad::zeros<std::int64_t>({chosen.size()});
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      rows.push_back(vocabulary.ids(texts[chosen[i]]));
      labels(i) = dataset()[chosen[i]].label;
    }
    optimizer.zero_grad();
    const auto loss = cross_entropy(model.class_logits(xgrad::pad_sequence(rows)), labels);
    loss.backward();
    optimizer.step();
    return {.loss = loss.item()};
  };
  xgrad::fit(200, step);

  const xgrad::NoGrad no_grad;
  const xgrad::EvalMode eval_mode(model);
  for (const std::string text :
       {"a fine day", "not a fine day", "a long film", "dull", "not long", "I did not like a film"}) {
    const auto scores =
        model.class_logits(xgrad::pad_sequence({vocabulary.ids(xgrad::whitespace_tokens(text))}));
    std::cout << text << ": " << (scores.value()(0, 1) > scores.value()(0, 0) ? "liked" : "not liked")
              << '\n';
  }
}
