// Saves the parameters of a model to a safetensors file, and loads them into another one
#include <iostream>
#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "linear.safetensors";
  xgrad::manual_seed(123);
  const xgrad::Linear<float> saved(4, 2), loaded(4, 2);
  save_safetensors(saved.state_dict(), path, {{"made by", "save_and_load"}});
  loaded.load_state_dict(xgrad::load_safetensors<float>(path));
  std::cout << loaded.weight() << '\n';
}
