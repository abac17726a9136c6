#pragma once

// What the harnesses have in common.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the process, as a sanitizer does: what must hold does not.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "the input breaks what must hold: %s\n", what);
  std::abort();
}

/// A file in memory with these bytes; its path is the same for every input.
class InputFile {
 public:
  explicit InputFile(std::string_view bytes) {
    require(::ftruncate(number(), 0) == 0, "a file in memory can be emptied");
    require(::pwrite(number(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
            "a file in memory can be written");
  }
  InputFile(const std::uint8_t* data, std::size_t size) : InputFile(text_of(data, size)) {}

  static const std::string& path() {
    static const std::string path = "/proc/self/fd/" + std::to_string(number());
    return path;
  }

  static int number() {
    static const int number = ::memfd_create("input", MFD_CLOEXEC);
    return number;
  }
};

/// The bytes that write(path) puts into a file of that name.
template <class Write>
std::string written(const Write& write, const char* name = "file") {
  std::string folder = (std::filesystem::temp_directory_path() / "xgrad_fuzz_XXXXXX").string();
  require(::mkdtemp(folder.data()) != nullptr, "a folder for files can be made");
  const std::string path = folder + "/" + name;
  write(path);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove_all(folder);
  return bytes;
}

/// Calls f and lets the documented exceptions through: these, and none but these, are an answer to an input.
/// False if it threw one.
template <class Documented, class... More, class F>
bool accepts(const F& f) {
  try {
    if constexpr (sizeof...(More) > 0) return accepts<More...>(f);
    f();
    return true;
  } catch (const Documented&) {
    return false;
  }
}

}  // namespace fuzz
