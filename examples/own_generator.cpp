// A model of your own continues sequences of letters: what generate() needs of it
#include <iostream>
#include <xgrad/generation.hpp>
#include <xgrad/xgrad.hpp>

using xgrad::Ids, xgrad::Variable, xgrad::BlockPart;

constexpr xgrad::NamedPart names[]{{BlockPart::attention_norm, "norm1"},
                                   {BlockPart::query, "query"},
                                   {BlockPart::key, "key"},
                                   {BlockPart::value, "value"},
                                   {BlockPart::out, "out"},
                                   {BlockPart::up, "up"},
                                   {BlockPart::down, "down"},
                                   {BlockPart::feed_forward_norm, "norm2"}};

/// Embeddings, one block with rotary positions, and a head.
class Letters : public xgrad::Module<float>, public xgrad::AutoregressiveModel<float> {
 public:
  Letters()
      : Module("Letters"),
        embedding_(child("embedding", xgrad::Embedding<float>(26, 32))),
        block_(child("block", block())),
        head_(child("head", xgrad::Linear<float>(32, 26))) {}

  /// Logits (batch, length, 26) of the letters after each, for training.
  Variable<float> operator()(const Ids& ids) const {
    return head_(
        block_({.rotary = {xgrad::rotary_tables<float>({.dim = 8}, ids.shape(1))}}, embedding_(ids)));
  }

  xgrad::KeyValueCache<float> new_cache() const override { return xgrad::KeyValueCache<float>(1); }

  Variable<float> next_logits(const Ids& tokens, std::span<const std::size_t> lengths,
                              std::span<xgrad::KeyValueCache<float>> caches) const override {
    const Variable<float> x = unsqueeze(embedding_(tokens), 0);
    std::vector<Variable<float>> last;
    for (std::size_t i = 0, first = 0; i < lengths.size(); first += lengths[i++]) {
      const auto tables = xgrad::rotary_tables<float>({.dim = 8}, lengths[i], caches[i].length());
      const Variable<float> y =
          block_({.rotary = {tables}, .caches = caches.subspan(i, 1), .new_tokens = lengths.subspan(i, 1)},
                 narrow(x, 1, first, lengths[i]));
      last.push_back(select(y, 1, -1));
    }
    return head_(cat(last));
  }

 private:
  static xgrad::TransformerBlock<float> block() {
    xgrad::InitialLayers<float> layers;
    return {{.d_model = 32,
             .num_heads = 4,
             .d_ff = 64,
             .residual = xgrad::Residual::pre_norm,
             .is_causal = true,
             .rotary = 0},
            names,
            layers};
  }

  xgrad::Embedding<float> embedding_;
  xgrad::TransformerBlock<float> block_;
  xgrad::Linear<float> head_;
};

int main() {
  xgrad::manual_seed(0);
  const Letters model;
  xgrad::AdamW<float> optimizer(model.parameters(), {.lr = 0.01});
  for (int step = 0; step < 400; ++step) {  // each row goes on by 1 to 4 letters
    const Ids starts = xgrad::randint(0, 26, {16, 1}), strides = xgrad::randint(1, 5, {16, 1});
    const Ids rows = (starts + strides * xt::arange<std::int64_t>(13)) % 26;
    const Ids input = xt::view(rows, xt::all(), xt::range(0, 12));
    const Ids next = xt::view(rows, xt::all(), xt::range(1, 13));
    optimizer.zero_grad();
    const Variable<float> logits = flatten(model(input), 0, 1);
    cross_entropy(logits, xgrad::reshape(next, {-1})).backward();
    optimizer.step();
  }

  model.eval();
  for (const std::string prompt : {"ab", "ac", "fi", "xb"}) {
    std::vector<std::int64_t> ids;
    for (const char letter : prompt) ids.push_back(letter - 'a');
    const auto written = xgrad::generation::generate(model, {ids}, {.max_new_tokens = 10});
    std::cout << prompt << " -> ";
    for (const std::int64_t id : written[0]) std::cout << static_cast<char>('a' + id);
    std::cout << '\n';
  }
}
