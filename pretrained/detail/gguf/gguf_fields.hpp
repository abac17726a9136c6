#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "../../../base/detail/text/json_tree_fwd.hpp"
#include "../../../files/gguf.hpp"

// Not installed: what a GGUF file says of a model, for the files of pretrained/families/.
namespace xgrad::pretrained::detail {

/// The metadata of an architecture, as llama.cpp's convert_hf_to_gguf.py writes it.
/// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
class GgufFields {
 public:
  static constexpr std::int64_t most_size = 1 << 28;
  static constexpr std::string_view frequencies = "rope_freqs.weight";

  GgufFields(const GgufFile& file, const std::string& path, std::string architecture);

  /// What the keys of the architecture begin with, "llama.".
  const std::string& prefix() const { return prefix_; }
  /// The value of a key of the architecture, "block_count", or null.
  const GgufValue* find(const char* key) const;
  /// Throws FileError without the key.
  const GgufValue& at(const char* key) const;
  /// A number of at least 1. Throws FileError for another.
  std::int64_t size(const char* key) const;
  std::int64_t size_or(const char* key, std::int64_t otherwise) const;
  /// The number of layers. Throws FileError unless the file has so many.
  std::int64_t layers() const;
  /// A tensor of the file, or null.
  const TensorView* tensor(std::string_view name) const;
  bool has_tensor(std::string_view name) const { return tensor(name) != nullptr; }
  /// The rope_parameters of heads of this size.
  xgrad::detail::JsonTree rotary(std::size_t head) const;

 private:
  const GgufFile& file_;
  const std::string& path_;
  std::string prefix_;
};

}  // namespace xgrad::pretrained::detail
