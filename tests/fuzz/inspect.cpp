// What the program inspect prints of a safetensors file, and of a GGUF file
// seeds: tests/data/badfiles/safetensors tests/data/badfiles/valid
// seeds: tests/data/gguf/broken
#define main inspect_main
#include "../../apps/inspect.cpp"
#undef main

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<xgrad::FileError>([&] { inspect(input.path()); });
  fuzz::accepts<xgrad::FileError>([&] { inspect_gguf(input.path()); });
  return 0;
}
