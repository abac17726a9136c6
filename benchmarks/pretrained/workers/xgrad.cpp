// The sequence classifier of xgrad::pretrained, which bench_pretrained measures.

#include <memory>
#include <stdexcept>

#include <xgrad/base/threads.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../../encoder/save.hpp"
#include "../../encoder/worker.hpp"
#include "protocol.hpp"

using nlohmann::json;
using xgrad::Ids, xgrad::Variable;

namespace {

xgrad::pretrained::Config config_of(const bench::BertSize& size) {
  xgrad::pretrained::Config config;
  config.vocab_size = size.vocab_size;
  config.max_position_embeddings = size.max_position_embeddings;
  config.hidden_size = config.embedding_size = size.hidden_size;
  config.num_hidden_layers = size.num_hidden_layers;
  config.num_attention_heads = size.num_attention_heads;
  config.intermediate_size = size.intermediate_size;
  config.layer_norm_eps = bench::layer_norm_eps;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = config.classifier_dropout =
      bench::dropout;
  return config;
}

class Work {
 public:
  Work(const bench::BertSize& size, const bench::Batch& batch, bool skip_padding)
      : model_(config_of(size)),
        parameters_(model_.parameters()),
        optimizer_(xgrad::pretrained::decay_groups(
            model_.named_parameters(), {.lr = bench::learning_rate, .weight_decay = bench::weight_decay})),
        input_{xt::adapt(batch.ids, xgrad::Shape{batch.lengths.size(), batch.longest}),
               xt::adapt(batch.mask, xgrad::Shape{batch.lengths.size(), batch.longest})},
        labels_(xt::adapt(batch.labels, xgrad::Shape{batch.labels.size()})) {
    model_.encoder().skip_padding(skip_padding);
  }

  void step() {
    model_.train();
    optimizer_.zero_grad();
    model_.loss(input_, labels_).backward();
    clip_grad_norm(parameters_, bench::max_norm);
    optimizer_.step();
  }
  Variable<float> forward() {
    const xgrad::NoGrad guard;
    model_.eval();
    return model_(input_);
  }
  bench::Logits logits() {
    const Variable<float> logits = forward();
    return {{logits.value().begin(), logits.value().end()}};
  }
  bench::Classifier description() const { return {xgrad::blas_core_name(), model_.parameter_count()}; }
  bench::Weights save(const std::string& path) const { return bench::save(model_, path); }

 private:
  xgrad::pretrained::SequenceClassifier<float> model_;
  std::vector<Variable<float>> parameters_;
  xgrad::AdamW<float> optimizer_;
  xgrad::pretrained::Input input_;
  Ids labels_;
};

}  // namespace

int main() {
  std::unique_ptr<Work> work;
  return bench::serve([&](const std::string& what, const json& request) -> json {
    if (what == "start") {
      xgrad::set_num_threads(request.at("threads"));
      xgrad::manual_seed(0);
      work = std::make_unique<Work>(request.at("size").get<bench::BertSize>(),
                                    request.at("batch").get<bench::Batch>(),
                                    request.at("skip_padding").get<bool>());
      return work->description();
    }
    if (what == "save" && work) return work->save(request.at("path"));
    if (what == "logits" && work) return work->logits();
    if (what == "step" && work) return bench::timed(request, [&] { work->step(); });
    if (what == "forward" && work) return bench::timed(request, [&] { work->forward(); });
    throw std::invalid_argument("cannot do '" + what + "' now");
  });
}
