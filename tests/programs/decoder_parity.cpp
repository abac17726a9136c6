// Compares decoders, tokenizers, what they write and GGUF files with what Hugging Face and PyTorch gave
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <string>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "decoder_goldens.hpp"
#include "gguf_goldens.hpp"
#include "gguf_model_goldens.hpp"
#include "processor_goldens.hpp"
#include "text_goldens.hpp"
#include "tokenizer_goldens.hpp"

namespace {

using xgrad_tests::DecoderFolder, xgrad_tests::Tally;
namespace fs = std::filesystem;

/// Files and folders of a name whose comparison is made elsewhere, or still to come, and why.
struct Skipped {
  const char *name, *reason;
};
constexpr Skipped skipped[]{
    {"adapter_config.json", "adapters are still to come"},
    {"beams.json", "beams are still to come"},
    {"chat", "chat templates are still to come"},
    {"real.json", "its vocabularies, of npm packages, are compared where they are fetched"},
    {"smollm2.json", "a file of 98 MB is compared where it is fetched"}};

void skip(const fs::path& path, const std::string& reason, Tally& all) {
  ++all.skipped;
  std::cout << "skipped " << path.string() << ", as " << reason << '\n';
}

/// The model folder of a case.json.
Tally compare_model(const fs::path& file) {
  const std::string folder = file.parent_path().string();
  Tally tally;
  if (fs::exists(folder + "/adapter_config.json")) return tally;  // which is skipped by that name
  if (const std::optional<std::string> reason = DecoderFolder::reason_to_skip(folder)) {
    skip(folder, *reason, tally);
    return tally;
  }
  try {
    return DecoderFolder(folder).run();
  } catch (const std::exception& error) {
    tally.count(false);
    std::cout << "FAILED  " << folder << ": " << error.what() << '\n';
    return tally;
  }
}

Tally tally_of(const std::vector<xgrad_tests::GoldenResult>& results) {
  Tally tally;
  for (const auto& [name, problem] : results) {
    tally.count(problem.empty());
    if (!problem.empty()) std::cout << "FAILED  " << name << ": " << problem << '\n';
  }
  return tally;
}

Tally compare_processors(const fs::path& file) {
  return tally_of(xgrad_tests::processor_goldens(file.string()));
}

Tally compare_gguf_models(const fs::path& file) {
  return tally_of(xgrad_tests::gguf_model_goldens(file.string()));
}

Tally compare_texts(const fs::path& file) {
  return tally_of(xgrad_tests::TextGoldens(file.parent_path().string()).results());
}

Tally compare_tokenizers(const std::string& root) {
  Tally tally;
  xgrad_tests::compare_tokenizer_goldens(root, [&](const std::string& name, bool right) {
    tally.count(right);
    if (!right) std::cout << "FAILED  " << name << '\n';
  });
  return tally;
}

/// What is compared, by the name of its file.
struct Comparison {
  const char* name;
  Tally (*compare)(const fs::path& file);
};
constexpr Comparison comparisons[]{{"case.json", compare_model},
                                   {"cases.json", compare_gguf_models},
                                   {"processors.json", compare_processors},
                                   {"text_cases.json", compare_texts}};

}  // namespace

int main(int argc, char** argv) {
  std::string root;
  apps::CommandLine app(
      "Compares folders of pretrained decoders, what they write, tokenizers and GGUF files with what Hugging "
      "Face, sentencepiece and PyTorch gave.");
  app.add_option(
         "DIR", root,
         "directory with model folders (case.json, text_cases.json), tokenizers, GGUF files and blocks "
         "(cases.json), what is done to characters and texts (unicode.json, regex.json, invalid.json) and "
         "processors.json, at any depth")
      ->required()
      ->check(apps::existing_folder());
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  std::cout.precision(3);
  return apps::run_program("decoder_parity", [&] {
    std::set<fs::path> files;
    for (const auto& file : fs::recursive_directory_iterator(root)) files.insert(file.path());
    Tally all = tally_of(xgrad_tests::gguf_goldens(root));
    all += compare_tokenizers(root);
    for (const fs::path& file : files) {
      for (const auto& [name, compare] : comparisons)
        if (file.filename() == name) all += compare(file);
      for (const auto& [name, reason] : skipped)
        if (file.filename() == name) skip(file, reason, all);
    }
    if (all.passed + all.failed + all.skipped == 0)
      throw std::runtime_error(root + ": must hold folders with case.json");
    std::cout << all.passed << " passed, " << all.failed << " failed, " << all.skipped << " skipped\n";
    return all.failed > 0 ? 1 : 0;
  });
}
