// What the tables of the pages "Coming from PyTorch" and "Coming from LibTorch" say in xgrad
#include <iostream>

#include <xtensor/xbuilder.hpp>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

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
  const PrintOptions before = print_options();
  set_print_options({.precision = 2});
  set_print_options(before);
}

void operations() {
  const Variable<float> a(xt::ones<float>({2, 2})), b = a, weight = a, bias(xt::ones<float>({2}));
  matmul(a, b);
  pow(a, b);
  const Ids ids{0, 1};
  {
    const Variable<float> x(xt::ones<float>({6, 4, 2}));
    sum(x, {0, 2}, true);
    reshape(x, {2, -1});
    slice(x, 0, 1, 5);
    select(x, 1, 3);
    index_select(x, 0, ids);
    linear(x, weight, bias);
    gelu(x, Gelu::tanh);
    dropout(x, 0.1, true);
  }
  const Variable<float> logits = a;
  const Ids target = ids;
  cross_entropy(logits, target, {.label_smoothing = 0.1});
  const Variable<float> q = a, k = a, v = a;
  const Mask mask{{true, false}};
  scaled_dot_product_attention(q, k, v, mask);
}

template <class T>
class Net : public Module<T> {
 public:
  Net()
      : Module<T>("Net"),
        linear_(this->child("linear", Linear<T>(4, 2))),
        scale_(this->parameter("scale", xt::ones<T>({4}))) {}

  Variable<T> operator()(const Variable<T>& x) const {
    const auto scope = this->scope();
    return linear_(x * scale_);
  }

 private:
  Linear<T> linear_;
  Variable<T> scale_;
};

void modules(const std::string& path) {
  Linear<float>(4, 2, false);
  Embedding<float>(10, 4, {.padding_idx = 0});
  LayerNorm<float>(4);
  MultiHeadAttention<float>(8, 2);
  EncoderLayer<float>({.d_model = 8, .heads = 2, .d_ff = 16});
  const Net<float> model, net = model;
  model.named_parameters(), model.parameters();
  const StateDict<float> state = model.state_dict();
  model.load_state_dict(state);
  model.train(), model.eval(), model.training();
  save_safetensors(model.state_dict(), path);
  load_safetensors<float>(path);
  const Variable<float> x(xt::ones<float>({3, 4}));
  net(x);
  const std::size_t i = 0, j = 1;
  x.value()(i, j), x.value().data();
  const auto array = xt::zeros<float>({2});
  const Variable<float> from_array = Variable<float>(array);
}

void training() {
  const Net<float> model;
  const std::vector<Variable<float>> parameters = model.parameters(), biases = parameters;
  AdamW<float> optimizer(model.parameters(), {.lr = 1e-3});
  AdamW<float>({{.parameters = biases, .options = {.weight_decay = 0}}});
  optimizer.zero_grad(), optimizer.step();
  LBFGS<float> lbfgs(parameters, {.line_search_fn = LineSearch::strong_wolfe});
  const auto closure = [&] {
    lbfgs.zero_grad();
    const Variable<float> loss = sum(square(parameters[0]));
    loss.backward();
    return loss;
  };
  lbfgs.step(closure);
  CosineAnnealingLR<float>(optimizer, 100);
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
  variables_and_gradients();
  operations();
  modules(argc > 1 ? argv[1] : "net.safetensors");
  training();
  std::cout << "all of it runs\n";
}
