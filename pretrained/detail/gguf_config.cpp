#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "../../base/detail/json_text.hpp"
#include "../../base/error.hpp"
#include "causal_family.hpp"
#include "gguf_model.hpp"

// Keys and tensors as llama.cpp's convert_hf_to_gguf.py writes them.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
namespace xgrad::pretrained::detail {
namespace {

using nlohmann::json;
using xgrad::detail::fail, xgrad::detail::in_quotes;

constexpr std::int64_t most_size = 1 << 28;
constexpr std::string_view frequencies = "rope_freqs.weight";

class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, const std::string& path)
      : file_(file), path_(path), family_(family_of(file)), prefix_(family_.model_type + std::string(".")) {}

  json read() const {
    refuse_parts();
    refuse_unknown_keys();
    refuse_unknown_tensors();
    json config{{"architectures", {family_.class_name + std::string(family_.language_model)}},
                {"model_type", family_.model_type},
                {"vocab_size", vocab_size()},
                {"tie_word_embeddings", !has_tensor("output.weight")}};
    if (family_.family == CausalFamily::gpt2) {
      add_gpt2(config);
    } else {
      add_llama(config);
    }
    add_tokens(config);
    return config;
  }

 private:
  static const CausalFamilyInfo& family_of(const GgufFile& file) {
    const GgufValue& name = file.at("general.architecture");
    std::string known;
    for (const CausalFamilyInfo* const one : all_causal_families()) {
      if (one->gguf_names.empty()) continue;
      if (name.text() == one->model_type) return *one;
      known += (known.empty() ? "" : ", ") + std::string(one->model_type);
    }
    name.refuse("one of the supported architectures, " + known);
  }

  const GgufValue* find(const char* key) const { return file_.find(prefix_ + key); }
  const GgufValue& at(const char* key) const { return file_.at(prefix_ + key); }
  std::int64_t size(const char* key) const { return at(key).integer(1, most_size); }

  const TensorView* tensor(std::string_view name) const {
    const auto found = std::ranges::find(file_.tensors(), name, &TensorView::name);
    return found == file_.tensors().end() ? nullptr : &*found;
  }
  bool has_tensor(std::string_view name) const { return tensor(name) != nullptr; }

  /// The number of layers, which the file must have.
  std::int64_t layers() const {
    const std::int64_t count = size("block_count");
    const auto in_file = std::ranges::count_if(file_.tensors(), [](const TensorView& one) {
      return one.name.starts_with("blk.") && one.name.ends_with(".attn_norm.weight");
    });
    if (count != in_file)
      at("block_count").refuse("the number of layers in the file, " + std::to_string(in_file));
    return count;
  }

  std::size_t vocab_size() const {
    const TensorView* const words = tensor("token_embd.weight");
    if (words == nullptr || words->shape.size() != 2)
      fail<FileError>(path_, ": must have the matrix \"token_embd.weight\"");
    return words->shape[0];
  }

  /// The first of several files may have all layers, and lack the output, which then seems to be tied.
  void refuse_parts() const {
    const GgufValue* const count = file_.find("split.count");
    if (count != nullptr && count->integer(0, most_size) > 1)
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
      const std::string_view name = key;
      if (!name.starts_with(prefix_)) continue;
      if (std::ranges::find(known, name.substr(prefix_.size())) != std::end(known)) continue;
      fail<FileError>(path_, ": the key ", in_quotes(key), " with ", value.description(),
                      " is not known, and may change what the model computes");
    }
  }

  void refuse_unknown_tensors() const {
    for (const TensorView& one : file_.tensors()) {
      const auto parts = parts_of(family_.gguf_names, one.name);
      if (one.name != frequencies && parts.front().parameter == one.name)
        fail<FileError>(path_, ": tensor ", in_quotes(one.name), " is none of a model of the architecture ",
                        family_.model_type);
    }
  }

  void add_gpt2(json& config) const {
    config["n_positions"] = size("context_length");
    config["n_embd"] = size("embedding_length");
    config["n_inner"] = size("feed_forward_length");
    config["n_layer"] = layers();
    config["n_head"] = size("attention.head_count");
    config["layer_norm_epsilon"] = at("attention.layer_norm_epsilon").number();
  }

  void add_llama(json& config) const {
    const std::int64_t hidden = size("embedding_length"), heads = size("attention.head_count");
    const auto* const kv_heads = find("attention.head_count_kv");
    const auto* const key_length = find("attention.key_length");
    const std::int64_t head = key_length != nullptr ? key_length->integer(1, most_size) : hidden / heads;
    for (const char* const key : {"attention.value_length", "rope.dimension_count"}) {
      const auto* const given = find(key);
      if (given != nullptr && given->integer(1, most_size) != head)
        given->refuse("the size of a head, " + std::to_string(head));
    }
    config["max_position_embeddings"] = size("context_length");
    config["hidden_size"] = hidden;
    config["intermediate_size"] = size("feed_forward_length");
    config["num_hidden_layers"] = layers();
    config["num_attention_heads"] = heads;
    config["num_key_value_heads"] = kv_heads != nullptr ? kv_heads->integer(1, most_size) : heads;
    config["head_dim"] = head;
    config["rms_norm_eps"] = at("attention.layer_norm_rms_epsilon").number();
    config["rope_parameters"] = rope(static_cast<std::size_t>(head));
    if (family_.family != CausalFamily::llama) return;
    config["attention_bias"] = has_tensor("blk.0.attn_q.bias");
    config["mlp_bias"] = has_tensor("blk.0.ffn_up.bias");
  }

  json rope(std::size_t head) const {
    const auto* const base = find("rope.freq_base");
    const auto* const type = find("rope.scaling.type");
    json all{{"rope_theta", base != nullptr ? base->number() : 10000.0}, {"rope_type", "default"}};
    const TensorView* const divisors = tensor(frequencies);
    if (type != nullptr && type->text() != "none") {
      if (divisors != nullptr) type->refuse("none beside the tensor " + in_quotes(std::string(frequencies)));
      if (type->text() != "linear" && type->text() != "yarn") type->refuse("none, linear or yarn");
      all["rope_type"] = type->text();
      all["factor"] = at("rope.scaling.factor").number();
      if (type->text() == "yarn")
        all["original_max_position_embeddings"] = size("rope.scaling.original_context_length");
    } else if (divisors != nullptr) {
      const auto numbers = xgrad::detail::array_from<double>(path_, *divisors);
      if (numbers.size() != head / 2)
        fail<FileError>(path_, ": tensor ", in_quotes(divisors->name), ": shape must be (", head / 2,
                        "), half of a head, got ", divisors->shape);
      // divides frequencies at every length, and changes nothing else
      const std::vector<double> factors(numbers.begin(), numbers.end());
      all["rope_type"] = "longrope";
      all["short_factor"] = all["long_factor"] = factors;
      all["factor"] = all["attention_factor"] = 1.0;
    }
    return all;
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
  const CausalFamilyInfo& family_;
  std::string prefix_;
};

}  // namespace

std::string gguf_config(const GgufFile& file, const std::string& path) {
  return ConfigReader(file, path).read().dump();
}

}  // namespace xgrad::pretrained::detail
