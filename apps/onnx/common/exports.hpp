#pragma once

// What a model is exported with: its inputs, its outputs, and the lengths that it can take.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <xgrad/onnx/export.hpp>

namespace apps {

using OnnxValues = xgrad::onnx::Values<float>;

/// A model in evaluation mode, and the options of onnx::save() for it.
struct ExportedModel {
  std::shared_ptr<const xgrad::Module<float>> module;
  std::vector<xgrad::onnx::Input> inputs;
  xgrad::onnx::Forward<float> forward;
  std::size_t longest;  ///< the most tokens of a sequence
  /// Whether scores depend on the distance of positions; the file has those of sequences of `longest` tokens,
  /// but of at most 512.
  bool by_distance = false;

  void save(const std::string& path, std::int64_t opset = xgrad::onnx::ExportOptions().opset) const;
};

/// Ids (batch, sequence) less than `count`.
xgrad::onnx::Input token_input(const char* name, std::size_t count, std::optional<std::int64_t> padding = {});

const xgrad::Ids& ids_of(const OnnxValues& values, const char* name);

/// Of a pretrained folder, or of a safetensors file that train_tagger or train_syllables saved.
ExportedModel exported_model(const std::string& path);

}  // namespace apps
