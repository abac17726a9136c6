#pragma once

// Compares models and tokenizers in GGUF files with what transformers gave for their dequantised weights.

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include <xgrad/files.hpp>
#include <xgrad/generation.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "deviation.hpp"
#include "golden_result.hpp"
#include "json_file.hpp"

namespace xgrad_tests {

/// Collects what was compared of one file.
class GgufModelGoldens {
 public:
  explicit GgufModelGoldens(std::string path)
      : path_(std::move(path)), tokenizer_(xgrad::pretrained::load_tokenizer(path_)) {}

  const std::vector<GoldenResult>& results() const { return results_; }

  /// Texts with their ids, and what becomes of these.
  void compare_text(const std::string& text, const std::vector<std::int64_t>& ids,
                    const std::string& decoded) {
    const std::vector<std::int64_t> got = tokenizer_.encode(text).ids;
    add("ids of \"" + text + "\"", got == ids, nlohmann::json(got).dump());
    add("text of \"" + text + "\"", tokenizer_.decode(ids, false) == decoded, tokenizer_.decode(ids, false));
  }

  template <class T>
  void compare_tokens(const xgrad::pretrained::CausalLM<T>& model, const std::vector<std::int64_t>& prompt,
                      const std::vector<std::int64_t>& expected, std::size_t most) {
    const auto got = xgrad::generation::generate(model, {prompt}, {.max_new_tokens = most}).front();
    add(type<T>() + ": tokens", got == expected, nlohmann::json(got).dump());
  }

  /// Logits, which may be off by `allowed`.
  template <class T>
  void compare_logits(const xgrad::Array<T>& got, const xgrad::Array<double>& expected, double allowed) {
    const Deviation worst = worst_deviation(got, expected, [&](std::size_t) { return allowed; });
    add(type<T>() + ": logits", got.size() == expected.size() && worst.excess <= 1,
        std::to_string(worst.distance) + " off at " + std::to_string(worst.at));
  }

  void add(const std::string& what, bool right, const std::string& got) {
    results_.push_back({path_ + ": " + what, right ? "" : "got " + got});
  }

  template <class T>
  static std::string type() {
    return std::is_same_v<T, float> ? "float" : "double";
  }

 private:
  std::string path_;
  xgrad::tokenizers::Tokenizer tokenizer_;
  std::vector<GoldenResult> results_;
};

/// Logits (length, vocab_size) of the ids of a text.
template <class T>
xgrad::Array<T> logits_of(const xgrad::pretrained::CausalLM<T>& model, const std::vector<std::int64_t>& ids) {
  const xgrad::NoGrad no_grad;
  return model({xgrad::pad_sequence({{ids.begin(), ids.end()}})}).value();
}

namespace gguf_model_goldens_detail {

template <class T>
void compare_model(GgufModelGoldens& goldens, const std::string& path, const nlohmann::json& about,
                   const xgrad::SafetensorsFile& expected, double rounding) {
  const auto model = xgrad::pretrained::CausalLM<T>::from_folder(path);
  const auto prompts = entry_as<std::vector<std::vector<std::int64_t>>>(about, "ids");
  const auto tokens = entry_as<std::vector<std::vector<std::int64_t>>>(about, "greedy");
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::string name = "logits." + std::to_string(i);
    const auto tensor = std::ranges::find(expected.tensors(), name, &xgrad::TensorView::name);
    if (tensor == expected.tensors().end()) throw BadEntry(name + " is missing");
    const auto logits = xgrad::to_array<double>(*tensor);
    const double largest = xt::amax(xt::abs(logits))();
    goldens.compare_logits(logits_of(model, prompts[i]), logits, rounding * largest);
    goldens.compare_tokens(model, prompts[i], tokens.at(i), tokens.at(i).size());
  }
}

inline void compare_case(const std::string& path, const nlohmann::json& about,
                         std::vector<GoldenResult>& results) {
  try {
    GgufModelGoldens goldens(path);
    const nlohmann::json& tokenizer = entry(about, "tokenizer");
    const auto texts = entry_as<std::vector<std::string>>(tokenizer, "strings");
    const auto decoded = entry_as<std::vector<std::string>>(tokenizer, "decoded");
    const auto ids = entry_as<std::vector<std::vector<std::int64_t>>>(tokenizer, "ids");
    for (std::size_t i = 0; i < texts.size(); ++i) goldens.compare_text(texts[i], ids.at(i), decoded.at(i));
    const xgrad::SafetensorsFile expected(
        std::filesystem::path(path).replace_extension("expected.safetensors").string());
    compare_model<double>(goldens, path, about, expected, 1e-11);
    compare_model<float>(goldens, path, about, expected, 1e-5);
    results.insert(results.end(), goldens.results().begin(), goldens.results().end());
  } catch (const std::exception& error) {
    results.push_back({path, error.what()});
  }
}

}  // namespace gguf_model_goldens_detail

/// The models that a cases.json beside them describes; nothing for a cases.json of other goldens.
inline std::vector<GoldenResult> gguf_model_goldens(const std::string& cases) {
  std::vector<GoldenResult> results;
  const nlohmann::json all = read_json(cases);
  for (const auto& [name, about] : all.items()) {
    if (!about.is_object() || !about.contains("greedy")) continue;
    const std::string path = (std::filesystem::path(cases).parent_path() / (name + ".gguf")).string();
    gguf_model_goldens_detail::compare_case(path, about, results);
  }
  return results;
}

}  // namespace xgrad_tests
