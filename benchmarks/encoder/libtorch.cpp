// The encoder in LibTorch, which bench_encoder measures beside xgrad's.

#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "libtorch.hpp"
#include "protocol.hpp"
#include "worker.hpp"

using bench::count;
using nlohmann::json;
using torch::Tensor;

namespace {

constexpr std::int64_t pad_id = 0;

/// A block; its modules are registered in the order of xgrad's parameters.
class LayerImpl : public torch::nn::Module {
 public:
  explicit LayerImpl(const bench::Size& size)
      : heads_(count(size.heads)),
        dropout_(size.dropout),
        w_q_(projection("W_Q", size)),
        w_k_(projection("W_K", size)),
        w_v_(projection("W_V", size)),
        out_proj_(projection("out_proj", size)),
        linear1_(register_module("linear1", torch::nn::Linear(count(size.d_model), count(size.d_ff)))),
        linear2_(register_module("linear2", torch::nn::Linear(count(size.d_ff), count(size.d_model)))),
        norm1_(norm("norm1", size)),
        norm2_(norm("norm2", size)) {}

  Tensor forward(const Tensor& x, const Tensor& mask) {
    const Tensor y = norm1_(x + dropped(attend(x, mask)));
    return norm2_(y + dropped(linear2_(dropped(torch::relu(linear1_(y))))));
  }

 private:
  torch::nn::Linear projection(const char* name, const bench::Size& size) {
    const auto width = count(size.d_model);
    return register_module(name, torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(false)));
  }
  torch::nn::LayerNorm norm(const char* name, const bench::Size& size) {
    return register_module(name, torch::nn::LayerNorm(torch::nn::LayerNormOptions({count(size.d_model)})));
  }

  /// (batch, seq, d_model) to (batch, heads, seq, d_model / heads).
  Tensor split(const Tensor& x) const {
    return x.view({x.size(0), x.size(1), heads_, x.size(2) / heads_}).transpose(1, 2);
  }
  Tensor dropped(const Tensor& x) const {
    return dropout_ == 0 ? x : torch::dropout(x, dropout_, is_training());
  }
  Tensor attend(const Tensor& x, const Tensor& mask) {
    const Tensor q = split(w_q_(x)), k = split(w_k_(x)), v = split(w_v_(x));
    const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
    const Tensor weights = torch::softmax(torch::matmul(q * scale, k.transpose(-2, -1)) + mask, -1);
    return out_proj_(torch::matmul(dropped(weights), v).transpose(1, 2).reshape(x.sizes()));
  }

  std::int64_t heads_;
  double dropout_;
  torch::nn::Linear w_q_, w_k_, w_v_, out_proj_, linear1_, linear2_;
  torch::nn::LayerNorm norm1_, norm2_;
};
TORCH_MODULE(Layer);

// [model]
class ModelImpl : public torch::nn::Module {
 public:
  explicit ModelImpl(const bench::Size& size)
      : token_embedding_(
            register_module("token_embedding", torch::nn::Embedding(count(size.vocab), count(size.d_model)))),
        position_embedding_(register_module("position_embedding",
                                            torch::nn::Embedding(count(size.seq), count(size.d_model)))),
        layers_(register_module("layers", torch::nn::ModuleList())),
        class_head_(
            register_module("class_head", torch::nn::Linear(count(size.d_model), count(size.classes)))) {
    for (std::size_t i = 0; i < size.layers; ++i) layers_->push_back(Layer(size));
  }

  Tensor forward(const Tensor& ids) {
    const float infinity = std::numeric_limits<float>::infinity();
    const Tensor padding = ids.eq(pad_id).unsqueeze(1).unsqueeze(1);
    const Tensor mask = torch::zeros(padding.sizes()).masked_fill_(padding, -infinity);
    Tensor x = token_embedding_(ids) + position_embedding_->weight;
    for (const auto& layer : *layers_) x = layer->as<Layer>()->forward(x, mask);
    return class_head_(x.mean(1));
  }

 private:
  torch::nn::Embedding token_embedding_, position_embedding_;
  torch::nn::ModuleList layers_;
  torch::nn::Linear class_head_;
};
TORCH_MODULE(Model);
// [model]

/// torch.autocast("cpu", torch.bfloat16).
void set_autocast(bool enabled) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, enabled);
#else
  at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
  at::autocast::set_cpu_enabled(enabled);
#endif
}

class Work {
 public:
  explicit Work(const json& request)
      : size_(request.at("size").get<bench::Size>()),
        model_(size_),
        parameters_(model_->parameters()),
        optimizer_(parameters_, torch::optim::AdamOptions(1e-3)),
        ids_(torch::tensor(request.at("ids").get<std::vector<std::int64_t>>())
                 .view({count(size_.batch), count(size_.seq)})),
        labels_(torch::tensor(request.at("labels").get<std::vector<std::int64_t>>())),
        autocast_(request.at("autocast")) {
    bench::load(parameters_, request.at("parameters"), request.at("weights"));
  }

  // [step]
  void step() {
    set_mode(true);
    bench::forget_gradients(parameters_);
    torch::cross_entropy_loss(logits(), labels_).backward();
    optimizer_.step();
  }
  // [step]
  void forward() {
    const torch::NoGradGuard guard;
    set_mode(false);
    logits();
  }
  double loss() {
    const torch::NoGradGuard guard;
    set_mode(false);
    return torch::cross_entropy_loss(logits(), labels_).item<double>();
  }

 private:
  void set_mode(bool training) {
    if (model_->is_training() != training) model_->train(training);
  }
  /// In bfloat16 where autocast is on.
  Tensor logits() {
    if (!autocast_) return model_(ids_);
    set_autocast(true);
    const Tensor rounded = model_(ids_);
    at::autocast::clear_cache();
    set_autocast(false);
    return rounded.to(at::kFloat);
  }

  bench::Size size_;
  Model model_;
  std::vector<Tensor> parameters_;
  torch::optim::Adam optimizer_;
  Tensor ids_, labels_;
  bool autocast_;
};

}  // namespace

int main() {
  std::unique_ptr<Work> work;
  return bench::serve([&](const std::string& what, const json& request) -> json {
    if (what == "start") {
      at::set_num_threads(request.at("threads"));
      work = std::make_unique<Work>(request);
      return bench::PeerModel{bench::libtorch_version(), work->loss()};
    }
    if (what == "step" && work) return bench::timed(request, [&] { work->step(); });
    if (what == "forward" && work) return bench::timed(request, [&] { work->forward(); });
    throw std::invalid_argument("cannot do '" + what + "' now");
  });
}
