#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/detail/text/json_tree.hpp"
#include "../../../base/error.hpp"
#include "../family.hpp"
#include "gguf_fields.hpp"
#include "gguf_model.hpp"

namespace xgrad::pretrained::detail {
namespace {

using json = xgrad::detail::JsonTree;
using xgrad::detail::fail, xgrad::detail::in_quotes;

class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, const std::string& path)
      : file_(file), path_(path), family_(family_of(file)), fields_(file, path, family_.model_type) {}

  json read() const {
    refuse_parts();
    refuse_unknown_keys();
    refuse_unknown_tensors();
    json config{{"architectures", {family_.class_name + std::string(family_.language_model)}},
                {"model_type", family_.model_type},
                {"vocab_size", vocab_size()},
                {"tie_word_embeddings", !fields_.has_tensor("output.weight")}};
    family_.gguf_fields(fields_, config);
    add_tokens(config);
    return config;
  }

 private:
  static const FamilyInfo& family_of(const GgufFile& file) {
    const GgufValue& name = file.at("general.architecture");
    std::string known;
    for (const FamilyInfo* const one : all_families()) {
      if (one->gguf_names.empty()) continue;
      if (name.text() == one->model_type) return *one;
      known += (known.empty() ? "" : ", ") + std::string(one->model_type);
    }
    name.refuse("one of the supported architectures, " + known);
  }

  std::size_t vocab_size() const {
    const TensorView* const words = fields_.tensor("token_embd.weight");
    if (words == nullptr || words->shape.size() != 2)
      fail<FileError>(path_, ": must have the matrix \"token_embd.weight\"");
    return words->shape[0];
  }

  /// The first of several files may have all layers, and lack the output, which then seems to be tied.
  void refuse_parts() const {
    const GgufValue* const count = file_.find("split.count");
    if (count != nullptr && count->integer(0, GgufFields::most_size) > 1)
      count->refuse("1, as models in several files are not read (llama-gguf-split --merge joins them)");
  }

  void refuse_unknown_keys() const {
    static constexpr std::string_view known[]{"attention.head_count",
                                              "attention.head_count_kv",
                                              "attention.key_length",
                                              "attention.layer_norm_epsilon",
                                              "attention.layer_norm_rms_epsilon",
                                              "attention.value_length",
                                              "block_count",
                                              "context_length",
                                              "embedding_length",
                                              "feed_forward_length",
                                              "rope.dimension_count",
                                              "rope.freq_base",
                                              "rope.scaling.factor",
                                              "rope.scaling.finetuned",  // changes nothing
                                              "rope.scaling.original_context_length",
                                              "rope.scaling.type",
                                              "tensor_data_layout",
                                              "vocab_size"};
    for (const auto& [key, value] : file_.metadata()) {
      const std::string_view name = key, prefix = fields_.prefix();
      if (!name.starts_with(prefix)) continue;
      if (std::ranges::find(known, name.substr(prefix.size())) != std::end(known)) continue;
      fail<FileError>(path_, ": the key ", in_quotes(key), " with ", value.description(),
                      " is not known, and may change what the model computes");
    }
  }

  void refuse_unknown_tensors() const {
    for (const TensorView& one : file_.tensors()) {
      const auto parts = parts_of(family_.gguf_names, one.name);
      if (one.name != GgufFields::frequencies && parts.front().parameter == one.name)
        fail<FileError>(path_, ": tensor ", in_quotes(one.name), " is none of a model of the architecture ",
                        family_.model_type);
    }
  }

  void add_tokens(json& config) const {
    const auto id = [&](const char* key) -> json {
      const GgufValue* const value = file_.find(std::string("tokenizer.ggml.") + key);
      if (value == nullptr) return nullptr;
      return value->integer(0, static_cast<std::int64_t>(config["vocab_size"]) - 1);
    };
    config["bos_token_id"] = id("bos_token_id");
    config["pad_token_id"] = id("padding_token_id");
    json ends = json::array();
    for (const char* const key : {"eos_token_id", "eot_token_id"}) {
      const json end = id(key);
      if (!end.is_null() && std::ranges::find(ends, end) == ends.end()) ends.push_back(end);
    }
    config["eos_token_id"] = ends;
  }

  const GgufFile& file_;
  const std::string& path_;
  const FamilyInfo& family_;
  GgufFields fields_;
};

}  // namespace

std::string gguf_config(const GgufFile& file, const std::string& path) {
  json config = xgrad::detail::read_unchanged(file, [&] { return ConfigReader(file, path).read(); });
  return config.dump();
}

}  // namespace xgrad::pretrained::detail
