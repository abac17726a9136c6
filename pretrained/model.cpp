#include "model.hpp"

#include <algorithm>

#include "../base/detail/tell.hpp"
#include "../base/error.hpp"
#include "../files/gguf.hpp"
#include "../ops/product/matmul_precision.hpp"
#include "detail/family.hpp"

namespace xgrad::pretrained {
namespace {

const char* class_of(bool is_causal) { return is_causal ? "Decoder" : "Encoder"; }

}  // namespace

std::string to_string(Precision precision) {
  return precision == Precision::float32 ? "float32" : precision == Precision::bfloat16 ? "bfloat16" : "int8";
}

Precision precision_named(std::string_view name) {
  for (const Precision one : {Precision::float32, Precision::bfloat16, Precision::int8}) {
    if (name == to_string(one)) return one;
  }
  xgrad::detail::fail<ValueError>("precision_named: expected float32, bfloat16 or int8, got '", name, "'");
}

template <class T>
Model<T>::Model(const Config& config, const std::string& task)
    : Module<T>(detail::info_of(config.model_type).class_name + task), config_(config) {}

template <class T>
BaseModel<T>::BaseModel(const Config& config, detail::Weights& weights, bool is_causal)
    : BaseModel(config, weights, detail::info_of(config.model_type).make_body<T>(config, weights)) {
  const char* const name = class_of(is_causal);
  if (config.is_causal != is_causal)
    xgrad::detail::fail<ValueError>(name, ": is_causal of the config must be ", is_causal ? "true" : "false",
                                    ", got ", config.is_causal ? "true" : "false");
  const Precision precision = weights.precision().value_or(Precision::float32);
  if (is_causal && precision == Precision::int8)
    throw ValueError("Decoder: the precision must be float32 or bfloat16, got int8");
  if (!std::is_same_v<T, float> && precision != Precision::float32)
    xgrad::detail::fail<ValueError>(name, ": the precision of a model of double must be float32");
}

template <class T>
BaseModel<T>::BaseModel(const Config& config, detail::Weights& weights,
                        std::shared_ptr<const detail::Body<T>> body)
    : Model<T>(config, *body),
      body_(std::move(body)),
      rounds_products_(weights.precision() == Precision::bfloat16) {}

template <class T>
void BaseModel<T>::freeze(std::optional<std::size_t> layers) const {
  const std::size_t count = this->config().num_hidden_layers;
  if (layers && *layers > count)
    xgrad::detail::fail<ValueError>(class_of(this->config().is_causal), ": freeze must name at most the ",
                                    count, " layers, got ", *layers);
  for (const std::string& name : body_->embedding_names()) this->requires_grad(name, !layers);
  // the first last, as layers may share weights
  for (std::size_t i = count; i-- > 0;)
    for (const std::string& name : body_->block_names(i)) this->requires_grad(name, !layers || i >= *layers);
}

template <class T>
Precision BaseModel<T>::precision() const {
  if (rounds_products_) return Precision::bfloat16;
  return has_integers() ? Precision::int8 : Precision::float32;
}

template <class T>
bool BaseModel<T>::has_integers() const {
  const std::vector<NamedWeight<T>> weights = this->named_weights();
  return std::any_of(weights.begin(), weights.end(),
                     [](const NamedWeight<T>& one) { return one.second.dtype() == DType::I8; });
}

template <class T>
Variable<T> BaseModel<T>::word_embeddings() const {
  return body_->words().weight();
}

template <class T>
Weight<T> BaseModel<T>::stored_word_embeddings() const {
  return body_->words().stored_weight();
}

void detail::load(const std::string& folder, bool is_causal, const LoadOptions& options, const char* head,
                  const std::function<std::string(const Config&, Weights&)>& build) {
  Config config = Config::from_folder(folder, is_causal);
  if (options.precision == Precision::bfloat16) {
    const MatmulPrecisionGuard guard(MatmulPrecision::medium);
    if (matmul_precision_in_use() != MatmulPrecision::medium)
      xgrad::detail::tell(options.note, folder +
                                            ": this processor computes bfloat16 no faster than float32, "
                                            "which is used instead");
  }
  Weights weights(folder, in_files(config, options.dtype, is_gguf(folder)), options.precision);
  if (options.problem_type) config.problem_type = options.problem_type;
  if (options.labels) {
    if (options.labels->empty()) throw ValueError("from_folder: labels must have one or more, got none");
    if (*head != '\0' && options.labels->size() != config.id2label.size()) weights.forget(head);
    config.id2label = *options.labels;
  }
  const std::string type = build(config, weights);
  if (options.complete) weights.refuse_missing(type);
  for (const std::string& note : weights.notes()) xgrad::detail::tell(options.note, note);
}

void detail::build_fresh(const Config& config, const std::function<void(Weights&)>& build) {
  config.check();
  Weights weights(in_files(config));
  build(weights);
}

template class Model<float>;
template class Model<double>;
template class BaseModel<float>;
template class BaseModel<double>;

}  // namespace xgrad::pretrained
