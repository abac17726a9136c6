// Data of a report, as `report` reads it, and the metrics of a run that a report takes over
// seeds: tests/fuzz/seeds/report tests/fuzz/seeds/metrics
#include <xgrad/base/error.hpp>
#include <xgrad/report.hpp>

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  const auto merged = [](const std::string& run) {
    const auto write = [&](const std::string& path) { xgrad::write_comparison({{"run", run}}, path); };
    return fuzz::written(write, "runs.json");
  };
  fuzz::accepts<xgrad::FileError>([&] {
    const std::string once = merged(text);
    fuzz::require(merged(once) == once, "what was written is read as the same");
  });
  const fuzz::InputFile input(data, size);
  xgrad::Report report("a log");
  if (fuzz::accepts<xgrad::FileError>([&] { report.log(input.path()); })) report.json();
  return 0;
}
