#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../../models/layer_norm.hpp"
#include "../../models/linear.hpp"
#include "../model.hpp"
#include "weight_files.hpp"

namespace xgrad::pretrained::detail {

/// Initialization of a parameter missing from the files.
enum class Start {
  normal,  ///< drawn from N(0, initializer_range)
  zeros,
  ones,
};

/// The part of a model that a parameter belongs to.
enum class Part {
  encoder,  ///< required in the folder
  head,     ///< newly initialized if missing beside a loaded encoder
};

/// Parameters of a model folder by their names in a model for a task, "bert.embeddings.LayerNorm.weight", for
/// all spellings in files: with or without the prefix of the family, gamma and beta for weight and bias,
/// decoder.bias for bias, and as the family's stored_as says. Ignores other parameters.
class Weights {
 public:
  /// Opens the folder's WeightFiles. Throws FileError, also for a file with adapters.
  Weights(const std::string& folder, const Config& config, std::optional<Precision> precision);

  /// Without files: all parameters are newly initialized.
  explicit Weights(const Config& config) : config_(config) {}

  /// Whether the files contain it; true without files.
  bool offers(const std::string& name) const;

  /// The precision that is asked for; the folder's if absent.
  std::optional<Precision> precision() const { return precision_; }

  /// The values of a parameter; those of 8-bit integers times their scales. Throws FileError for a missing
  /// parameter of the encoder and for one of another shape or type, before allocating.
  template <class T>
  Array<T> take(const std::string& name, const Shape& shape, Start start, Part part);

  /// The weight of a linear layer as 8-bit integers: those of the file, unless float32 is asked for, or
  /// rounded if int8 is. Nothing for other layers, which are those of heads, and of more columns than
  /// integers may have. Throws FileError as take does.
  std::optional<Int8Weight> take_integers(const std::string& name, const Shape& shape, Part part);

  /// Ignores parameters in files whose names begin so: their size has changed.
  void forget(const std::string& prefix);

  /// Throws FileError if the files lack parameters of the head of a model of this class.
  void refuse_missing(const std::string& architecture) const;

  /// Notes for the user: newly initialized parameters, and unused ones in the files.
  std::vector<std::string> notes() const;

 private:
  struct Entry {
    const TensorView* tensor;
    const WeightFile* file;
    std::size_t part, parts;  // of the tensor
    bool taken = false;
  };

  void add(const WeightFile& file);
  void enter(const std::string& name, const Entry& entry);
  /// The part of a tensor that is a parameter of this shape.
  TensorView taken(Entry& entry, const Shape& shape);
  /// The scales (out) of a weight of integers (out, in).
  std::vector<float> take_scales(const std::string& name, const Entry& weight, const Shape& shape);

  Config config_;
  std::optional<Precision> precision_;
  std::string folder_;                    // empty without files
  std::deque<WeightFile> files_;          // storage of the tensors
  std::map<std::string, Entry> entries_;  // by name, without the family's prefix
  std::vector<std::string> fresh_;
};

/// "bert.", the prefix of an encoder's parameters in a model for a task.
std::string prefix_of(Family family);

}  // namespace xgrad::pretrained::detail
