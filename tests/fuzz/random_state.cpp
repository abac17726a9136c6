// States of random generators as text
#include <xgrad/base/error.hpp>
#include <xgrad/base/random.hpp>

#include "input.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

/// A valid state, before the text is changed, takes the place of what is too short for one.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  xgrad::Generator generator(seed);
  if (seed % 2 == 0) generator.normal();
  const std::string valid = generator.get_state();
  if (size < 1000 && valid.size() <= most) size = valid.copy(reinterpret_cast<char*>(data), valid.size());
  return LLVMFuzzerMutate(data, size, most);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  xgrad::Generator generator(1);
  const std::string before = generator.get_state();
  const bool taken = fuzz::accepts<xgrad::ValueError>([&] { generator.set_state(text); });
  fuzz::require(generator.get_state() == (taken ? text : before), "the state is the text, or what it was");
  if (taken) generator.normal();
  return 0;
}
