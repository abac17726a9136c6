#include "words.hpp"

#include <string_view>

#include <xgrad/train/vocabulary.hpp>

#include "../../common/columns.hpp"

namespace apps {

std::vector<std::size_t> word_begins(const std::string& text) {
  std::vector<std::size_t> begins;
  std::size_t end = 0, characters = 0;  // of the word before
  for (const std::string& word : xgrad::whitespace_tokens(text)) {
    const std::size_t begin = text.find(word, end);
    begins.push_back(characters + width_of(std::string_view(text).substr(end, begin - end)));
    end = begin + word.size();
    characters = begins.back() + width_of(word);
  }
  return begins;
}

std::vector<std::optional<std::size_t>> first_tokens(const xgrad::tokenizers::Encoding& encoding,
                                                     const std::vector<std::size_t>& begins) {
  std::vector<std::optional<std::size_t>> tokens(begins.size());
  std::size_t word = 0;
  for (std::size_t i = 0; i < encoding.size() && !begins.empty(); ++i) {
    if (encoding.special[i] != 0) continue;
    // Where a token has the blank before it, it begins in front of the word.
    while (word + 1 < begins.size() && begins[word + 1] < encoding.offsets[i].second) ++word;
    if (!tokens[word]) tokens[word] = i;
  }
  return tokens;
}

}  // namespace apps
