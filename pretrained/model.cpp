#include "model.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <system_error>

#include "../base/detail/folder_files.hpp"
#include "../base/detail/folder_names.hpp"
#include "../base/detail/tell.hpp"
#include "../base/folder.hpp"
#include "../files/gguf.hpp"
#include "../files/safetensors.hpp"
#include "../ops/product/matmul_precision.hpp"
#include "causal_config.hpp"
#include "detail/config/quantization.hpp"
#include "detail/family.hpp"
#include "detail/weights/weights.hpp"

namespace xgrad::pretrained {
namespace {

/// The linear layers of float weights, by their names.
template <class T>
void add_float_layers(const xgrad::detail::ModuleState<T>& state, const std::string& prefix,
                      std::vector<std::string>& found) {
  for (const auto& [name, child] : state.children) {
    if (child->type == "Linear" && child->int8_weights.empty()) found.push_back(prefix + name);
    add_float_layers(*child, prefix + name + ".", found);
  }
}

/// The layers of a model that are float in files, also those that only Hugging Face's class has: a pooler,
/// and the decoder of tied weights.
template <class T>
std::vector<std::string> float_layers(const Model<T>& model) {
  const detail::FamilyInfo& family = detail::info_of(model.config().model_type);
  std::vector<std::string> layers;
  add_float_layers(model.state(), "", layers);
  if (family.pooler != nullptr) {
    layers.emplace_back(family.pooler);
    layers.push_back(std::string(family.prefix) + family.pooler);
  }
  if (family.decoder != nullptr) {
    const std::string decoder = family.decoder;
    layers.push_back(decoder.substr(0, decoder.rfind('.')));
  }
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

/// The integers and scales of a model, as files name them.
struct StoredIntegers {
  StateDict<std::int8_t> values;
  StateDict<float> scales;

  StoredIntegers(const std::vector<NamedInt8Weight>& weights, const detail::FamilyInfo& family) {
    StateDict<std::int8_t> all_values;
    StateDict<float> all_scales;
    for (const auto& [name, weight] : weights) {
      const Shape shape = weight.shape();
      Array<std::int8_t> integers = Array<std::int8_t>::from_shape(shape);
      const std::vector<std::int8_t> read = weight.values();
      std::copy(read.begin(), read.end(), integers.begin());
      Array<float> column = Array<float>::from_shape({shape[0], 1});
      const std::vector<float> factors = weight.scales();
      std::copy(factors.begin(), factors.end(), column.begin());
      all_values.emplace(name, std::move(integers));
      all_scales.emplace(name + "_scale", std::move(column));
    }
    values = detail::as_stored(family.stored_as, family.prefix, std::move(all_values));
    scales = detail::as_stored(family.stored_as, family.prefix, std::move(all_scales));
  }
};

/// Parameters, beside weights of 8-bit integers; no model has buffers.
template <class T>
StateDict<T> float_state(const Model<T>& model) {
  if (model.named_int8_weights().empty()) return model.state_dict();
  StateDict<T> state;
  for (const auto& [name, one] : model.named_parameters()) state.emplace(name, one.value());
  return state;
}

template <class T>
void add_views(const StateDict<T>& state, std::vector<TensorView>& views) {
  for (const auto& [name, array] : state) views.push_back(view_of(name, array));
}

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
Model<T>::Model(const Config& config, const Module<T>& body) : Module<T>(body), config_(config) {}

namespace {

/// Files that the saved one does not replace: other weights, which transformers or this library reads, and
/// adapters, which transformers adds.
std::vector<std::string> other_weights(const std::string& folder) {
  std::vector<std::string> names{"model.safetensors.index.json", "pytorch_model.bin",
                                 "pytorch_model.bin.index.json", "adapter_config.json",
                                 "adapter_model.safetensors",    "adapter_model.bin"};
  complete_folder(folder);
  std::error_code error;
  for (const std::string& name : xgrad::detail::names_in(folder, error)) {
    if ((name.starts_with("model-") && name.ends_with(".safetensors")) ||
        (name.starts_with("pytorch_model-") && name.ends_with(".bin")))
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

void check_save(const std::string& folder) {
  std::vector<std::string> names = other_weights(folder);
  names.emplace_back("modules.json");
  xgrad::detail::refuse_leftovers(folder, names);
}

template <class T>
void save_folder(const Model<T>& model, const std::string& folder) {
  check_save(folder);
  detail::save_with_modules(model, folder);
}

template <class T>
void detail::save_with_modules(const Model<T>& model, const std::string& folder) {
  const bool is_double = std::is_same_v<T, double>;
  const detail::FamilyInfo& family = detail::info_of(model.config().model_type);
  const StateDict<T> state = detail::as_stored(family.stored_as, family.prefix, float_state(model));
  const StoredIntegers integers(model.named_int8_weights(), family);
  const std::string text =
      model.config().json(model.architecture(), is_double ? "float64" : "float32",
                          integers.values.empty() ? "" : detail::quantization_json(float_layers(model)));
  std::vector<TensorView> tensors;
  add_views(state, tensors);
  add_views(integers.values, tensors);
  add_views(integers.scales, tensors);
  write_model(folder, text, std::move(tensors));
}

void detail::refuse_other_weights(const std::string& folder) {
  xgrad::detail::refuse_leftovers(folder, other_weights(folder));
}

void detail::write_model(const std::string& folder, const std::string& text,
                         std::vector<TensorView> tensors) {
  write_folder(folder, [&](const std::string& other) {
    xgrad::detail::write_file(other + "/config.json", text);
    write_safetensors(std::move(tensors), other + "/model.safetensors", {{"format", "pt"}});
  });
}

template <class C>
void detail::load(const std::string& folder, const LoadOptions& options, const char* head,
                  const std::function<std::string(const C&, Weights&)>& build) {
  C config = C::from_folder(folder);
  if (options.precision == Precision::bfloat16) {
    const MatmulPrecisionGuard guard(MatmulPrecision::medium);
    if (matmul_precision_in_use() != MatmulPrecision::medium)
      xgrad::detail::tell(options.note, folder +
                                            ": this processor computes bfloat16 no faster than float32, "
                                            "which is used instead");
  }
  Weights weights(folder, in_files(config, options.bfloat16_weights, is_gguf(folder)), options.precision);
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

template <class C>
void detail::build_fresh(const std::function<void(Weights&)>& build, const C& config) {
  config.check();
  Weights weights(in_files(config));
  build(weights);
}

template class Model<float>;
template class Model<double>;
template void detail::load(const std::string&, const LoadOptions&, const char*,
                           const std::function<std::string(const Config&, Weights&)>&);
template void detail::load(const std::string&, const LoadOptions&, const char*,
                           const std::function<std::string(const CausalConfig&, Weights&)>&);
template void detail::build_fresh(const std::function<void(Weights&)>&, const Config&);
template void detail::build_fresh(const std::function<void(Weights&)>&, const CausalConfig&);
template void save_folder(const Model<float>&, const std::string&);
template void save_folder(const Model<double>&, const std::string&);
template void detail::save_with_modules(const Model<float>&, const std::string&);
template void detail::save_with_modules(const Model<double>&, const std::string&);

}  // namespace xgrad::pretrained
