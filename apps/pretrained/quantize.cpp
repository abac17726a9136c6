// Writes a pretrained folder whose linear layers have weights of 8-bit integers
#include <string>
#include <type_traits>

#include <xgrad/base/folder.hpp>
#include <xgrad/pretrained.hpp>

#include "../common/command_line.hpp"
#include "../common/model_class.hpp"
#include "../common/model_folder.hpp"
#include "../common/program.hpp"

using namespace xgrad::pretrained;

namespace {

LoadOptions rounded() { return {.complete = true, .precision = Precision::int8}; }

template <class M>
void write(const std::string& folder, const std::string& out) {
  if constexpr (std::is_same_v<M, SentenceEmbedder<float>>) {
    M::from_folder(folder, rounded()).save(out);
  } else {
    const M model = M::from_folder(folder, rounded());
    check_save(out);
    apps::refuse_other_model(folder, out, {"config.json", "model.safetensors"});
    xgrad::write_folder(out, [&](const std::string& other) {
      save_folder(model, other);
      apps::copy_model_texts(folder, other, {"config.json"});
    });
  }
}

int run_command(int argc, char** argv) {
  std::string folder, out;
  apps::CommandLine app(
      "Writes a pretrained folder whose linear layers have weights of 8-bit integers, a fourth of their "
      "size, "
      "for this library, and for transformers with compressed-tensors.");
  app.add_option("DIR", folder, "The model's folder, or its name in the hub's cache")
      ->required()
      ->path(apps::PathUse::input)
      ->found_by(find_model);
  app.add_option("OUT", out, "The new folder")->required()->path(apps::PathUse::output);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  folder = find_model(folder);
  apps::with_model_class(folder, [&]<class M>() { write<M>(folder, out); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program("quantize", [&] { return run_command(argc, argv); });
}
