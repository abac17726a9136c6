// npz files: zip archives of npy files
// seeds: tests/data/npy
#include <xgrad/base/error.hpp>
#include <xgrad/files/npy.hpp>

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<xgrad::FileError>([&] {
    const xgrad::NpzFile file(input.path());
    std::size_t bytes = 0;
    for (const xgrad::TensorView& tensor : file.tensors()) bytes += tensor.bytes.size();
    fuzz::require(bytes / 1032 <= size, "no more is unpacked than deflate can pack");
  });
  fuzz::accepts<xgrad::FileError>([&] { xgrad::load_npz<double>(input.path()); });
  return 0;
}
