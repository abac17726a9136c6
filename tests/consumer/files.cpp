#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include <iostream>

int main() {
  const xgrad::Linear<float> saved(4, 2), loaded(4, 2);
  save_safetensors(saved.state_dict(), "linear.safetensors");
  loaded.load_state_dict(xgrad::load_safetensors<float>("linear.safetensors"));
  save_npz(saved.state_dict(), "linear.npz");
  const bool same = xgrad::load_npz<float>("linear.npz") == loaded.state_dict();
  std::cout << "a model " << (same ? "comes" : "does not come") << " back from its files\n";
  return same ? 0 : 1;
}
