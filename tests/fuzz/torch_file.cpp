// Files of torch.save: zip archives and sequences of pickles
// seeds: tests/data/torch
#include <xgrad/base/error.hpp>
#include <xgrad/files/torch_file.hpp>

#include "input.hpp"

using xgrad::FileError, xgrad::ValueError;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<FileError>([&] {
    const xgrad::TorchFile file(input.path());
    for (const xgrad::TensorView& tensor : file.tensors()) {
      fuzz::require(tensor.bytes.size() <= size + (1 << 20), "a tensor takes little more than the file");
      fuzz::accepts<ValueError>([&] { xgrad::to_array<float>(tensor); });
      fuzz::accepts<ValueError>([&] { xgrad::to_array<std::int64_t>(tensor); });
      file.release(tensor);
    }
  });
  fuzz::accepts<FileError>([&] { xgrad::load_torch<double>(input.path()); });
  return 0;
}
