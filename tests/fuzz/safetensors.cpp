// safetensors files: the header, and the tensors as arrays of all types
// seeds: tests/data/badfiles/safetensors tests/data/badfiles/valid
#include <xgrad/base/error.hpp>
#include <xgrad/files/safetensors.hpp>

#include "safetensors_mutator.hpp"

using xgrad::FileError, xgrad::ValueError;

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  const std::string header = R"({"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
  const std::string length = {static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  return fuzz::mutate_safetensors(data, size, most, seed, length + header + std::string(8, '\1'));
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<FileError>([&] {
    const xgrad::SafetensorsFile file(input.path());
    std::size_t bytes = 0;
    for (const xgrad::TensorView& tensor : file.tensors()) {
      bytes += tensor.bytes.size();
      fuzz::accepts<ValueError>([&] { xgrad::to_array<float>(tensor); });
      fuzz::accepts<ValueError>([&] { xgrad::to_array<double>(tensor); });
      fuzz::accepts<ValueError>([&] { xgrad::to_array<std::int64_t>(tensor); });
      fuzz::accepts<ValueError>([&] { xgrad::to_array<bool>(tensor); });
    }
    fuzz::require(bytes < size, "the tensors lie in the file");
  });
  fuzz::accepts<FileError>([&] { xgrad::load_safetensors<float>(input.path()); });
  return 0;
}
