// Vocabularies: a token a line
// seeds: tests/fuzz/seeds/lines
#include <xgrad/base/error.hpp>
#include <xgrad/train/vocabulary.hpp>

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<xgrad::FileError>([&] {
    std::string lines;
    const xgrad::Vocabulary vocabulary = xgrad::Vocabulary::load(input.path(), "");
    for (const std::string& token : vocabulary.tokens()) {
      fuzz::require(vocabulary.token(vocabulary.id(token)) == token, "a token's id leads to it");
      lines += token + "\n";
    }
    fuzz::require(lines == fuzz::text_of(data, size), "the tokens are the lines of the file");
  });
  const auto words = xgrad::whitespace_tokens(fuzz::text_of(data, size));
  xgrad::Vocabulary::build({words}, {.min_freq = 2}).ids(words);
  return 0;
}
