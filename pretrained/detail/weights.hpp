#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "../../files/safetensors.hpp"
#include "../../models/layer_norm.hpp"
#include "../../models/linear.hpp"
#include "../config.hpp"

namespace xgrad::pretrained::detail {

/// How a parameter starts that no file holds.
enum class Start {
  normal,  ///< drawn from N(0, initializer_range)
  zeros,
  ones,
};

/// Whose parameter it is.
enum class Part {
  encoder,  ///< a folder without it is refused
  head,     ///< may start fresh beside an encoder that is loaded
};

/// The parameters of a model folder by their names in a model for a task, "bert.embeddings.LayerNorm.weight",
/// however the file spells them: with or without the prefix of the family, gamma and beta for weight and
/// bias, decoder.bias for bias. What is not asked for is left.
class Weights {
 public:
  /// Opens model.safetensors, or the files that model.safetensors.index.json lists. Throws FileError.
  Weights(const std::string& folder, const Config& config);

  /// No file: all parameters start fresh.
  explicit Weights(const Config& config) : config_(config) {}

  /// Whether the files have it, or there are none.
  bool offers(const std::string& name) const;

  /// The numbers of a parameter. Throws FileError for an encoder's that is missing and for one of another
  /// shape or type, before anything is allocated.
  template <class T>
  Array<T> take(const std::string& name, const Shape& shape, Start start, Part part);

  /// Leaves out what files hold under names that begin so: it has another size now.
  void forget(const std::string& prefix);

  /// What to tell the user: names that started fresh, and names in the file that were not asked for.
  std::vector<std::string> notes() const;

 private:
  struct Entry {
    const TensorView* tensor;
    const std::string* path;
    bool taken = false;
  };

  void add(const std::string& path);

  Config config_;
  std::string folder_;                 // empty without files
  std::deque<SafetensorsFile> files_;  // which tensors point into
  std::deque<std::string> paths_;
  std::map<std::string, Entry> entries_;  // by name, without the family's prefix
  std::vector<std::string> fresh_;
};

/// weight and bias under `name`.
template <class T>
Linear<T> take_linear(Weights& weights, const std::string& name, std::size_t in_features,
                      std::size_t out_features, Part part) {
  Array<T> weight = weights.take<T>(name + ".weight", {out_features, in_features}, Start::normal, part);
  return Linear<T>(std::move(weight), weights.take<T>(name + ".bias", {out_features}, Start::zeros, part));
}
template <class T>
LayerNorm<T> take_norm(Weights& weights, const std::string& name, std::size_t size, double eps, Part part) {
  Array<T> weight = weights.take<T>(name + ".weight", {size}, Start::ones, part);
  return {std::move(weight), weights.take<T>(name + ".bias", {size}, Start::zeros, part), eps};
}

/// "bert.", with which the names of an encoder begin in a model for a task.
std::string prefix_of(Family family);

}  // namespace xgrad::pretrained::detail
