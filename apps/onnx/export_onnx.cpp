// Writes a pretrained folder, or a model that a training program saved, as an ONNX file
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#include <xgrad/base/folder.hpp>
#include <xgrad/pretrained/find_model.hpp>

#include "../common/command_line.hpp"
#include "../common/model_folder.hpp"
#include "../common/program.hpp"
#include "common/exports.hpp"

namespace fs = std::filesystem;

namespace {

/// Writes a folder with onnx/model.onnx and, unless it is the model's own, with what that has beside its
/// weights and with the modules of a sentence encoder.
void write(const apps::ExportedModel& exported, const std::string& model, const std::string& out,
           std::int64_t opset) {
  std::error_code error;
  const bool is_same = fs::equivalent(model, out, error);
  if (!is_same) apps::refuse_other_model(model, out);
  xgrad::write_folder(out, [&](const std::string& folder) {
    fs::create_directories(fs::path(folder) / "onnx");
    exported.save(folder + "/onnx/model.onnx", opset);
    if (is_same) return;
    apps::copy_model_texts(model, folder);
    apps::copy_module_folders(model, folder);
  });
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
  if (is_file) {
    exported.save(out, static_cast<std::int64_t>(opset));
  } else {
    write(exported, model, out, static_cast<std::int64_t>(opset));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program("export_onnx", [&] { return run_command(argc, argv); });
}
