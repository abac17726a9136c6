#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../base/detail/by_name.hpp"
#include "../models/module.hpp"
#include "config.hpp"

namespace xgrad {

struct TensorView;

namespace pretrained {

namespace detail {
class Weights;
}

/// Precision of the linear layers of an encoder.
enum class Precision {
  float32,
  /// Products of numbers rounded to bfloat16, as with MatmulPrecision::medium; those of float32, with a note,
  /// on a processor that computes them no faster.
  bfloat16,
  /// Weights of 8-bit integers, by which the rounded rows of what a layer gets are multiplied: see
  /// Int8Weight. They have no gradients, and all other parameters of the encoder are frozen. Those of heads
  /// and poolers stay float.
  int8,
};

/// "float32", "bfloat16" or "int8".
std::string to_string(Precision precision);

/// The precision with this name: "float32", "bfloat16" or "int8". Throws ValueError for another one.
Precision precision_named(std::string_view name);

struct LoadOptions {
  xgrad::detail::ByName by_name = {};
  /// Class labels of a head, by id; those of config.json if absent. If their number differs from the
  /// folder's, the head is newly initialized.
  std::optional<std::vector<std::string>> labels = {};
  /// Kind of labels of sequences; that of config.json if absent.
  std::optional<ProblemType> problem_type = {};
  /// Whether parameters of a head that the folder does not have are an error; they are newly initialized
  /// otherwise.
  bool complete = false;
  /// Precision of the encoder; that of the folder if absent, int8 or float32. Models of double have float32
  /// alone, which stands for double; weights of 8-bit integers are then multiplied by their scales.
  std::optional<Precision> precision = {};
  /// Of a decoder: matrices, also those of embeddings, are kept as bfloat16 numbers, in half of the memory,
  /// those of files in bfloat16 as they are. They have no gradients; biases and norms are floats.
  bool bfloat16_weights = false;
  /// Called with notes for the user: newly initialized and unused parameters. Printed on stderr if absent.
  std::function<void(const std::string&)> note = {};
};

/// Base class of pretrained models: a config, and parameters with Hugging Face's names.
template <class T>
class Model : public Module<T> {
 public:
  const Config& config() const& { return config_; }
  Config config() && { return config_; }

  /// Hugging Face's name of this class, "BertForMaskedLM".
  const std::string& architecture() const& { return this->type(); }
  std::string architecture() && { return this->type(); }

 protected:
  /// `task` is the suffix of the class name: "ForMaskedLM".
  Model(const Config& config, const std::string& task);
  /// A body without a task.
  Model(const Config& config, const Module<T>& body);

 private:
  Config config_;
};

/// Writes config.json and model.safetensors ({"format": "pt"}, F32 or F64) for transformers; files of other
/// names stay. Weights of 8-bit integers are I8, with a weight_scale beside each, and a quantization_config
/// of the format "int-quantized" in config.json, which transformers opens with compressed-tensors. Saving an
/// unchanged model loaded from such a folder gives the same bytes. Throws FileError, also as check_save()
/// does. Both files are replaced or none, as by write_folder().
template <class T>
void save_folder(const Model<T>& model, const std::string& folder);

/// Throws FileError if the folder holds a file of another model that would stay beside a saved one and be
/// loaded in its place or with it: weights in parts or in torch's format, an adapter, modules.json. To be
/// called before a long training.
void check_save(const std::string& folder);

namespace detail {

/// save_folder without check_save().
template <class T>
void save_with_modules(const Model<T>& model, const std::string& folder);

/// Calls build(config, weights), which returns the name of the class, for a folder, and reports the notes.
/// C is Config, or CausalConfig of decoders.
template <class C>
void load(const std::string& folder, const LoadOptions& options, const char* head,
          const std::function<std::string(const C&, Weights&)>& build);

/// Loads a model of class M from a folder. Throws FileError for unreadable or inconsistent files.
template <class M, class C = Config>
M from_folder(const std::string& folder, const LoadOptions& options, const char* head = "") {
  std::optional<M> model;
  load<C>(folder, options, head,
          [&](const C& config, Weights& weights) { return model.emplace(config, weights).architecture(); });
  return std::move(*model);
}

/// Calls build(weights) without files.
template <class C>
void build_fresh(const std::function<void(Weights&)>& build, const C& config);

/// A model of class M with newly initialized parameters.
template <class M, class C>
M fresh(const C& config) {
  std::optional<M> model;
  build_fresh([&](Weights& weights) { model.emplace(config, weights); }, config);
  return std::move(*model);
}

/// Writes config.json and model.safetensors as write_folder() does.
void write_model(const std::string& folder, const std::string& config, std::vector<TensorView> tensors);

/// Throws FileError for files of weights that would stay in the folder beside those of write_model.
void refuse_other_weights(const std::string& folder);

}  // namespace detail
}  // namespace pretrained
}  // namespace xgrad
