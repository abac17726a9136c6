// Words of thousands of letters, beside the definitions of their tokens.

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/tokenizers/tokenizer.hpp>

#include "../temporary_folder.hpp"

namespace long_words_test {

using nlohmann::json;
using xgrad::tokenizers::Tokenizer;

using Texts = std::vector<std::string>;

constexpr std::size_t length = 6000;

std::string word_of(std::mt19937& random) {
  std::string word(length, ' ');
  for (char& letter : word) letter = static_cast<char>('a' + random() % 3);
  return word;
}

Texts tokens_of(const json& tokenizer, const std::string& word) {
  const xgrad_tests::TemporaryFolder folder;
  folder.write("tokenizer.json", tokenizer.dump());
  const Tokenizer read = Tokenizer::from_folder(folder.path(""));
  Texts tokens;
  for (const std::int64_t id : read.encode(word, {.add_special_tokens = false}).ids)
    tokens.push_back(read.token(id));
  return tokens;
}

using Merges = std::vector<std::pair<std::string, std::string>>;

/// Joins the pair that is first in the list, and of equal ones the leftmost, until there is none.
Texts merged(Texts parts, const Merges& merges) {
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) ranks[merges[rank]] = rank;
  const auto rank_at = [&](std::size_t i) {
    const auto found = ranks.find({parts[i], parts[i + 1]});
    return found == ranks.end() ? merges.size() : found->second;
  };
  for (;;) {
    std::size_t best = merges.size(), place = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::size_t rank = rank_at(i);
      if (rank >= best) continue;
      best = rank;
      place = i;
    }
    if (best == merges.size()) return parts;
    parts[place] += parts[place + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

class LongWords : public testing::TestWithParam<unsigned> {};

TEST_P(LongWords, BytePairsAreJoinedInTheOrderOfTheList) {
  std::mt19937 random(GetParam());
  json tokenizer = json::parse(std::ifstream(XGRAD_PRETRAINED_DIR "/roberta_mlm/tokenizer.json"));
  json& vocab = tokenizer["model"]["vocab"];
  Texts known{"a", "b", "c"};
  Merges merges;
  while (merges.size() < 20) {
    const std::string left = known[random() % known.size()], right = known[random() % known.size()];
    if (left.size() + right.size() > 6 || std::ranges::count(merges, std::pair(left, right)) > 0) continue;
    merges.emplace_back(left, right);
    known.push_back(left + right);
    if (!vocab.contains(left + right)) vocab[left + right] = vocab.size();
  }
  std::shuffle(merges.begin(), merges.end(), random);  // parts may come later than what they make
  tokenizer["model"]["merges"] = json::array();
  for (const auto& [left, right] : merges) tokenizer["model"]["merges"].push_back(left + " " + right);
  const std::string word = word_of(random);
  Texts letters;
  for (const char letter : word) letters.emplace_back(1, letter);
  EXPECT_EQ(tokens_of(tokenizer, word), merged(letters, merges));
}

TEST_P(LongWords, UnigramTakesTheBestPath) {
  std::mt19937 random(GetParam());
  std::uniform_real_distribution<double> score(-6, -1);
  std::map<std::string, double> scores{{"a", -3}, {"b", -3}, {"c", -3}, {"\u2581", -3}};
  while (scores.size() < 40) {
    std::string token(2 + random() % 5, ' ');
    for (char& letter : token) letter = static_cast<char>('a' + random() % 3);
    scores[token] = score(random);
  }
  const json spaces{{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}};
  json tokenizer{
      {"added_tokens", {{{"id", 0}, {"content", "<unk>"}, {"special", true}}}},
      {"normalizer", nullptr},
      {"pre_tokenizer", spaces},
      {"post_processor", nullptr},
      {"decoder", spaces},
      {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", json::array({json::array({"<unk>", 0})})}}}};
  for (const auto& [token, own] : scores) tokenizer["model"]["vocab"].push_back(json::array({token, own}));
  const std::string word = word_of(random), text = "\u2581" + word;
  std::vector<double> best(text.size() + 1, -std::numeric_limits<double>::infinity());
  std::vector<std::string> last(text.size() + 1);
  best[0] = 0;
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    for (const auto& [token, own] : scores) {
      if (text.compare(begin, token.size(), token) != 0) continue;
      const std::size_t end = begin + token.size();
      if (best[begin] + own <= best[end]) continue;
      best[end] = best[begin] + own;
      last[end] = token;
    }
  }
  Texts path;
  for (std::size_t end = text.size(); end > 0; end -= last[end].size()) path.push_back(last[end]);
  std::reverse(path.begin(), path.end());
  EXPECT_EQ(tokens_of(tokenizer, word), path);
}

INSTANTIATE_TEST_SUITE_P(TokenizerTest, LongWords, testing::Values(1u, 2u, 3u));

}  // namespace long_words_test
