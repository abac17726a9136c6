// The page "Models", section by section
#include <iostream>

#include <xgrad/xgrad.hpp>

namespace {

using xgrad::Variable;

// [module]
template <class T>
class Projection : public xgrad::Module<T> {
 public:
  explicit Projection(std::size_t size)
      : xgrad::Module<T>("Projection"),
        linear_(this->child("linear", xgrad::Linear<T>(size, size))),
        scale_(this->parameter("scale", xgrad::ones<T>({size}))) {}
  xgrad::Variable<T> operator()(const xgrad::Variable<T>& x) const {
    const auto scope = this->scope();
    return linear_(x) * scale_;
  }

 private:
  xgrad::Linear<T> linear_;
  xgrad::Variable<T> scale_;
};
// [module]

void parameters() {
  std::cout << "# parameters\n";
  // [parameters]
  xgrad::manual_seed(0);
  const Projection<float> model(2);
  for (const auto& [name, parameter] : model.named_parameters()) {
    std::cout << name << ' ' << xgrad::to_string(parameter.shape()) << '\n';
  }
  std::cout << summary(model);
  // [parameters]
}

void states() {
  std::cout << "# states\n";
  const Projection<float> model(2);
  // [states]
  const Projection<float> copy = model;  // a second handle on the same parameters
  const Projection<float> other(2);      // parameters of its own
  other.load_state_dict(model.state_dict());
  try {
    Projection<float>(3).load_state_dict(model.state_dict());
  } catch (const xgrad::ValueError& error) {
    std::cout << error.what() << '\n';
  }
  std::cout << std::boolalpha << (copy.state_dict() == other.state_dict()) << '\n';
  // [states]
}

void encoder() {
  std::cout << "# encoder\n";
  // [encoder]
  xgrad::manual_seed(0);
  const xgrad::ToyEncoder<float> model(
      {.vocab_size = 10,
       .max_len = 6,
       .classes = 3,
       .encoder = {.d_model = 8, .heads = 2, .d_ff = 16, .layers = 2, .dropout = 0.1},
       .pad_id = 0});
  const xgrad::Ids ids{{4, 7, 2, 9, 0, 0}, {3, 3, 8, 1, 5, 6}};  // 0 is padding
  const Variable<float> tokens = model(ids);                     // (batch, seq, d_model)
  const Variable<float> classes = model.class_logits(ids);       // (batch, classes)
  model.eval();                                                  // dropout rests
  const xgrad::EncoderResult<float> seen = model.with_weights(ids);
  // [encoder]
  std::cout << xgrad::to_string(tokens.shape()) << ' ' << xgrad::to_string(classes.shape()) << '\n';
  std::cout << seen.weights.size() << " layers, weights of each " << xgrad::to_string(seen.weights[0].shape())
            << '\n';
}

void decoder() {
  std::cout << "# decoder\n";
  // [decoder]
  xgrad::manual_seed(0);
  const xgrad::ToyDecoder<float> gpt(
      {.vocab_size = 10,
       .max_len = 6,
       .layers = {.d_model = 8, .heads = 2, .d_ff = 16, .layers = 2, .norm_first = true}});
  const xgrad::Ids ids{{4, 7, 2, 9, 5, 1}};
  const Variable<float> logits = gpt.token_logits(xgrad::Ids(xt::view(ids, xt::all(), xt::range(0, 5))));
  const Variable<float> loss = cross_entropy(select(logits, 0, 0), xgrad::Ids{7, 2, 9, 5, 1});

  const xgrad::Transformer<float> both(
      {.d_model = 8, .heads = 2, .d_ff = 16, .encoder_layers = 1, .decoder_layers = 1});
  const Variable<float> source(xgrad::normal<float>({2, 5, 8})), target(xgrad::normal<float>({2, 3, 8}));
  const Variable<float> translated = both(source, target);
  // [decoder]
  std::cout << xgrad::to_string(logits.shape()) << ' ' << xgrad::to_string(loss.shape()) << ' '
            << xgrad::to_string(translated.shape()) << '\n';
}

void attention() {
  std::cout << "# attention\n";
  // [attention]
  xgrad::manual_seed(1);
  const xgrad::MultiHeadAttention<float> attend(8, 2);
  const Variable<float> x(xgrad::normal<float>({1, 4, 8}));
  const xgrad::Ids ids{{5, 3, 9, 0}};
  const auto [output, weights] = attend.with_weights(x, xgrad::padding_mask(ids, 0));
  std::cout << weights << '\n';
  // [attention]

  std::cout << "# rotary\n";
  {
    // [rotary]
    // four heads of queries, two of keys and values, of 6 positions
    const Variable<float> queries(xgrad::normal<float>({1, 6, 16})), keys(xgrad::normal<float>({1, 6, 8}));
    const auto [cos, sin] = xgrad::rotary_tables<float>({.dim = 4}, 6);
    const Variable<float> near = scaled_dot_product_attention(
        rotary(queries, cos, sin, {.num_heads = 4}), rotary(keys, cos, sin, {.num_heads = 2}), keys, {},
        {.is_causal = true, .num_heads = 4, .num_kv_heads = 2, .window_left = 2});
    const Variable<float> hidden = gated(near, queries, xgrad::Gate::silu);  // SwiGLU
    std::cout << xgrad::to_string(rms_norm(hidden, 16, {}, {.eps = 1e-6}).shape()) << '\n';
    // [rotary]
  }
}

void recurrent() {
  std::cout << "# recurrent\n";
  // [recurrent]
  const xgrad::LSTM<float> lstm(3, 4, {.num_layers = 2, .batch_first = true, .bidirectional = true});
  const Variable<float> x(xgrad::normal<float>({2, 5, 3}));
  const auto [output, h, c] = lstm(x, {}, {}, xgrad::Ids{5, 2});  // from states of 0; of 5 and of 2 steps
  const Variable<float> last =
      xgrad::cat({select(h, 0, -2), select(h, 0, -1)}, 1);  // both directions' last states
  std::cout << xgrad::to_string(output.shape()) << ' ' << xgrad::to_string(h.shape()) << ' '
            << xgrad::to_string(last.shape()) << '\n';
  // [recurrent]
}

void random_numbers() {
  std::cout << "# random\n";
  // [random]
  xgrad::manual_seed(123);
  const xgrad::Linear<float> layer(4, 4);  // the numbers of torch.manual_seed(123); nn.Linear(4, 4)
  std::cout << layer.weight() << '\n';     // and their look
  // [random]
}

}  // namespace

int main() {
  parameters();
  states();
  encoder();
  decoder();
  attention();
  recurrent();
  random_numbers();
}
