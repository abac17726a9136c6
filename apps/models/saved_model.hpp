#pragma once

// Models in safetensors files: the weights, and in the metadata the sizes and vocabularies to build the
// model.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <xgrad/base/error.hpp>
#include <xgrad/files/safetensors.hpp>
#include <xgrad/models/transformer/encoder_layer.hpp>

namespace apps {

/// The sizes of an encoder as metadata.
xgrad::Metadata sizes_of(const xgrad::EncoderConfig& encoder);

/// The lines as one text; none may hold a newline.
std::string joined_lines(const std::vector<std::string>& lines);

/// A file that a training program saved, or its checkpoint where that describes the model. Every error names
/// the file.
class SavedModel {
 public:
  /// Throws xgrad::FileError unless the file is a model for this task.
  SavedModel(const std::string& path, const std::string& task);

  /// What the model of a file is for. Throws xgrad::FileError unless a training program saved it.
  static std::string task_of(const std::string& path);

  bool has(const std::string& key) const { return file_.metadata().contains(key); }

  const std::string& text(const std::string& key) const;

  std::size_t number(const std::string& key, std::size_t limit) const;

  /// The lines of a text that joined_lines() made.
  std::vector<std::string> lines(const std::string& key) const;

  /// Of an encoder whose weights the file has room for: a small file must not ask for much memory.
  xgrad::EncoderConfig encoder() const;

  /// Throws unless the file has room for so many weights; `what` has them.
  void check_weights(std::uint64_t count, const std::string& what) const;

  /// Throws for the value of a key.
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

  /// Builds a model with build(), gives it the weights of the file and puts it into evaluation mode.
  template <class Build>
  auto model(Build&& build) const {
    try {
      auto result = build();
      result.load_state_dict(weights());
      result.eval();
      return result;
    } catch (const xgrad::ValueError& error) {
      throw xgrad::FileError(path_ + ": " + error.what());
    }
  }

 private:
  explicit SavedModel(const std::string& path);

  std::uint64_t weight_count() const;
  xgrad::StateDict<float> weights() const;

  std::string path_;
  xgrad::SafetensorsFile file_;
};

}  // namespace apps
