// Words with labels, plain or compressed by gzip, and the baselines that learn from them
// seeds: tests/fuzz/seeds/lines
#include "../../apps/corpora/word_labels.hpp"

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<std::runtime_error>([&] {
    const auto words = apps::read_word_labels(input.path());
    fuzz::accepts<std::invalid_argument>([&] {
      for (const apps::Baseline& baseline : apps::baselines(apps::split_words(words)))
        fuzz::require(baseline.accuracy >= 0 && baseline.accuracy <= 1, "an accuracy is a share");
    });
  });
  return 0;
}
