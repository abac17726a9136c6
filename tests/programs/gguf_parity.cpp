// Compares a downloaded GGUF file with the tokens and logits that transformers gave for its weights
#include <cmath>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "gguf_model_goldens.hpp"

namespace {

using nlohmann::json;
using xgrad::Array;
using xgrad_tests::entry, xgrad_tests::entry_as, xgrad_tests::GgufModelGoldens, xgrad_tests::list_entry;
using Ids = std::vector<std::int64_t>;

/// Sums of the values and of their magnitudes.
void compare_sums(GgufModelGoldens& goldens, const xgrad::GgufFile& file, const json& all) {
  for (const auto& [name, sums] : all.items()) {
    double sum = 0, magnitudes = 0;
    for (const xgrad::TensorView& tensor : file.tensors()) {
      if (tensor.name != name) continue;
      for (const float x : xgrad::to_array<float>(tensor)) sum += x, magnitudes += std::abs(x);
    }
    const auto expected = xgrad_tests::as<std::vector<double>>(sums, name);
    const double off = std::max(std::abs(sum - expected.at(0)), std::abs(magnitudes - expected.at(1)));
    goldens.add("sums of " + name, off <= 1e-9 * expected.at(1), std::to_string(sum));
  }
}

template <class T>
void compare_model(GgufModelGoldens& goldens, const std::string& path, const json& prompts, double allowed) {
  const auto model = xgrad::pretrained::CausalLM<T>::from_folder(path);
  for (const json& prompt : prompts) {
    const Ids ids = entry_as<Ids>(prompt, "ids"), best = entry_as<Ids>(prompt, "top_10");
    const auto numbers = entry_as<std::vector<double>>(prompt, "top_10_logits");
    const Array<T> all = xgrad_tests::logits_of(model, ids);
    const std::size_t vocabulary = model.config().vocab_size;
    const T* const last = all.data() + (ids.size() - 1) * vocabulary;
    std::size_t above = 0;
    Array<T> got = Array<T>::from_shape({best.size()});
    Array<double> expected = Array<double>::from_shape({best.size()});
    for (std::size_t i = 0; i < best.size(); ++i) {
      got.data()[i] = last[best[i]];
      expected.data()[i] = numbers.at(i);
    }
    for (std::size_t i = 0; i < vocabulary; ++i) above += last[i] > last[best.back()] ? 1 : 0;
    goldens.compare_logits(got, expected, allowed);
    goldens.add(GgufModelGoldens::type<T>() + ": the ten best", above == best.size() - 1,
                std::to_string(above) + " above the last of them");
    const Ids tokens = entry_as<Ids>(prompt, "greedy");
    goldens.compare_tokens(model, ids, tokens, tokens.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string path, data;
  apps::CommandLine app("Compares a GGUF file with what transformers gave for its dequantised weights.");
  app.add_option("FILE", path, "The GGUF file")->required()->check(apps::existing_file());
  app.add_option("DATA", data, "JSON with tensors, texts and prompts")
      ->required()
      ->check(apps::existing_file());
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("gguf_parity", [&] {
    const json expected = xgrad_tests::read_json(data);
    GgufModelGoldens goldens(path);
    const xgrad::GgufFile file(path);
    const auto keys = entry_as<std::size_t>(entry(expected, "metadata"), "GGUF.kv_count");
    goldens.add("keys", file.metadata().size() == keys, std::to_string(file.metadata().size()));
    const auto tensors = entry_as<std::size_t>(expected, "tensors");
    goldens.add("tensors", file.tensors().size() == tensors, std::to_string(file.tensors().size()));
    compare_sums(goldens, file, entry(expected, "sums_of_values_and_magnitudes"));
    for (const json& one : list_entry(expected, "tokenizer"))
      goldens.compare_text(entry_as<std::string>(one, "text"), entry_as<Ids>(one, "ids"),
                           entry_as<std::string>(one, "decoded"));
    const json& prompts = list_entry(expected, "prompts");
    for (const json& prompt : prompts)
      goldens.compare_text(entry_as<std::string>(prompt, "text"), entry_as<Ids>(prompt, "ids"),
                           entry_as<std::string>(prompt, "text"));
    compare_model<float>(goldens, path, prompts, 3e-4);
    std::size_t failed = 0;
    for (const auto& [name, problem] : goldens.results()) {
      if (problem.empty()) continue;
      ++failed;
      std::cout << "FAILED  " << name << ": " << problem << '\n';
    }
    std::cout << goldens.results().size() - failed << " passed, " << failed << " failed\n";
    return failed > 0 ? 1 : 0;
  });
}
