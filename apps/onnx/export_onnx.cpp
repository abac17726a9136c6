// Writes a pretrained folder, or a model that a training program saved, as an ONNX file
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

#include <xgrad/base/file.hpp>
#include <xgrad/pretrained/find_model.hpp>

#include "../common/command_line.hpp"
#include "../common/program.hpp"
#include "common/exports.hpp"

namespace fs = std::filesystem;

namespace {

/// Copies the config and the tokenizer of a folder, unless both folders are one, and returns the path of the
/// model in the second.
std::string prepare_folder(const fs::path& from, const fs::path& to) {
  fs::create_directories(to / "onnx");
  for (const auto& entry : fs::directory_iterator(from)) {
    const bool is_text = entry.path().extension() == ".json" || entry.path().extension() == ".txt";
    if (!is_text || !entry.is_regular_file() || fs::equivalent(from, to)) continue;
    const xgrad::MappedFile text(entry.path().string());
    xgrad::AtomicFile copy((to / entry.path().filename()).string());
    copy.write(text.bytes());
    copy.commit();
  }
  return (to / "onnx" / "model.onnx").string();
}

}  // namespace

int main(int argc, char** argv) {
  std::string model, out;
  apps::CommandLine app(
      "Writes a model as an ONNX file for any runtime, and checks the file. Writes a pretrained folder to "
      "FILE.onnx, or to a folder for transformers.js, with onnx/model.onnx and the files of the tokenizer. "
      "Writes a model saved by train_tagger or train_syllables to FILE.onnx.");
  app.add_option("model", model, "A pretrained folder, its name in the hub's cache, or a safetensors file")
      ->required()
      ->path(apps::PathUse::input);
  app.add_option("out", out, "An .onnx file, or a folder")->required()->path(apps::PathUse::output);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("export_onnx", [&] {
    if (!model.ends_with(".safetensors")) model = xgrad::pretrained::find_model(model);
    const bool is_file = out.ends_with(".onnx");
    if (!is_file && !fs::is_directory(model))
      throw std::runtime_error(out + ": the file must end with .onnx");
    const apps::ExportedModel exported = apps::exported_model(model);
    exported.save(is_file ? out : prepare_folder(model, out));
    return 0;
  });
}
