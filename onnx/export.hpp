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

/// An input that a model is exported with: its name, its axes, each of a fixed length or named ("batch"), and
/// what it holds: integers from `from`, below `below`, or floats if these are equal. `padding` is the integer
/// that stands for no token; `from` if absent, as in a mask.
struct Input {
  std::string name;
  std::vector<std::variant<std::size_t, std::string>> axes;
  std::int64_t from = 0, below = 0;
  std::optional<std::int64_t> padding = {};
};

/// The lengths of named axes for three calls of the model: two are traced, and the file is compared with the
/// model in the third.
using Lengths = std::map<std::string, std::array<std::size_t, 3>>;

/// A call of a model: its outputs by their names, computed from the inputs by theirs.
template <class T>
using Forward = std::function<Values<T>(const Values<T>& inputs)>;

/// In bytes, a little less than the 2 GiB that protocol buffers end at.
inline constexpr std::size_t largest_protobuf = 2'000'000'000;

/// Writes what a model computes as an ONNX file, operator set 17, that any runtime can run: the ops that
/// `forward` calls, with the parameters that they read under their names. Nothing is recorded, and dropout
/// must be off (model.eval()). Lengths of named axes stay open; a length that forward() bakes into its
/// numbers is an error. Integers and conditions that are computed outside of ops must be what models make of
/// their inputs: masks of the elements that are not one number, positions, shares of those that count.
///
///   onnx::save<float>(model, "model.onnx", {{"input_ids", {"batch", "sequence"}, 0, 100}},
///                     [&](const onnx::Values<float>& in) {
///                       return onnx::Values<float>{{"logits",
///                       model.class_logits(std::get<Ids>(in.at("input_ids")))}};
///                     });
///
/// `lengths` are 2, 5 and 3 for the first name, 7, 9 and 8 for the second, and larger ones after that, unless
/// given. The file is read again and compared with the model before it appears under its path. Where it would
/// have more bytes than `largest_file`, the weights go to a file beside it whose name is longer by "_data".
/// Throws ValueError that names all ops and constants that cannot be exported, and FileError.
template <class T>
void save(const Module<T>& model, const std::string& path, const std::vector<Input>& inputs,
          const Forward<T>& forward, const Lengths& lengths = {},
          std::size_t largest_file = largest_protobuf);

}  // namespace xgrad::onnx
