#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "input.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace fuzz {

/// Changes a safetensors file, every second time its header alone, whose length is then set right: bytes that
/// know nothing of the length would seldom come further than to its check. `valid` takes the place of what is
/// no such file.
inline std::size_t mutate_safetensors(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed,
                                      const std::string& valid) {
  constexpr std::size_t before = 8;
  if (size < before && valid.size() <= most) {
    std::copy(valid.begin(), valid.end(), data);
    return valid.size();
  }
  std::uint64_t length = 0;
  if (size >= before) std::memcpy(&length, data, before);
  if (seed % 2 == 0 || size < before || length > size - before) return LLVMFuzzerMutate(data, size, most);
  std::string header(data + before, data + before + length);
  const std::string rest(data + before + length, data + size);
  const std::size_t room = most - before - rest.size();
  header.resize(std::max<std::size_t>(room, 1));
  header.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(header.data()), length, room));
  length = header.size();
  std::memcpy(data, &length, before);
  std::copy(header.begin(), header.end(), data + before);
  std::copy(rest.begin(), rest.end(), data + before + header.size());
  return before + header.size() + rest.size();
}

}  // namespace fuzz
