#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../base/detail/by_name.hpp"
#include "../files/tensor_view.hpp"
#include "../models/module.hpp"
#include "../ops/product/weight.hpp"
#include "config.hpp"

namespace xgrad::pretrained {

namespace detail {
class Weights;
template <class T>
class Body;
}  // namespace detail

/// Precision of the linear layers of a model.
enum class Precision {
  float32,
  /// Products of numbers rounded to bfloat16, as with MatmulPrecision::medium; those of float32, with a note,
  /// on a processor that computes them no faster.
  bfloat16,
  /// Weights of 8-bit integers, by which the rounded rows of what a layer gets are multiplied: see linear().
  /// They have no gradients, and all other parameters of the encoder are frozen. Those of heads
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
  /// Type of a decoder's matrices in memory, also of those of embeddings: that of T if absent, or BF16, which
  /// takes half of the memory; numbers of BF16 in files stay as they are. They have no gradients; biases and
  /// norms are of T.
  std::optional<DType> dtype = {};
  /// Called with notes for the user: newly initialized and unused parameters. Printed on stderr if absent.
  std::function<void(const std::string&)> note = {};
};

/// Base class of pretrained models: a config, and parameters with Hugging Face's names, but for GPT-2's
/// queries, keys and values (`h.0.attn.q_proj.weight`), which its files have in one matrix, and whose
/// matrices are (out, in) here as those of every Linear.
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
  Model(const Config& config, const Module<T>& body) : Module<T>(body), config_(config) {}

 private:
  Config config_;
};

/// Base class of models without a head: Encoder and Decoder.
template <class T>
class BaseModel : public Model<T> {
 public:
  /// Freezes the embeddings and the first `layers` layers, which then get no gradients, and lets the other
  /// layers be trained; without a number, all of them. Applies to all copies. Throws ValueError for more
  /// layers than the model has.
  void freeze(std::optional<std::size_t> layers) const;

  /// The precision that its linear layers have, or are to have on a processor that is fast with it.
  Precision precision() const;

  /// Throws ValueError with LoadOptions::dtype.
  Variable<T> word_embeddings() const;
  /// Of any type.
  Weight<T> stored_word_embeddings() const;

 protected:
  /// Throws ValueError for a config that is not as causal as the class.
  BaseModel(const Config& config, detail::Weights& weights, bool is_causal);

  const detail::Body<T>& body() const { return *body_; }
  bool has_integers() const;
  bool rounds_products() const { return rounds_products_; }

 private:
  BaseModel(const Config& config, detail::Weights& weights, std::shared_ptr<const detail::Body<T>> body);

  std::shared_ptr<const detail::Body<T>> body_;
  bool rounds_products_;
};

struct SaveOptions {
  xgrad::detail::ByName by_name = {};
  /// F32, F64, BF16 or F16, to whose nearest numbers weights are rounded; that of T if absent, or BF16 with
  /// LoadOptions::dtype.
  std::optional<DType> dtype = {};
};

/// Writes config.json and model.safetensors ({"format": "pt"}) for transformers, in the layout of the
/// family's files; files of other names stay. Matrices of bfloat16 numbers stay as they are. Weights of 8-bit
/// integers are I8, with a weight_scale beside each, and a quantization_config of the format "int-quantized"
/// in config.json, which transformers opens with compressed-tensors. Saving an unchanged model loaded from
/// such a folder gives the same bytes. Throws FileError, also as check_save() does, and ValueError for
/// another type, for a number that is too large for it and for a config that config.json cannot say. Both
/// files are replaced or none, as by write_folder().
template <class T>
void save_folder(const Model<T>& model, const std::string& folder, SaveOptions options = {});

/// Throws FileError if the folder holds a file of another model that would stay beside a saved one and be
/// loaded in its place or with it: weights in parts or in torch's format, an adapter, modules.json. To be
/// called before a long training.
void check_save(const std::string& folder);

namespace detail {

/// save_folder without check_save().
template <class T>
void save_with_modules(const Model<T>& model, const std::string& folder, SaveOptions options = {});

/// Calls build(config, weights), which returns the name of the class, for a folder of an encoder or of a
/// decoder, and reports the notes.
void load(const std::string& folder, bool is_causal, const LoadOptions& options, const char* head,
          const std::function<std::string(const Config&, Weights&)>& build);

/// Loads a model of class M from a folder. Throws FileError for unreadable or inconsistent files.
template <class M>
M from_folder(const std::string& folder, const LoadOptions& options, const char* head = "") {
  std::optional<M> model;
  load(folder, M::is_causal, options, head,
       [&](const Config& config, Weights& weights) { return model.emplace(config, weights).architecture(); });
  return std::move(*model);
}

/// Calls build(weights) without files.
void build_fresh(const Config& config, const std::function<void(Weights&)>& build);

/// A model of class M with newly initialized parameters.
template <class M>
M fresh(const Config& config) {
  std::optional<M> model;
  build_fresh(config, [&](Weights& weights) { model.emplace(config, weights); });
  return std::move(*model);
}

/// Throws FileError for files of weights that would stay in the folder beside those of save_with_modules.
void refuse_other_weights(const std::string& folder);

}  // namespace detail
}  // namespace xgrad::pretrained
