// Compares a downloaded sentence encoder with the tokens and vectors that sentence-transformers gave
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <xgrad/files.hpp>
#include <xgrad/pretrained.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "deviation.hpp"
#include "json_file.hpp"

namespace {

using xgrad::Array;
using xgrad::pretrained::SentenceEmbedder;
using xgrad_tests::entry_as, xgrad_tests::list_entry;

struct Text {
  std::string text;
  std::vector<std::int64_t> ids;
};

std::vector<Text> texts_of(const std::string& path) {
  const nlohmann::json file = xgrad_tests::read_json(path);
  std::vector<Text> texts;
  for (const nlohmann::json& one : list_entry(file, "texts"))
    texts.push_back({entry_as<std::string>(one, "text"), entry_as<std::vector<std::int64_t>>(one, "ids")});
  return texts;
}

/// How many comparisons failed. A number of a vector may be off by `allowed`: the vectors have the length 1.
template <class T>
std::size_t failures(const std::string& model, const std::vector<Text>& texts, const Array<float>& want,
                     const char* type, double allowed) {
  const auto embedder = SentenceEmbedder<T>::from_folder(model);
  std::vector<std::string> all;
  std::size_t failed = 0;
  for (const Text& one : texts) {
    all.push_back(one.text);
    if (embedder.tokenizer().encode(one.text, {.max_length = embedder.max_length()}).ids == one.ids) continue;
    std::cout << "FAILED  the tokens of \"" << one.text << "\"\n";
    ++failed;
  }
  const Array<T> got = embedder(all);
  if (!xgrad::same_shape(got.shape(), want.shape()))
    throw std::runtime_error("the vectors must have the shape " + xgrad::to_string(want.shape()) + ", got " +
                             xgrad::to_string(got.shape()));
  const xgrad_tests::Deviation worst =
      xgrad_tests::worst_deviation(got, want, [&](std::size_t) { return allowed; });
  std::cout << texts.size() << " texts in " << type << ": vectors off by at most " << worst.distance << '\n';
  if (worst.excess > 1) {
    std::cout << "FAILED  the vector of \"" << all[worst.at / want.shape(1)] << "\"\n";
    ++failed;
  }
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  std::string model, data;
  apps::CommandLine app("Compares a sentence encoder with what sentence-transformers gave for texts.");
  app.add_option("MODEL", model, "The folder of the model")->required()->check(apps::existing_folder());
  app.add_option("DATA", data, "The folder with texts.json and vectors.npy, of make_vectors.py")
      ->required()
      ->check(apps::existing_folder());
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("checkpoint_parity", [&] {
    const std::vector<Text> texts = texts_of(data + "/texts.json");
    const auto vectors = xgrad::load_npy<float>(data + "/vectors.npy");
    constexpr double rounding_of_file = 6e-8, rounding_of_pass = 1e-6;
    const std::size_t failed = failures<double>(model, texts, vectors, "double", rounding_of_file) +
                               failures<float>(model, texts, vectors, "float", rounding_of_pass);
    return failed > 0 ? 1 : 0;
  });
}
