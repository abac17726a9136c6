// The page "Files", section by section
#include <filesystem>
#include <iostream>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

namespace {

void arrays() {
  std::cout << "# arrays\n";
  // [arrays]
  xgrad::save_npy(xgrad::Array<double>{{1, 2}, {3, 4}}, "matrix.npy");
  std::cout << xgrad::load_npy<float>("matrix.npy") << '\n';  // converted to float

  xgrad::save_npz<float>({{"x", {1, 2}}, {"y", {3}}}, "arrays.npz");
  for (const auto& [name, array] : xgrad::load_npz<float>("arrays.npz")) {
    std::cout << name << ' ' << xgrad::to_string(array.shape()) << '\n';
  }
  // [arrays]
}

void checkpoints() {
  std::cout << "# checkpoints\n";
  // [checkpoints]
  const xgrad::Linear<float> model(4, 2);
  xgrad::Adam<float> optimizer(model.parameters());
  xgrad::BatchSampler batches(100, {.batch_size = 10});
  const xgrad::TrainingParts parts{{"model", model}, {"optimizer", optimizer}, {"batches", batches}};
  save_checkpoint(parts, "run.safetensors", 12, {{"--lr", "0.001"}});
  std::cout << "step " << load_checkpoint("run.safetensors", parts, {{"--lr", "0.001"}}) << '\n';
  // [checkpoints]
}

void errors() {
  std::cout << "# errors\n";
  // [errors]
  std::filesystem::resize_file("matrix.npy", 140);  // it has 160 bytes
  try {
    xgrad::load_npy<float>("matrix.npy");
  } catch (const xgrad::FileError& error) {
    std::cout << error.what() << '\n';
  }
  // [errors]
}

}  // namespace

int main() {
  arrays();
  checkpoints();
  errors();
  for (const char* file : {"matrix.npy", "arrays.npz", "run.safetensors"}) std::filesystem::remove(file);
}
