// BERT's sequence classifier in LibTorch, which bench_pretrained measures beside xgrad's.

#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "../../encoder/libtorch.hpp"
#include "../../encoder/worker.hpp"
#include "protocol.hpp"

using bench::BertSize, bench::count;
using nlohmann::json;
using torch::Tensor;

namespace {

torch::nn::LayerNorm norm_of(const BertSize& size) {
  return torch::nn::LayerNorm(
      torch::nn::LayerNormOptions({count(size.hidden_size)}).eps(bench::layer_norm_eps));
}

torch::nn::Linear linear(std::size_t in, std::size_t out) { return torch::nn::Linear(count(in), count(out)); }

/// A layer; its modules are registered in the order of xgrad's parameters.
class LayerImpl : public torch::nn::Module {
 public:
  explicit LayerImpl(const BertSize& size)
      : heads_(count(size.num_attention_heads)),
        query_(register_module("query", linear(size.hidden_size, size.hidden_size))),
        key_(register_module("key", linear(size.hidden_size, size.hidden_size))),
        value_(register_module("value", linear(size.hidden_size, size.hidden_size))),
        out_(register_module("out", linear(size.hidden_size, size.hidden_size))),
        norm1_(register_module("norm1", norm_of(size))),
        up_(register_module("up", linear(size.hidden_size, size.intermediate_size))),
        down_(register_module("down", linear(size.intermediate_size, size.hidden_size))),
        norm2_(register_module("norm2", norm_of(size))) {}

  Tensor forward(const Tensor& x, const Tensor& mask) {
    const Tensor y = norm1_(drop(out_(attend(x, mask))).add_(x));
    return norm2_(drop(down_(torch::gelu(up_(y)))).add_(y));
  }

 private:
  Tensor drop(const Tensor& x) const { return torch::dropout(x, bench::dropout, is_training()); }

  /// (batch, length, hidden) to (batch, heads, length, hidden / heads).
  Tensor split(const Tensor& x) const {
    return x.view({x.size(0), x.size(1), heads_, x.size(2) / heads_}).transpose(1, 2);
  }
  Tensor attend(const Tensor& x, const Tensor& mask) {
    const Tensor q = split(query_(x)), k = split(key_(x)), v = split(value_(x));
    const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
    const Tensor weights = torch::softmax(torch::matmul(q * scale, k.transpose(-2, -1)).add_(mask), -1);
    return torch::matmul(drop(weights), v).transpose(1, 2).reshape(x.sizes());
  }

  std::int64_t heads_;
  torch::nn::Linear query_, key_, value_, out_;
  torch::nn::LayerNorm norm1_;
  torch::nn::Linear up_, down_;
  torch::nn::LayerNorm norm2_;
};
TORCH_MODULE(Layer);

class ModelImpl : public torch::nn::Module {
 public:
  explicit ModelImpl(const BertSize& size)
      : words_(register_module(
            "words",
            torch::nn::Embedding(torch::nn::EmbeddingOptions(count(size.vocab_size), count(size.hidden_size))
                                     .padding_idx(0)))),
        positions_(register_module(
            "positions", torch::nn::Embedding(count(size.max_position_embeddings), count(size.hidden_size)))),
        types_(register_module("types", torch::nn::Embedding(2, count(size.hidden_size)))),
        norm_(register_module("norm", norm_of(size))),
        layers_(register_module("layers", torch::nn::ModuleList())),
        pooler_(register_module("pooler", linear(size.hidden_size, size.hidden_size))),
        classifier_(register_module("classifier", linear(size.hidden_size, bench::label_count))) {
    for (std::size_t i = 0; i < size.num_hidden_layers; ++i) layers_->push_back(Layer(size));
  }

  Tensor forward(const Tensor& ids, const Tensor& mask) {
    const Tensor added = torch::zeros(mask.sizes())
                             .masked_fill_(mask.eq(0), -std::numeric_limits<float>::infinity())
                             .unsqueeze(1)
                             .unsqueeze(1);
    Tensor x = words_(ids) + types_->weight[0] + positions_->weight.narrow(0, 0, ids.size(1));
    x = drop(norm_(x));
    for (const auto& layer : *layers_) x = layer->as<Layer>()->forward(x, added);
    return classifier_(drop(torch::tanh(pooler_(x.select(1, 0)))));
  }

 private:
  Tensor drop(const Tensor& x) const { return torch::dropout(x, bench::dropout, is_training()); }

  torch::nn::Embedding words_, positions_, types_;
  torch::nn::LayerNorm norm_;
  torch::nn::ModuleList layers_;
  torch::nn::Linear pooler_, classifier_;
};
TORCH_MODULE(Model);

/// Weights decay, biases and the parameters of LayerNorms do not: the one kind has two axes, the other one.
std::vector<torch::optim::OptimizerParamGroup> decay_groups(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> decaying, others;
  for (const Tensor& parameter : parameters) (parameter.dim() > 1 ? decaying : others).push_back(parameter);
  const auto options = [](double decay) {
    return std::make_unique<torch::optim::AdamWOptions>(
        torch::optim::AdamWOptions(bench::learning_rate).weight_decay(decay));
  };
  return {{decaying, options(bench::weight_decay)}, {others, options(0)}};
}

class Work {
 public:
  explicit Work(const json& request)
      : model_(request.at("size").get<BertSize>()),
        parameters_(model_->parameters()),
        optimizer_(decay_groups(parameters_), torch::optim::AdamWOptions(bench::learning_rate)) {
    const auto batch = request.at("batch").get<bench::Batch>();
    const std::vector<std::int64_t> shape{count(batch.lengths.size()), count(batch.longest)};
    ids_ = torch::tensor(batch.ids).view(shape);
    mask_ = torch::tensor(batch.mask).view(shape);
    labels_ = torch::tensor(batch.labels);
    bench::load(parameters_, request.at("parameters"), request.at("weights"));
  }

  void step() {
    model_->train();
    bench::forget_gradients(parameters_);
    torch::cross_entropy_loss(model_(ids_, mask_), labels_).backward();
    torch::nn::utils::clip_grad_norm_(parameters_, bench::max_norm);
    optimizer_.step();
  }
  Tensor forward() {
    const torch::InferenceMode guard;
    model_->eval();
    return model_(ids_, mask_);
  }
  bench::Logits logits() {
    const Tensor logits = forward().contiguous();
    const float* const data = logits.data_ptr<float>();
    return {{data, data + logits.numel()}};
  }
  bench::Classifier description() const {
    std::size_t params = 0;
    for (const Tensor& parameter : parameters_) params += static_cast<std::size_t>(parameter.numel());
    return {bench::libtorch_version(), params};
  }

 private:
  Model model_;
  std::vector<Tensor> parameters_;
  torch::optim::AdamW optimizer_;
  Tensor ids_, mask_, labels_;
};

}  // namespace

int main() {
  std::unique_ptr<Work> work;
  return bench::serve([&](const std::string& what, const json& request) -> json {
    if (what == "start") {
      at::set_num_threads(request.at("threads"));
      torch::manual_seed(0);
      work = std::make_unique<Work>(request);
      return work->description();
    }
    if (what == "logits" && work) return work->logits();
    if (what == "step" && work) return bench::timed(request, [&] { work->step(); });
    if (what == "forward" && work) return bench::timed(request, [&] { work->forward(); });
    throw std::invalid_argument("cannot do '" + what + "' now");
  });
}
