#pragma once

// Models in safetensors files: the weights, and in the metadata the sizes and vocabularies to build the
// model.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <xgrad/base/detail/parse.hpp>
#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

namespace apps {

/// The sizes of an encoder as metadata.
inline xgrad::Metadata sizes_of(const xgrad::EncoderConfig& encoder) {
  return {{"d_model", std::to_string(encoder.d_model)},
          {"heads", std::to_string(encoder.heads)},
          {"d_ff", std::to_string(encoder.d_ff)},
          {"layers", std::to_string(encoder.layers)}};
}

/// The lines as one text; none may hold a newline.
inline std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// A file that a training program saved. Every error names the file.
class SavedModel {
 public:
  /// Throws xgrad::FileError unless the file is a model for this task.
  SavedModel(const std::string& path, const std::string& task) : SavedModel(path) {
    if (text("task") != task) fail("task", "'" + task + "'");
  }

  /// What the model of a file is for. Throws xgrad::FileError unless a training program saved it.
  static std::string task_of(const std::string& path) { return SavedModel(path).text("task"); }

  const std::string& text(const std::string& key) const {
    const auto found = file_.metadata().find(key);
    if (found == file_.metadata().end()) fail(key, "there");
    return found->second;
  }

  std::size_t number(const std::string& key, std::size_t limit) const {
    const auto value = xgrad::detail::parsed<std::size_t>(text(key));
    if (!value || *value > limit) fail(key, "a number of at most " + std::to_string(limit));
    return *value;
  }

  /// The lines of a text that joined_lines() made.
  std::vector<std::string> lines(const std::string& key) const {
    const std::string& all = text(key);
    std::vector<std::string> result;
    for (std::size_t begin = 0; begin < all.size();) {
      const std::size_t end = std::min(all.find('\n', begin), all.size());
      result.push_back(all.substr(begin, end - begin));
      begin = end + 1;
    }
    return result;
  }

  /// Of an encoder whose weights the file has room for: a small file must not ask for much memory.
  xgrad::EncoderConfig encoder() const {
    const xgrad::EncoderConfig config{.d_model = number("d_model", 4096),
                                      .heads = number("heads", 4096),
                                      .d_ff = number("d_ff", 4096),
                                      .layers = number("layers", 64)};
    std::uint64_t held = 0;
    for (const xgrad::TensorView& tensor : file_.tensors()) held += xgrad::element_count(tensor.shape);
    const std::uint64_t of_layer = std::uint64_t{config.d_model} * (4 * config.d_model + 2 * config.d_ff);
    if (std::max<std::size_t>(config.layers, 1) * of_layer > held)
      throw xgrad::FileError(path_ + ": a layer of the metadata's \"d_model\" and \"d_ff\" has at least " +
                             std::to_string(of_layer) + " weights, and there are " +
                             std::to_string(config.layers) + " of them, got a file with " +
                             std::to_string(held) + " weights");
    return config;
  }

  /// Builds a model with build(), gives it the weights of the file and puts it into evaluation mode.
  template <class Build>
  auto model(Build&& build) const {
    try {
      auto result = build();
      result.load_state_dict(xgrad::load_safetensors<float>(path_));
      result.eval();
      return result;
    } catch (const xgrad::ValueError& error) {
      throw xgrad::FileError(path_ + ": " + error.what());
    }
  }

 private:
  explicit SavedModel(const std::string& path) : path_(path), file_(path) {}

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw xgrad::FileError(path_ + ": the metadata \"" + key + "\" must be " + what);
  }

  std::string path_;
  xgrad::SafetensorsFile file_;
};

}  // namespace apps
