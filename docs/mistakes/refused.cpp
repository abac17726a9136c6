// Mistakes that do not compile: each line that ends with "// error" alone; all others do, without a warning.
// tests/docs/refused.sh compiles both.

#include <xgrad/xgrad.hpp>

using namespace xgrad;

namespace {

struct Models {
  ToyEncoder<float> model;
  MultiHeadAttention<float> attention;
  Embedding<float> embedding;
};

void options(const Variable<float>& x, const Variable<float>& a, const Variable<float>& b,
             const Variable<float>& logits, const Variable<float>& log_p, const ToyEncoder<float>& model) {
  // [options]
  topk(x, 1, false);  // error
  topk(x, 1, -1, {.largest = false});
  sort(x, true);  // error
  sort(x, -1, {.descending = true});
  sum(x, 0, true);  // error
  sum(x, 0, {.keepdim = true});
  xgrad::std(x, {0}, {0.0});  // error
  xgrad::std(x, {0}, {.correction = 0});
  norm(x, {0});  // error
  norm(x, 2, {0});
  softmax(x, true);  // error
  softmax(x, -1);
  dropout(x, 0.5, true);  // error
  dropout(x, 0.5, {.training = true});
  cholesky(a, 'L');  // error
  cholesky(a, {.upper = false});
  eigh(a, 'U');  // error
  eigh(a, {.upper = true});
  solve(a, b, false);  // error
  solve(a, b, {.left = false});
  solve_triangular(a, b, {true});  // error
  solve_triangular(a, b, {.upper = true});
  svd(a, false);  // error
  svd(a, {.full_matrices = false});
  kl_div(logits, log_p, KlReduction::sum, true);  // error
  kl_div(logits, log_p, KlReduction::sum, {.log_target = true});
  narrow(x, 0, 0.5, 1);  // error
  narrow(x, 0, 0, 1);
  sum(x).backward(true);  // error
  sum(x).backward({.retain_graph = true});
  model.requires_grad("encoder");                // error
  model.requires_grad("encoder", "token_head");  // error
  model.requires_grad({"encoder", "token_head"}, false);
  maximum(x, true);  // error
  maximum(x, 1);
  // [options]
}

void ids(const Models& models, const Variable<float>& x, const Variable<float>& weight,
         const Variable<float>& log_p, const Array<float>& floats, const Ids& integers, const Array<float>& p,
         const Mask& mask) {
  // [ids]
  embedding(floats, weight);  // error
  embedding(xt::cast<std::int64_t>(floats), weight);
  models.embedding(floats);  // error
  models.embedding(integers);
  models.model(floats);  // error
  models.model(integers);
  gather(x, 0, floats);  // error
  gather(x, 0, integers);
  index_select(x, 0, x.value());  // error
  index_select(x, 0, integers);
  index_put(x, {floats}, weight);  // error
  index_put(x, {integers}, weight);
  index_select(x, 0, mask);  // error
  masked_select(x, mask);
  masked_fill(x, integers, 0);  // error
  masked_fill(x, mask, 0);
  one_hot(floats);  // error
  one_hot(integers);
  padding_mask(floats, 0);  // error
  padding_mask(integers, 0);
  nll_loss(log_p, p);  // error
  cross_entropy(log_p, p);
  full<std::int64_t>({2, 3}, 0.5);  // error
  full<std::int64_t>({2, 3}, 1);
  // [ids]
}

void types(const Variable<float>& x, const Variable<double>& y, const Array<double>& doubles,
           const Ids& integers) {
  // [types]
  const Variable<float> narrowed(doubles);  // error
  const Variable<float> rounded(xt::cast<float>(doubles));
  matmul(x, -doubles);  // error
  matmul(x, xt::cast<float>(-doubles));
  x.assign(doubles * 2);  // error
  x.assign(xt::cast<float>(doubles * 2));
  x + y;  // error
  x + Variable<float>(xt::cast<float>(y.value()));
  const Variable<float> ones{1, 1};  // error
  const Variable<float> list({1, 1});
  const Array<float> reshaped = reshape(Array<float>{1, 2}, {2, 1});
  const Variable<float> truth(true);  // error
  const Variable<float> one(1, true);
  x * true;  // error
  x * 1;
  integers / 2 * x;  // error
  xt::cast<float>(integers) / 2 * x;
  const Variable<int> numbers;  // error
  const Ids ids{1, 2};
  const float loss = sum(x);  // error
  const float number = sum(x).item();
  gradcheck([](const auto& in) { return sum(in[0]); }, {x});  // error
  gradcheck([](const auto& in) { return sum(in[0]); }, {y});
  SGD<float> of_doubles(Linear<double>(2, 2).parameters());  // error
  SGD<float> optimizer(Linear<float>(2, 2).parameters());
  // [types]
}

void guards(const Models& models) {
  // [guards]
  NoGrad();  // warning
  const NoGrad no_grad;
  EvalMode<float>(models.model);  // warning
  const EvalMode<float> eval(models.model);
  DetectAnomaly();  // warning
  const DetectAnomaly anomaly;
  // [guards]
}

/// A module whose result has no graph.
struct Halves : Module<double> {
  Halves() : Module<double>("Halves") {}
  Array<double> operator()(const Variable<double>& x) const { return x.value() / 2; }
};

void functions(const Variable<double>& x, const Array<double>& at) {
  // [functions]
  value_and_grad([](const Variable<double>& v) { return sum(v * v).item(); }, at);  // error
  value_and_grad([](const Variable<double>& v) { return sum(v * v); }, at);
  jacobian([](const Variable<double>& v) { return xt::square(v.value()); }, at);  // error
  jacobian([](const Variable<double>& v) { return square(v); }, at);
  hessian([](const Variable<double>& v) { return v.value()(0); }, at);  // error
  hessian([](const Variable<double>& v) { return select(v, 0, 0); }, at);
  linearize([](const Variable<double>& v) { return v.value(); }, at);  // error
  linearize([](const Variable<double>& v) { return square(v); }, at);
  checkpoint([](const Variable<double>& v) { return v.value(); }, x);  // error
  checkpoint([](const Variable<double>& v) { return exp(v); }, x);
  gradcheck([](const auto& in) { return sum(in[0]).item(); }, {x});  // error
  gradcheck([](const auto& in) { return sum(in[0]); }, {x});
  LBFGS<double>({x}).step([&] { return sum(x).item(); });  // error
  LBFGS<double>({x}).step([&] { return sum(x); });
  FunctionModule<double>("Half", [](const Variable<double>& v) { return v.value(); });  // error
  FunctionModule<double>("Half", [](const Variable<double>& v) { return v / 2; });
  checkpoint_sequential({[](const Variable<double>& v) { return xt::exp(v.value()); }}, 1, x);  // error
  checkpoint_sequential({[](const Variable<double>& v) { return exp(v); }}, 1, x);
  Sequential<double>{Halves()};  // error
  Sequential<double>{Linear<double>(2, 2)};
  on_gradient(x, [](const Variable<double>& dy) { return dy.value(); });  // error
  const auto watched = on_gradient(x, [](const Variable<double>& dy) { return dy / 2; });
  on_gradient(x, [](const Variable<double>& dy) { return dy / 2; });  // warning
  const auto positive = relu(x);
  relu(x);  // warning
  const auto best = argmax(x, -1);
  argmax(x, -1);  // warning
  const auto report = gradcheck([](const auto& in) { return sum(in[0]); }, {x});
  gradcheck([](const auto& in) { return sum(in[0]); }, {x});  // warning
  // [functions]
}

void handles(const Variable<double>& x, const Linear<double>& model) {
  // [handles]
  x.grad() = 0.5 * x.grad();  // error
  x.set_grad(0.5 * x.grad());
  model.state_dict()["weight"](0, 0) = 1;  // error
  model.parameters()[0].assign(zeros<double>({2, 2}));
  const auto backward = [](Variable<double> dy, Needs) -> Grads<double, 1> { return {dy}; };
  const Op local("same", {"x"});
  record<double>(local, x.detach(), Inputs(x), Saved(), backward);  // error
  static constexpr Op same("same", {"x"});
  record<double>(same, x.detach(), Inputs(x), Saved(), backward);
  // [handles]
}

void numbers(const Variable<float>& x, const Variable<float>& loss, std::size_t n, double lr, int steps) {
  // [numbers]
  const auto mean_loss = loss / n;
  const auto next = x - lr * x.grad();
  const auto total = steps * mean_loss;
  narrow(x, 0, n, 1);
  reshape(x, {n, steps, -1});
  select(x, -1, n - 1);
  // [numbers]
}

}  // namespace
