// An encoder and a decoder learn to translate dates letter by letter: july 4, 1776 into 1776-07-04
#include <iostream>
#include <random>

#include <xgrad/xgrad.hpp>

using xgrad::Ids, xgrad::Variable, xgrad::LayerNorm, xgrad::MultiHeadAttention;

const std::string letters = "_0123456789 ,-abcdefghijlmnoprstuvy";  // _ begins a translation, and is padding
constexpr std::size_t width = 32, longest = 20;

class Translator : public xgrad::Module<float> {
 public:
  Translator() : Module("Translator") {}

  /// The scores (batch * n, letters) of the letter behind each of target (batch, n).
  Variable<float> operator()(const Ids& source, const Ids& target) const {
    const auto scope = this->scope();
    const std::size_t n = target.shape(1);
    const xgrad::Mask causal = xgrad::reshape(xt::tril(xgrad::full<bool>({n, n}, true)), {1, 1, n, n});
    const xgrad::Mask given = xgrad::padding_mask(source, 0);
    const Variable<float> memory = encoder_(positions_(embedding_(source)), given);
    const Variable<float> x = positions_(embedding_(target)), y = norm1_(self_attention_(x, causal), x);
    const Variable<float> z = norm2_(cross_attention_(y, memory, memory, given), y);
    return head_(flatten(norm3_(feed_forward_(z), z), 0, 1));
  }

 private:
  xgrad::Embedding<float> embedding_ = child("embedding", xgrad::Embedding<float>(letters.size(), width));
  xgrad::LearnedPositionalEncoding<float> positions_ =
      child("positions", xgrad::LearnedPositionalEncoding<float>(longest, width));
  xgrad::TransformerEncoder<float> encoder_ =
      child("encoder", xgrad::TransformerEncoder<float>({.d_model = width, .heads = 4, .d_ff = 64}));
  MultiHeadAttention<float> self_attention_ = child("self_attention", MultiHeadAttention<float>(width, 4));
  MultiHeadAttention<float> cross_attention_ = child("cross_attention", MultiHeadAttention<float>(width, 4));
  xgrad::FeedForward<float> feed_forward_ = child("feed_forward", xgrad::FeedForward<float>(width, 64));
  LayerNorm<float> norm1_ = child("norm1", LayerNorm<float>(width));
  LayerNorm<float> norm2_ = child("norm2", LayerNorm<float>(width));
  LayerNorm<float> norm3_ = child("norm3", LayerNorm<float>(width));
  xgrad::Linear<float> head_ = child("head", xgrad::Linear<float>(width, letters.size()));
};

Ids ids(const std::vector<std::string>& texts) {
  std::vector<std::vector<std::int64_t>> rows(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i)
    for (const char letter : texts[i]) rows[i].push_back(static_cast<std::int64_t>(letters.find(letter)));
  return xgrad::pad_sequence(rows);
}

int main() {
  xgrad::manual_seed(0);
  std::mt19937 random(0);
  const std::vector<std::string> months = xgrad::whitespace_tokens(
      "january february march april may june july august september october november december");
  const Translator model;
  xgrad::AdamW<float> optimizer(model.parameters(), {.lr = 0.005});
  const auto text = [](std::size_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  for (int step = 0; step < 1000; ++step) {
    std::vector<std::string> sources(32), targets(32), followers(32);
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t year = 1001 + random() % 400 * 3, month = 1 + random() % 12, day = 1 + random() % 28;
      const std::string d = std::to_string(day), m = months[month - 1], y = std::to_string(year);
      sources[i] = i % 2 == 0 ? d + ' ' + m + ' ' + y : m + ' ' + d + ", " + y;
      followers[i] = y + '-' + text(month) + '-' + text(day);
      targets[i] = '_' + followers[i].substr(0, 9);
    }
    optimizer.zero_grad();
    cross_entropy(model(ids(sources), ids(targets)), xgrad::reshape(ids(followers), {-1})).backward();
    optimizer.step();
  }

  const xgrad::NoGrad no_grad;
  for (const std::string date : {"15 april 1452", "july 4, 1776", "18 june 1815", "november 9, 1989"}) {
    std::string written = "_";
    while (written.size() <= 10)
      written +=
          letters[static_cast<std::size_t>(argmax(select(model(ids({date}), ids({written})), 0, -1))())];
    std::cout << date << " is " << written.substr(1) << '\n';
  }
}
