#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../../../models/layers/layer_norm.hpp"
#include "../../../models/layers/linear.hpp"
#include "../../config.hpp"
#include "../../model.hpp"
#include "stored_as.hpp"
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

/// What the files of a model are called in, and what lacks in them begins with.
struct ModelInFiles {
  NamesInFiles names;
  double initializer_range = 0.02;
  bool quantized = false;           ///< linear layers may be of integers
  std::optional<DType> dtype = {};  ///< of matrices in memory: BF16, or of T if absent
  std::size_t paired_head = 0;      ///< the size of a head if its rows are in pairs; else 0
  std::string architecture = {};    ///< the saved class
  /// What the names of tensors tell where a parameter of the body is missing, for the end of the error.
  std::function<std::string(const std::vector<std::string>&)> told = {};
};

/// Those of a folder, or of a GGUF file. Throws ValueError for a dtype of an encoder, and for one but BF16.
ModelInFiles in_files(const Config& config, std::optional<DType> dtype = {}, bool is_gguf = false);

/// Parameters of a model folder by their names in a model for a task, "bert.embeddings.LayerNorm.weight", for
/// all spellings in files: with or without the prefix of the family, gamma and beta for weight and bias,
/// decoder.bias for bias, and as the family's stored_as says. Ignores other parameters.
class Weights {
 public:
  /// Opens the WeightFiles of a folder, or a GGUF file. Throws FileError, also for a file with adapters.
  Weights(const std::string& folder, ModelInFiles model, std::optional<Precision> precision);

  /// Without files: all parameters are newly initialized.
  explicit Weights(ModelInFiles model) : model_(std::move(model)) {}

  /// Whether the files contain it; true without files.
  bool offers(const std::string& name) const;

  /// The precision that is asked for; the folder's if absent.
  std::optional<Precision> precision() const { return precision_; }

  /// Whether both parameters are in the files, with other bytes.
  bool differ(const std::string& a, const std::string& b) const;

  /// The values of a parameter; those of 8-bit integers times their scales. Throws FileError for a missing
  /// parameter of the encoder and for one of another shape or type, before allocating.
  template <class T>
  Array<T> take(const std::string& name, const Shape& shape, Start start, Part part);

  /// A matrix (rows, size) of numbers of ModelInFiles::dtype: those of the file in BF16, or rounded. Without
  /// a dtype, and for a head that the files do not have, a parameter of what take gives. Throws FileError as
  /// take does.
  template <class T>
  Weight<T> take_rows(const std::string& name, const Shape& shape, Part part);

  /// The same for a linear layer, whose weight may be of integers: those of the file, unless float32 is asked
  /// for, or rounded if integers are. Layers of heads, and of more columns than integers may have, have none.
  template <class T>
  Weight<T> take_weight(const std::string& name, const Shape& shape, Part part);

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
    bool transposed = false, in_pairs = false;
    bool taken = false;
  };

  bool is_paired(const Entry& entry) const { return entry.in_pairs && model_.paired_head > 0; }
  bool has_integers(const Entry& entry) const { return model_.quantized && entry.tensor->dtype == DType::I8; }
  void add(const WeightFile& file);
  void enter(const std::string& name, const Entry& entry);
  /// The part of a tensor that is a parameter of this shape.
  TensorView taken(Entry& entry, const Shape& shape);
  /// What read(tensor, first, count) makes of the columns that are a parameter of this shape.
  template <class Read>
  auto taken_columns(Entry& entry, const Shape& shape, const Read& read);
  [[noreturn]] void refuse_shape(const Entry& entry, const Shape& expected) const;
  /// Whether the weight of a linear layer is to be of integers.
  bool gives_integers(const std::string& name, const Shape& shape, Part part) const;
  Weight<float> take_integers(const std::string& name, const Shape& shape, Part part);
  /// The scales (out) of a weight of integers (out, in).
  std::vector<float> take_scales(const std::string& name, const Entry& weight, const Shape& shape);

  ModelInFiles model_;
  std::optional<Precision> precision_;
  std::string folder_;                    // empty without files
  std::deque<WeightFile> files_;          // storage of the tensors
  std::map<std::string, Entry> entries_;  // by name, without the family's prefix
  std::vector<std::string> fresh_;
};

}  // namespace xgrad::pretrained::detail
