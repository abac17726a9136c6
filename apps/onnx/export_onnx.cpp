// Writes a pretrained folder, or a model that a training program saved, as an ONNX file
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

#include <xgrad/pretrained/find_model.hpp>

#include "../common/command_line.hpp"
#include "../common/model_folder.hpp"
#include "../common/program.hpp"
#include "common/exports.hpp"

namespace fs = std::filesystem;

namespace {

/// Copies what a folder has beside its weights, with the modules of a sentence encoder, and returns the path
/// of the model in the other.
std::string prepare_folder(const std::string& from, const std::string& to) {
  fs::create_directories(fs::path(to) / "onnx");
  apps::copy_model_texts(from, to);
  apps::copy_module_folders(from, to);
  return (fs::path(to) / "onnx" / "model.onnx").string();
}

int run_command(int argc, char** argv) {
  std::string model, out;
  auto opset = static_cast<std::size_t>(xgrad::onnx::ExportOptions().opset);
  apps::CommandLine app(
      "Writes a model as an ONNX file for any runtime, and checks the file. Writes a pretrained folder to "
      "FILE.onnx, or to a folder for transformers.js and sentence-transformers, with onnx/model.onnx and the "
      "files of config, tokenizer and pooling. "
      "Writes a model saved by train_tagger or train_syllables to FILE.onnx.");
  app.add_option("model", model, "A pretrained folder, its name in the hub's cache, or a safetensors file")
      ->required()
      ->path(apps::PathUse::input)
      ->found_by(xgrad::pretrained::find_model);
  app.add_option("out", out, "An .onnx file, or a folder")->required()->path(apps::PathUse::addition);
  app.add_option("--opset", opset, "The version of ONNX's operators")
      ->check(apps::in_range<std::size_t>(17, 23))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  if (!model.ends_with(".safetensors")) model = xgrad::pretrained::find_model(model);
  const bool is_file = out.ends_with(".onnx");
  if (!is_file && !fs::is_directory(model)) throw std::runtime_error(out + ": the file must end with .onnx");
  const apps::ExportedModel exported = apps::exported_model(model);
  exported.save(is_file ? out : prepare_folder(model, out), static_cast<std::int64_t>(opset));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program("export_onnx", [&] { return run_command(argc, argv); });
}
