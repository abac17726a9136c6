// Writes a pretrained folder whose linear layers have weights of 8-bit integers
#include <filesystem>
#include <stdexcept>
#include <string>

#include <xgrad/base/file.hpp>
#include <xgrad/pretrained.hpp>

#include "../common/command_line.hpp"
#include "../common/program.hpp"

using namespace xgrad::pretrained;
namespace fs = std::filesystem;

namespace {

LoadOptions rounded() { return {.complete = true, .precision = Precision::int8}; }

/// The files beside the model and its weights: tokenizer, prompts, and others.
void copy_texts(const fs::path& from, const fs::path& to) {
  for (const auto& entry : fs::directory_iterator(from)) {
    const fs::path name = entry.path().filename(), kind = name.extension();
    const bool is_text = kind == ".json" || kind == ".txt" || kind == ".model";
    const bool is_of_weights = name == "config.json" || name.string().ends_with(".index.json");
    if (!is_text || is_of_weights || !entry.is_regular_file()) continue;
    const xgrad::MappedFile text(entry.path().string());
    xgrad::AtomicFile copy((to / name).string());
    copy.write(text.bytes());
    copy.commit();
  }
}

template <class M>
void write(const std::string& folder, const std::string& out) {
  save_folder(M::from_folder(folder, rounded()), out);
  copy_texts(folder, out);
}

void quantize(const std::string& folder, const std::string& out) {
  const Config config = Config::from_folder(folder);
  const std::string& name = config.architecture;
  if (name.ends_with("ForSequenceClassification")) return write<SequenceClassifier<float>>(folder, out);
  if (fs::exists(folder + "/modules.json"))
    return SentenceEmbedder<float>::from_folder(folder, rounded()).save(out);
  if (name.ends_with("ForMaskedLM")) return write<MaskedLM<float>>(folder, out);
  if (name.ends_with("ForTokenClassification")) return write<TokenClassifier<float>>(folder, out);
  if (name.ends_with("ForQuestionAnswering")) return write<QuestionAnswerer<float>>(folder, out);
  if (name.ends_with("ForNextSentencePrediction")) return write<NextSentence<float>>(folder, out);
  if (name == "ElectraForPreTraining") return write<Discriminator<float>>(folder, out);
  if (name.ends_with("ForPreTraining")) return write<PreTraining<float>>(folder, out);
  write<Encoder<float>>(folder, out);
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder, out;
  apps::CommandLine app(
      "Writes a pretrained folder whose linear layers have weights of 8-bit integers, a fourth of their "
      "size, "
      "for this library, and for transformers with compressed-tensors.");
  app.add_option("DIR", folder, "The model's folder, or its name in the hub's cache")
      ->required()
      ->path(apps::PathUse::input);
  app.add_option("OUT", out, "The new folder")->required()->path(apps::PathUse::output);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("quantize", [&] {
    folder = find_model(folder);
    if (fs::exists(out) && fs::equivalent(folder, out))
      throw std::runtime_error(out + ": must be another folder than that of the model");
    quantize(folder, out);
    return 0;
  });
}
