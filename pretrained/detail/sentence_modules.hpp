#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "../../models/module.hpp"
#include "../heads/pooling.hpp"
#include "config/named_function.hpp"

// Not installed: the files of a folder of sentence-transformers.

namespace xgrad::pretrained::detail {

/// f(x W^T + b)
template <class T>
struct DenseModule {
  Variable<T> weight, bias;  // the bias may be undefined
  VectorFunction<T> function;
};

template <class T>
struct LayerNormModule {
  Variable<T> weight, bias;
};

/// x / |x|
struct NormalizeModule {};

/// What runs on vectors of texts.
template <class T>
using VectorModule = std::variant<DenseModule<T>, LayerNormModule<T>, NormalizeModule>;

/// A module of modules.json, with the name and the folder that it has there.
template <class T>
struct NamedModule {
  std::string name, path;
  VectorModule<T> module;
};

template <class T>
Variable<T> run(const VectorModule<T>& module, const Variable<T>& x);

/// modules.json and the files that it lists.
template <class T>
struct SentenceModules {
  std::vector<Pooling> poolings{Pooling::mean};
  bool pools_prompt = true;
  std::vector<NamedModule<T>> vectors;
  std::size_t size;                // of a vector
  std::vector<std::string> files;  // that were read, but for weights; none without modules.json
  std::vector<std::string> notes;  // for the user

  /// Throws FileError for unreadable files and for unsupported modules.
  SentenceModules(const std::string& folder, std::size_t hidden_size);

  /// The weights of all modules, "2.linear.weight".
  std::vector<NamedParameter<T>> parameters() const;

  /// Writes the weights, and without modules.json the files of mean pooling. Throws FileError.
  void save(const std::string& folder, std::size_t hidden_size) const;

 private:
  void read_modules(const std::string& folder, std::size_t hidden_size);
  void read_pooling(const std::string& path, std::size_t hidden_size);
  DenseModule<T> read_dense(const std::string& folder);
  LayerNormModule<T> read_layer_norm(const std::string& folder) const;
};

}  // namespace xgrad::pretrained::detail
