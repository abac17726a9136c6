#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../models/module.hpp"
#include "config.hpp"

namespace xgrad::pretrained {

namespace detail {
class Weights;
}

struct LoadOptions {
  /// The classes of a head, by their ids; those of config.json if absent. With another number of labels than
  /// the folder's the head starts fresh.
  std::optional<std::vector<std::string>> labels = {};
  /// What the labels of sequences are; what config.json says if absent.
  std::optional<ProblemType> problem_type = {};
  /// Takes what the user should know: parameters that start fresh, and those that are not used. Printed on
  /// stderr if absent.
  std::function<void(const std::string&)> note = {};
};

/// What all pretrained models share: a config, and parameters with Hugging Face's names.
template <class T>
class Model : public Module<T> {
 public:
  const Config& config() const { return config_; }

  /// Hugging Face's name of this class, "BertForMaskedLM".
  const std::string& architecture() const { return this->type(); }

 protected:
  /// `task` ends the name of the class: "ForMaskedLM".
  Model(const Config& config, const std::string& task);

 private:
  Config config_;
};

/// Writes config.json and model.safetensors ({"format": "pt"}, F32 or F64) as transformers would load them;
/// files of other names stay. Saving what was loaded from such a folder gives the same bytes. Throws
/// FileError.
template <class T>
void save_folder(const Model<T>& model, const std::string& folder);

namespace detail {

/// Calls build(config, weights) for a folder, and passes the notes on.
void load(const std::string& folder, const LoadOptions& options, const char* head,
          const std::function<void(const Config&, Weights&)>& build);

/// A model of class M from a folder. Throws FileError for files that cannot be read or do not fit.
template <class M>
M from_folder(const std::string& folder, const LoadOptions& options, const char* head = "") {
  std::optional<M> model;
  load(folder, options, head,
       [&](const Config& config, Weights& weights) { model.emplace(config, weights); });
  return std::move(*model);
}

/// Calls build(weights) without files.
void build_fresh(const std::function<void(Weights&)>& build, const Config& config);

/// A model of class M with fresh parameters.
template <class M>
M fresh(const Config& config) {
  std::optional<M> model;
  build_fresh([&](Weights& weights) { model.emplace(config, weights); }, config);
  return std::move(*model);
}

}  // namespace detail
}  // namespace xgrad::pretrained
