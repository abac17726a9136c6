// Texts with labels, in each format
// seeds: tests/fuzz/seeds/lines tests/fuzz/seeds/tables
#include "../../apps/corpora/labelled_texts.hpp"

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  for (const char* format : {"", "lines", "words", "csv", "tsv", "jsonl"}) {
    fuzz::accepts<std::runtime_error>([&] {
      const apps::LabelledSplit split = apps::read_labelled(input.path(), "", {.format = format});
      for (const auto* texts : {&split.train, &split.test}) {
        fuzz::require(!texts->empty(), "each part has texts");
        for (const apps::LabelledText& text : *texts)
          fuzz::require(!text.labels.empty() && text.labels.size() == text.lines.size(),
                        "every label has a line");
      }
      const double accuracy = apps::most_frequent_label_accuracy(split);
      fuzz::require(accuracy >= 0 && accuracy <= 1, "an accuracy is a share");
    });
  }
  return 0;
}
