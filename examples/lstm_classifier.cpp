// Trains an LSTM to tell whether brackets are balanced, on strings that the program makes
#include <algorithm>
#include <iostream>
#include <random>

#include <xgrad/xgrad.hpp>

using xgrad::Ids, xgrad::Variable;

class Classifier : public xgrad::Module<float> {
 public:
  Classifier()
      : Module("Classifier"),
        embedding_(child("embedding", xgrad::Embedding<float>(2, 8))),
        lstm_(child("lstm", xgrad::LSTM<float>(8, 16, {.batch_first = true}))),
        head_(child("head", xgrad::Linear<float>(16, 2))) {}

  /// The logits (batch, 2) of ids (batch, seq), of which each row ends at its length.
  Variable<float> operator()(const Ids& ids, const Ids& lengths) const {
    const auto scope = this->scope();
    const auto [output, h, c] = lstm_(embedding_(ids), {}, {}, lengths);
    return head_(select(h, 0, -1));  // the last layer's state at the end of each row
  }

 private:
  xgrad::Embedding<float> embedding_;
  xgrad::LSTM<float> lstm_;
  xgrad::Linear<float> head_;
};

struct Batch {
  Ids ids, lengths, labels;  // 1: balanced
};

Batch batch_of(const std::vector<std::string>& texts) {
  Ids lengths = xgrad::zeros<std::int64_t>({texts.size()}), labels = lengths;
  std::vector<std::vector<std::int64_t>> rows(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    int open = 0, least = 0;
    for (const char bracket : texts[i]) {
      rows[i].push_back(bracket == '(' ? 0 : 1);
      least = std::min(least, open += bracket == '(' ? 1 : -1);
    }
    lengths(i) = static_cast<std::int64_t>(texts[i].size());
    labels(i) = open == 0 && least == 0 ? 1 : 0;
  }
  return {xgrad::pad_sequence(rows), lengths, labels};
}

/// Up to 5 pairs of brackets, balanced or in any order.
std::string brackets(std::mt19937& random) {
  std::string text;
  for (std::size_t pairs = 1 + random() % 5; pairs > 0; --pairs)
    text.insert(random() % (text.size() + 1), "()");
  for (std::size_t i = random() % 2 == 0 ? 0 : text.size(); i > 0; --i)
    std::swap(text[i - 1], text[random() % i]);
  return text;
}

int main() {
  xgrad::manual_seed(0);
  std::mt19937 random(0);
  const Classifier model;
  xgrad::AdamW<float> optimizer(model.parameters(), {.lr = 0.01});
  for (int step = 0; step < 600; ++step) {
    std::vector<std::string> texts(32);
    for (std::string& text : texts) text = brackets(random);
    const auto [ids, lengths, labels] = batch_of(texts);
    optimizer.zero_grad();
    cross_entropy(model(ids, lengths), labels).backward();
    optimizer.step();
  }

  const xgrad::NoGrad no_grad;
  const std::vector<std::string> texts{"()", ")(", "(()())", "((()))", "())(()", "()()()()", "(()))(()"};
  const auto [ids, lengths, labels] = batch_of(texts);
  const Variable<float> logits = model(ids, lengths);
  for (std::size_t i = 0; i < texts.size(); ++i)
    std::cout << texts[i] << (logits.value()(i, 1) > logits.value()(i, 0) ? "" : " not") << " balanced\n";
}
