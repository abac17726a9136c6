// What the tables of the pages "Coming from PyTorch" and "Coming from LibTorch" say in xgrad
#include <functional>
#include <iostream>
#include <sstream>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#if __has_include(<xtensor/io/xcsv.hpp>)  // since xtensor 0.26
#include <xtensor/io/xcsv.hpp>
#else
#include <xtensor/xcsv.hpp>
#endif

namespace {

using namespace xgrad;

void variables_and_gradients() {
  const Variable<float> x(Array<float>{1, 2}, true);
  const Ids ids = Ids{3, 1};
  const Mask mask = Mask{true, false};
  x.shape(), x.shape(0), x.dimension(), x.size(), x.value();
  const Variable<float> y = sum(x * x);
  y.item();
  x.detach();
  y.backward({.retain_graph = true});
  x.grad(), x.has_grad();
  x.zero_grad();
  const Variable<float> seed(1);
  y.backward(seed, {.retain_graph = true});
  y.backward(seed);
  sum(x * x).backward();
  {
    const Variable<float> y = sum(x * x);
    y.backward();
  }
  {
    const Variable<float> y = sum(x * x);
    grad(y, {x}, {.create_graph = true});
    const std::vector<Variable<float>> parameters{x};
    const auto f = [](std::size_t, const Variable<float>&) {};
    const Variable<float> loss = sum(x * x);
    grad_each(loss, parameters, f);
  }
  x.assign(Array<float>{3, 4});
  {
    NoGrad guard;
    EnableGrad again;
  }
  { EnableGrad guard; }
  { DetectAnomaly guard; }
  const auto f = [](const std::vector<Variable<double>>& inputs) { return exp(inputs[0]); };
  {
    const Variable<double> x(1.0, true);
    gradcheck(f, {x});
  }
  set_num_threads(2);
  manual_seed(0);
  uniform<float>({2}), normal<float>({2}), randint(0, 3, {2}), randperm(3);
  {
    const MatmulPrecision before = float32_matmul_precision();
    set_float32_matmul_precision("medium");
    set_float32_matmul_precision(before);
    const MatmulPrecisionGuard guard(MatmulPrecision::medium);
  }
  const PrintOptions before = print_options();
  set_print_options({.precision = 2});
  set_print_options(before);
}

void making_arrays() {
  zeros<float>({2, 3}), ones<float>({2, 3}), full<float>({2, 3}, 7);
  arange<float>({6}), arange<float>({2, 3}), arange<float>({3}, 1, 2);
  zeros<std::int64_t>({2, 3}), full<bool>({2, 3}, true);
  const std::vector<float> numbers(6);
  Array<float>(xt::adapt(numbers, {2, 3}));
  const Ids ids{1, 2, 3, 4};
  reshape(ids, {2, -1});
  const Variable<float> x(ones<float>({2}));
  Mask(x.value() > 3);
  const std::size_t n = 4;
  Mask(xt::tril(full<bool>({n, n}, true)));
  const Array<float> p{0.25f, 0.75f}, weights{1, 2, 3};
  bernoulli(p), exponential<float>({3}, 2);
  multinomial(weights, 2, {.replacement = true});
  std::istringstream file("1,2\n3,4\n");
  Array<float>(xt::load_csv<float>(file));
}

void derivatives_as_calls() {
  const auto volume = [](const Variable<double>& x) { return prod(x, -1); };
  {
    const Array<double> x{1, 2, 3}, v{1, 0, 0};
    const auto f = volume;
    const auto [y, grads] = value_and_grad(f, x);
    jvp(f, x, Array<double>{1, 0, 0}), hvp(f, x, v);
    jacobian(f, x), hessian(f, x);
    jacobian(f, x, {.rows = 32});
    hessian(f, x, {.create_graph = true});
  }
  {
    const Array<double> x{{1, 2, 3}, {4, 5, 6}};
    const auto f = volume;
    hessian(f, x, {.batched = true});
  }
  const auto f = [](const Variable<double>& x) { return square(x); };
  {
    const Array<double> x{1, 2, 3}, v{1, 0, 0}, u = v;
    vjp(f, x, v), jvp(f, x, v);
    const auto near = linearize(f, x);
    near.value(), near(v), near.transposed(u);
  }
  Variable<double> x(Array<double>{1, 2, 3}, true);
  checkpoint(f, x);
  const std::vector<std::function<Variable<double>(const Variable<double>&)>> functions(4, f);
  checkpoint_sequential(functions, 2, x);
  const auto hook = [](const Variable<double>& dx) { return clamp(dx, -1, 1); };
  x = on_gradient(x, hook);
  const auto backward = [](Variable<double> dy, Needs) -> Grads<double, 1> { return {-dy}; };
  static constexpr Op reversed("reversed", {"x"});
  record<double>(reversed, x.detach(), Inputs(x), Saved(), once(backward));
}

void parts_and_reductions() {
  const Variable<float> x(ones<float>({4, 4}));
  const Ids rows{0, 1}, columns{2, 3};
  const Mask mask = xt::eye<bool>(4);
  const Variable<float> values(Array<float>{5, 6});
  index(x, 0, range(1, 3));
  masked_select(x, mask);
  index_put(x, {rows, columns}, values, {.accumulate = true});
  {
    const Ids ids{{0, 1, 2, 3}};
    const Variable<float> src(ones<float>({1, 4}));
    scatter_add(x, 0, ids, src);
  }
  const Ids ids{0, 1};
  const Variable<float> source(ones<float>({2, 4}));
  index_add(x, 0, ids, source);
  one_hot(ids, 4);
  amax(x), amin(x);
  { const auto [values, indices] = max(x, 1); }
  sort(x, 1, {.descending = true});
  topk(x, 2, 1, {.largest = false});
  argmax(x, 1, {.keepdim = true});
  xgrad::std(x, {0}, {.correction = 0});
  norm(x, 1, {0});
  pad(x, {1, 1}, Padding::reflect);
  roll(x, {1, 2}, {0, 1});
  mT(x);
  const Variable<float> input = x, target(full<float>({4, 4}, 0.25)), w = target;
  l1_loss(input, target, Reduction::sum);
  kl_div(input, target, KlReduction::batchmean);
  binary_cross_entropy_with_logits(input, target, {.pos_weight = w});
}

void losses_and_distributions() {
  const Variable<float> input(full<float>({2, 3}, 0.5f)), target = input, w = input, var = input;
  binary_cross_entropy(input, target, {.weight = w});
  gaussian_nll_loss(input, target, var, {.full = true});
  const Variable<float> anchor = input, positive = input, negative = input;
  triplet_margin_loss(anchor, positive, negative, {.swap = true});
  const Variable<float> log_probs(full<float>({4, 1, 3}, -1.0f)), loc = input, scale = input, logits = input;
  const Ids targets{{1, 2}}, input_lengths{4}, target_lengths{2}, ids{0, 2};
  ctc_loss(log_probs, targets, input_lengths, target_lengths);
  Normal<float>(loc, scale).rsample({3});
  Categorical<float>({.logits = logits}).log_prob(ids);
}

void linear_algebra() {
  const Variable<double> a(Array<double>{{4, 1}, {1, 3}}), b = a;
  cholesky(a, {.upper = true});
  solve(a, b, {.left = false});
  solve_triangular(a, b, {.upper = true});
  lstsq(a, b);
  slogdet(a).logabsdet.item();
  const auto [w, V] = eigh(a, {.upper = true});
  const auto [Q, R] = qr(a, QrMode::complete);
  const auto [U, S, Vh] = svd(a, {.full_matrices = false});
  pinv(a, 1e-10);
}

void operations() {
  const Variable<float> a(ones<float>({2, 2})), b = a, weight = a, bias(ones<float>({2}));
  matmul(a, b);
  pow(a, b);
  const Ids ids{0, 1};
  {
    const Variable<float> x(ones<float>({6, 4, 2}));
    sum(x, {0, 2}, {.keepdim = true});
    reshape(x, {2, -1});
    slice(x, 0, 1, 5);
    select(x, 1, 3);
    index_select(x, 0, ids);
    linear(x, weight, bias);
    gelu(x, Gelu::tanh);
    dropout(x, 0.1, {.training = false});
  }
  const Variable<float> logits = a;
  const Ids target = ids;
  cross_entropy(logits, target, {.label_smoothing = 0.1});
  {
    const Variable<float> x(xgrad::normal<float>({2, 3})), weight(xgrad::normal<float>({5, 3})),
        b(zeros<float>({5}));
    const Ids target{1, 4};
    linear_cross_entropy(x, weight, target, {.linear_bias = b});
  }
  const Variable<float> q = a, k = a, v = a;
  const Mask mask{{true, false}};
  scaled_dot_product_attention(q, k, v, mask);
  {
    const Variable<float> q(xgrad::normal<float>({3, 16})), k(xgrad::normal<float>({3, 4})), v = k;
    scaled_dot_product_attention(q, k, v, {}, {.num_heads = 8, .num_kv_heads = 2});
  }
  {
    const Variable<float> x(xgrad::normal<float>({3, 4})), weight(xgrad::normal<float>({4})), gate = x,
                                                                                              up = x;
    rms_norm(x, 4, weight, {.eps = 1e-6});
    gated(gate, up, Gate::silu);
    glu(x);
    using T = float;
    const std::size_t length = 3;
    const auto [cos, sin] = rotary_tables<T>({.dim = 64}, length);
    const Variable<float> q(xgrad::normal<float>({length, 512}));
    rotary(q, cos, sin, {.num_heads = 8});
  }
}

template <class T>
class Net : public Module<T> {
 public:
  Net()
      : Module<T>("Net"),
        linear_(this->child("linear", Linear<T>(4, 2))),
        scale_(this->parameter("scale", ones<T>({4}))),
        mean_(this->buffer("mean", zeros<T>({4}))),
        embedding_(this->child("embedding", Embedding<T>(10, 4))) {
    layers_.push_back(this->child("layers.0", Linear<T>(4, 4)));
  }

