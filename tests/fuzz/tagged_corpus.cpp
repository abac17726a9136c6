// Sentences of tagged words, and the tags of the Brown corpus
// seeds: tests/fuzz/seeds/lines
#include "../../apps/corpora/tagged_corpus.hpp"

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<std::runtime_error>([&] {
    const apps::TaggedFile sentences = apps::read_tagged_file(input.path());
    for (const apps::TaggedSentence& sentence : sentences) {
      fuzz::require(!sentence.words.empty() && sentence.words.size() == sentence.tags.size(),
                    "every word has a tag");
      for (const std::string& tag : sentence.tags)
        fuzz::accepts<std::invalid_argument>([&] { apps::universal_tag(tag); });
    }
    if (!sentences.empty()) apps::most_frequent_tag_accuracy(sentences, sentences);
  });
  return 0;
}
