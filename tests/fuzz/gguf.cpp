// GGUF files: metadata, and the tensors as arrays of all types
// seeds: tests/data/gguf/broken
#include <xgrad/base/error.hpp>
#include <xgrad/files/gguf.hpp>

#include "input.hpp"

using xgrad::FileError, xgrad::GgufValue, xgrad::ValueError;

namespace {

void read(const GgufValue& value) {
  fuzz::accepts<FileError>([&] { value.integer(-1000, 1000); });
  fuzz::accepts<FileError>([&] { value.number(); });
  fuzz::accepts<FileError>([&] { value.flag(); });
  fuzz::accepts<FileError>([&] { value.text(); });
  const auto is_whole = [&](const auto& elements) {
    fuzz::require(elements.size() == value.size(), "an array has all of its elements");
  };
  fuzz::accepts<FileError>([&] { is_whole(value.integers()); });
  fuzz::accepts<FileError>([&] { is_whole(value.numbers()); });
  fuzz::accepts<FileError>([&] { is_whole(value.flags()); });
  fuzz::accepts<FileError>([&] { is_whole(value.texts()); });
  fuzz::require(value.description().size() < 20000, "a description is short");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<FileError>([&] {
    const xgrad::GgufFile file(input.path());
    for (const auto& [key, value] : file.metadata()) read(value);
    std::size_t bytes = 0;
    for (const xgrad::TensorView& tensor : file.tensors()) {
      bytes += tensor.bytes.size();
      fuzz::accepts<ValueError>([&] { xgrad::to_array<float>(tensor); });
      fuzz::accepts<ValueError>([&] { xgrad::to_array<double>(tensor); });
      fuzz::accepts<ValueError>([&] { xgrad::to_array<std::int64_t>(tensor); });
      fuzz::accepts<ValueError>([&] { xgrad::to_bfloat16(tensor); });
    }
    fuzz::require(bytes < size, "the tensors lie in the file");
  });
  fuzz::accepts<FileError>([&] { xgrad::load_gguf<float>(input.path()); });
  return 0;
}