  Variable<T> operator()(const Variable<T>& x) const {
    const auto scope = this->scope();
    linear(x, embedding_.weight(), {});
    return linear_(layers_[0]((x - mean_) * scale_));
  }

 private:
  Linear<T> linear_;
  Variable<T> scale_, mean_;
  Embedding<T> embedding_;
  std::vector<Linear<T>> layers_;
};

void windows() {
  const Variable<float> x(normal<float>({2, 4, 8, 8}));
  {
    const Variable<float> weight(normal<float>({4, 4, 3, 3})), bias(normal<float>({4}));
    conv2d(x, weight, bias, {.padding = ConvPadding::same});
    conv_transpose2d(x, weight, {}, {.stride = 2, .output_padding = 1});
  }
  const auto [values, indices] = max_pool2d(x, 3, {.stride = 2});
  avg_pool2d(x, {2, 3}, {.ceil_mode = true});
  adaptive_avg_pool2d(x, 1);
  { const auto [values, indices] = adaptive_max_pool2d(x, {2, 3}); }
  const Variable<float> mean(zeros<float>({4})), var(ones<float>({4})), bias = mean.detach();
  {
    const Variable<float> weight(ones<float>({4}));
    batch_norm(x, mean, var, weight, bias, {.training = true});
    group_norm(x, 4, weight, bias);
    prelu(x, weight);
  }
  instance_norm(x, {}, {}, {}, {}, {.eps = 1e-3});
  unfold(x, 3, {.padding = 1});
  {
    const Variable<float> x(normal<float>({1, 9, 64}));
    fold(x, {8, 8}, 3, {.padding = 1});
  }
  interpolate(x, {8, 8}, {.mode = InterpolateMode::bilinear});
  const Variable<float> weight(normal<float>({5, 2}));
  const Ids ids{1, 4, 2}, offsets{0, 2};
  embedding_bag(ids, weight, {.offsets = offsets, .mode = BagMode::sum});
  Conv2d<float>(3, 8, 3, {.padding = 1});
  Conv2d<float>(3, 8, 3, {.padding = 1}, false);
  ConvTranspose2d<float>(8, 3, 2, {.stride = 2});
  MaxPool2d<float>(2);
  AdaptiveAvgPool2d<float>(1);
  AdaptiveMaxPool2d<float>(1);
  Sequential<float>{Linear<float>(4, 8), ReLU<float>(), Linear<float>(8, 2)};
  const FunctionModule<float> activation = GELU<float>(Gelu::tanh);
  LeakyReLU<float>(0.2);
  Softmax<float>(1);
  EmbeddingBag<float>(10, 4, {.mode = BagMode::sum});
  BatchNorm2d<float>(8);
  BatchNorm2d<float>(8, {.momentum = 0.2});
  GroupNorm<float>(4, 8);
  InstanceNorm2d<float>(8, {.affine = true});
  PReLU<float>(8);
  Upsample<float>(2, {.mode = InterpolateMode::bilinear});
  Flatten<float>();
}

void comparisons_and_scatters() {
  const Variable<float> x(normal<float>({3, 4})), src(normal<float>({3, 4})), low(zeros<float>({4}));
  const Ids ids = randint(0, 3, {3, 4}), repeats{1, 0, 2};
  scatter(x, 0, ids, src), scatter(x, 0, ids, 1.5);
  scatter_reduce(x, 0, ids, src, ScatterReduction::amax, {.include_self = false});
  repeat_interleave(x, repeats, 0);
  gt(x, 0);
  clamp(x, low);
  normalize(x, 1, {.p = 2});
  {
    const Variable<float> a = x, b = src;
    eq(a, b);
  }
  {
    const Variable<float> a(normal<float>({2, 3, 4})), b(normal<float>({4, 3}));
    tensordot(a, b, {1, 2}, {1, 0});
  }
  const float q = 0.9F;
  quantile(x, q, 1, {.keepdim = true});
  { const auto [values, indices] = median(x, 1); }
  { const auto [values, inverse, counts] = unique(x); }
  { const auto [values, inverse, counts] = unique(x, 0); }
  const Variable<float> sorted(Array<float>{1, 2, 3}), values(Array<float>{2, 2.5});
  searchsorted(sorted, values, {.right = true});
}

void modules(const std::string& path) {
  Linear<float>(4, 2, false);
  Embedding<float>(10, 4, {.padding_idx = 0});
  LayerNorm<float>(4);
  MultiHeadAttention<float>(8, 2);
  {
    LSTM<float>(4, 8, {.num_layers = 2, .bidirectional = true});
    GRU<float>(4, 8), RNN<float>(4, 8);
    const LSTM<float> layers(4, 8);
    const Variable<float> x(zeros<float>({5, 2, 4})), h0, c0;
    const Ids lengths{5, 3};
    const auto [output, h, c] = layers(x, h0, c0);
    layers(x, h0, c0, lengths);
  }
  TransformerEncoderLayer<float>({.d_model = 8, .heads = 2, .d_ff = 16});
  TransformerDecoderLayer<float>({.d_model = 8, .heads = 2, .d_ff = 16});
  Transformer<float>({.d_model = 8, .heads = 2, .d_ff = 16, .encoder_layers = 1, .decoder_layers = 1});
  const Net<float> model, net = model;
  model.named_parameters(), model.parameters();
  const StateDict<float> state = model.state_dict();
  model.load_state_dict(state);
  model.train(), model.eval(), model.training();
  { const EvalMode guard(model); }
  model.requires_grad("linear", false), model.requires_grad(true);
  save_safetensors(model.state_dict(), path);
  load_safetensors<float>(path);
  [[maybe_unused]] const auto of_torch = [&] { return load_torch<float>(path); };
  const Variable<float> x(ones<float>({3, 4}));
  net(x);
  const std::size_t i = 0, j = 1;
  x.value()(i, j), x.value().data();
  const auto array = zeros<float>({2});
  const Variable<float> from_array = Variable<float>(array);
}

void training() {
  const Net<float> model;
  const std::vector<Variable<float>> parameters = model.parameters(), biases = parameters;
  AdamW<float> optimizer(model.parameters(), {.lr = 1e-3});
  AdamW<float>({{.parameters = biases, .options = {.weight_decay = 0}}});
  optimizer.zero_grad();
  sum(model(Variable<float>(ones<float>({3, 4})))).backward();
  optimizer.step();
  LBFGS<float> lbfgs(parameters, {.line_search_fn = LineSearch::strong_wolfe});
  const auto closure = [&] {
    lbfgs.zero_grad();
    const Variable<float> loss = sum(square(parameters[0]));
    loss.backward();
    return loss;
  };
  lbfgs.step(closure);
  CosineAnnealingLR<float>(optimizer, 100);
  NAdam<float>(parameters, {.decoupled_weight_decay = true});
  const std::vector<Variable<float>> matrices{Variable<float>(ones<float>({2, 2}), true)};
  Muon<float>(matrices, {.adjust_lr_fn = MuonAdjustment::match_rms_adamw});
  OneCycleLR<float>(optimizer, 0.1, 100);
  CosineAnnealingWarmRestarts<float>(optimizer, 10, {.T_mult = 2});
  clip_grad_norm(parameters, 1.0);
  ExponentialMovingAverage<float> average(model);
  const std::vector<std::vector<std::int64_t>> rows{{1, 2}, {3}};
  pad_sequence(rows);
  const std::size_t size = 10;
  BatchSampler batches(size, {.batch_size = 4});
  random_split(10, {8, 2});
}

}  // namespace

int main(int argc, char** argv) {
  windows();
  comparisons_and_scatters();
  variables_and_gradients();
  making_arrays();
  derivatives_as_calls();
  operations();
  parts_and_reductions();
  losses_and_distributions();
  linear_algebra();
  modules(argc > 1 ? argv[1] : "net.safetensors");
  training();
  std::cout << "all of it runs\n";
}
