// The model and the tokenizer in a GGUF file
// seeds: tests/data/gguf
#include <xgrad/base/error.hpp>
#include <xgrad/pretrained.hpp>

#include "input.hpp"

using xgrad::FileError;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<FileError>([&] {
    const auto tokenizer = xgrad::pretrained::load_tokenizer(input.path());
    const auto ids = tokenizer.encode("It's 12 o'clock.\n").ids;
    tokenizer.decode(ids);
  });
  fuzz::accepts<FileError>([&] {
    const auto model =
        xgrad::pretrained::CausalLM<float>::from_folder(input.path(), {.note = [](const std::string&) {}});
    fuzz::require(model.config().vocab_size > 0, "a model has tokens");
  });
  return 0;
}
