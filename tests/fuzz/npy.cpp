// npy files: the header, and the array as all types
// seeds: tests/data/badfiles/npy tests/data/badfiles/valid tests/data/npy
#include <xgrad/base/error.hpp>
#include <xgrad/files/npy.hpp>

#include "input.hpp"

using xgrad::FileError;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<FileError>([&] {
    const xgrad::NpyFile file(input.path());
    fuzz::require(file.tensor().bytes.size() < size, "the array lies in the file");
  });
  fuzz::accepts<FileError>([&] { xgrad::load_npy<float>(input.path()); });
  fuzz::accepts<FileError>([&] { xgrad::load_npy<double>(input.path()); });
  fuzz::accepts<FileError>([&] { xgrad::load_npy<std::int64_t>(input.path()); });
  fuzz::accepts<FileError>([&] { xgrad::load_npy<bool>(input.path()); });
  return 0;
}
