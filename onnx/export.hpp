#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "../models/module.hpp"
#include "value.hpp"

namespace xgrad::onnx {

/// Description of an input for export: its name, its axes, each of a fixed length or named ("batch"), and its
/// range: integers in [from, below), or floats if the two are equal. `padding` is the integer of positions
/// without a token; `from` if absent, as in a mask.
struct Input {
  std::string name;
  std::vector<std::variant<std::size_t, std::string>> axes;
  std::int64_t from = 0, below = 0;
  std::optional<std::int64_t> padding = {};
};

/// Lengths of named axes for three calls of the model: the first two are traced, and the third compares the
/// file with the model.
using Lengths = std::map<std::string, std::array<std::size_t, 3>>;

/// A call of a model: computes outputs by name from inputs by name.
template <class T>
using Forward = std::function<Values<T>(const Values<T>& inputs)>;

/// In bytes, slightly below the 2 GiB limit of protocol buffers.
inline constexpr std::size_t largest_protobuf = 2'000'000'000;

/// Options of save().
struct ExportOptions {
  /// By default 2, 5 and 3 for the first name, 7, 9 and 8 for the second, and larger ones after that.
  Lengths lengths = {};
  /// The version of ONNX's operators, 17 to 23.
  std::int64_t opset = 17;
  /// In bytes; of a larger file, the weights are stored in a file beside it with the suffix "_data".
  std::size_t largest_file = largest_protobuf;
};

/// Exports a model as an ONNX file for any runtime: the ops that `forward` calls, with the parameters that
/// they read, by name. The transpose of a weight (out, in) is a constant NAME_transposed unless the weight
/// itself is read, too, so that tools find constants in products; Graph restores it. Nothing is recorded, and
/// dropout must be off (model.eval()). Lengths of named axes stay variable; a length that forward() bakes
/// into constants is an error. Integers and conditions computed outside of ops must be of a kind that models
/// derive from their inputs: masks of the elements not equal to a number, positions, shares of those that
/// count, and functions (length, length) of the distance of positions, which the file has for sequences up to
/// the longest traced one: with longer ones it fails.
///
///   onnx::save<float>(model, "model.onnx", {{"input_ids", {"batch", "sequence"}, 0, 100}},
///                     [&](const onnx::Values<float>& in) {
///                       return onnx::Values<float>{{"logits",
///                       model.class_logits(std::get<Ids>(in.at("input_ids")))}};
///                     });
///
/// The file is read again and compared with the model before it is renamed to its path. Throws ValueError
/// that names all ops and constants that cannot be exported, and FileError.
template <class T>
void save(const Module<T>& model, const std::string& path, const std::vector<Input>& inputs,
          const Forward<T>& forward, const ExportOptions& options = {});

}  // namespace xgrad::onnx
