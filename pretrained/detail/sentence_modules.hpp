#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "../pooling.hpp"
#include "named_function.hpp"

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

template <class T>
Variable<T> run(const VectorModule<T>& module, const Variable<T>& x);

/// modules.json and the files that it lists.
template <class T>
struct SentenceModules {
  std::vector<Pooling> poolings{Pooling::mean};
  bool pools_prompt = true;
  std::vector<VectorModule<T>> vectors;
  std::size_t size;                // of a vector
  std::vector<std::string> files;  // what save() copies

  /// Throws FileError for unreadable files and for unsupported modules.
  SentenceModules(const std::string& folder, std::size_t hidden_size);

 private:
  void read_modules(const std::string& folder, std::size_t hidden_size);
  void read_pooling(const std::string& path, std::size_t hidden_size);
  void read_dense(const std::string& folder);
  void read_layer_norm(const std::string& folder);
};

}  // namespace xgrad::pretrained::detail
