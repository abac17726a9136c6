// The metrics of a training run that is resumed: lines before the first step stay, or a first line is new
// seeds: tests/fuzz/seeds/metrics
#include <sys/stat.h>

#include <xgrad/train/detail/metrics_log.hpp>

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string first =
      fuzz::written([](const std::string& path) { xgrad::detail::MetricsLog(path, 0); });
  const fuzz::InputFile input(data, size);
  const bool taken = fuzz::accepts<std::runtime_error>([&] { xgrad::detail::MetricsLog(input.path(), 3); });
  struct stat status;
  fuzz::require(::fstat(input.number(), &status) == 0, "it has a length");
  std::string kept(static_cast<std::size_t>(status.st_size), '\0');
  fuzz::require(::pread(input.number(), kept.data(), kept.size(), 0) == status.st_size, "it can be read");
  const std::string_view before = fuzz::text_of(data, size);
  fuzz::require(taken || kept == before, "what is refused stays as it was");
  fuzz::require(before.starts_with(kept) || kept == first,
                "what it keeps stays, and nothing but a first line is new");
  return 0;
}
