// The metrics of a training run that is resumed: the file keeps the lines before the first step
// seeds: tests/fuzz/seeds/metrics
#include <sys/stat.h>

#include <xgrad/train/metrics_log.hpp>

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<std::runtime_error>([&] { xgrad::detail::MetricsLog(input.path(), 3); });
  struct stat status;
  fuzz::require(::fstat(input.number(), &status) == 0 && static_cast<std::size_t>(status.st_size) <= size,
                "the file does not grow");
  std::string kept(static_cast<std::size_t>(status.st_size), '\0');
  fuzz::require(::pread(input.number(), kept.data(), kept.size(), 0) == status.st_size, "it can be read");
  fuzz::require(fuzz::text_of(data, size).starts_with(kept), "what it keeps stays");
  return 0;
}
