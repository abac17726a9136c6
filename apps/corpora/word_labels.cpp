#include "word_labels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <xgrad/base/detail/text/parse.hpp>
#include <xgrad/train/vocabulary.hpp>

#include "line_reader.hpp"
#include "utf8.hpp"

namespace apps {
namespace {

/// The accuracy on the words of predict(word), which gives a label.
template <class Predict>
double accuracy(const std::vector<LabelledWord>& words, Predict predict) {
  const auto right =
      std::ranges::count_if(words, [&](const auto& entry) { return predict(entry.word) == entry.label; });
  return static_cast<double>(right) / static_cast<double>(words.size());
}

}  // namespace

std::string syllables_file() { return XGRAD_APPS_DATA_DIR "/cmudict_syllables.tsv.gz"; }

std::vector<std::string> classes_of(const std::vector<LabelledWord>& words) {
  std::set<std::string> distinct;
  for (const auto& entry : words) distinct.insert(entry.label);
  std::vector<std::string> labels(distinct.begin(), distinct.end());

  const auto number = [](const std::string& label) { return xgrad::detail::parsed<long long>(label); };
  if (std::ranges::all_of(labels, [&](const std::string& label) { return number(label).has_value(); }))
    std::ranges::stable_sort(labels, {}, number);
  return labels;
}

std::vector<LabelledWord> read_word_labels(const std::string& path) {
  LineReader reader(path);
  std::vector<LabelledWord> words;
  struct Earlier {
    std::string label;
    std::size_t line;
  };
  std::unordered_map<std::string, Earlier> earlier;

  for (std::string line; reader.next(line);) {
    reader.check_text(line);
    auto parts = xgrad::whitespace_tokens(line);
    if (parts.empty()) continue;
    if (parts.size() != 2) reader.fail("a line must be a word and a label", line);
    const LabelledWord entry{std::move(parts[0]), std::move(parts[1])};
    const auto [found, is_new] = earlier.try_emplace(entry.word, Earlier{entry.label, reader.number()});
    if (is_new) {
      words.push_back(entry);
    } else if (const auto& [label, number] = found->second; label != entry.label) {
      reader.fail("a word must keep its label " + printable(label) + " of line " + std::to_string(number),
                  line);
    }
  }
  if (words.empty()) throw std::runtime_error(path + ": must hold words and labels, got no line with any");
  const std::size_t classes = classes_of(words).size();
  if (classes < 2 || classes > max_classes) {
    throw std::runtime_error(path + ": must hold 2 to " + std::to_string(max_classes) +
                             " different labels, got " + std::to_string(classes));
  }
  return words;
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

bool is_held_out(std::string_view word) { return fnv1a(xgrad::to_ascii_lowercase(word)) % 10 == 0; }

WordSplit split_words(const std::vector<LabelledWord>& words) {
  WordSplit split;
  for (const auto& entry : words) (is_held_out(entry.word) ? split.held_out : split.train).push_back(entry);
  if (split.train.empty() || split.held_out.empty()) {
    throw std::invalid_argument("split_words: words must be enough to train on some and hold out some, got " +
                                std::to_string(split.train.size()) + " to train on and " +
                                std::to_string(split.held_out.size()) + " held out");
  }
  return split;
}

std::size_t NgramBayes::Hash::operator()(const Ngram& ngram) const {
  std::uint64_t hash = 0;
  for (const char32_t point : ngram) hash = (hash ^ point) * 0x9E3779B97F4A7C15;
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

template <class Visit>
void NgramBayes::each_ngram(const std::string& word, Visit visit) {
  // Control characters mark the boundaries: no word holds them.
  const std::u32string marked = U'\x02' + characters(word) + U'\x03';
  for (std::size_t begin = 0; begin < marked.size(); ++begin) {
    Ngram ngram{};
    for (std::size_t i = 0; i < std::min(max_order, marked.size() - begin); ++i) {
      ngram[i] = marked[begin + i];
      visit(ngram);
    }
  }
}

NgramBayes::NgramBayes(const std::vector<LabelledWord>& train)
    : classes_(classes_of(train)), words_(classes_.size()), ngrams_(classes_.size()) {
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t c = 0; c < classes_.size(); ++c) index.emplace(classes_[c], c);
  for (const auto& [word, label] : train) count(word, index.at(label));
  for (const double words : words_) {
    log_prior_.push_back(std::log(words / static_cast<double>(train.size())));
  }
  for (const double ngrams : ngrams_) {
    log_total_.push_back(std::log(ngrams + static_cast<double>(counts_.size())));
  }
}

void NgramBayes::count(const std::string& word, std::size_t c) {
  ++words_[c];
  each_ngram(word, [&](const Ngram& ngram) {
    auto& of_ngram = counts_[ngram];
    const auto found = std::ranges::find(of_ngram, c, &std::pair<std::size_t, double>::first);
    if (found == of_ngram.end()) {
      of_ngram.emplace_back(c, 1);
    } else {
      ++found->second;
    }
    ++ngrams_[c];
  });
}

std::vector<double> NgramBayes::scores(const std::string& word) const {
  std::vector<double> score = log_prior_;
  double known = 0;
  each_ngram(word, [&](const Ngram& ngram) {
    const auto found = counts_.find(ngram);
    if (found == counts_.end()) return;
    ++known;
    for (const auto& [c, n] : found->second) score[c] += std::log1p(n);
  });
  for (std::size_t c = 0; c < score.size(); ++c) score[c] -= known * log_total_[c];
  return score;
}

const std::string& NgramBayes::predict(const std::string& word) const {
  const auto score = scores(word);
  return classes_[static_cast<std::size_t>(std::ranges::max_element(score) - score.begin())];
}

std::string majority_label(const std::vector<LabelledWord>& train) {
  std::unordered_map<std::string, std::size_t> counts;
  for (const auto& entry : train) ++counts[entry.label];
  return std::ranges::max(classes_of(train), {}, [&](const auto& label) { return counts.at(label); });
}

std::vector<Baseline> baselines(const WordSplit& split) {
  const std::string majority = majority_label(split.train);
  const NgramBayes bayes(split.train);
  return {{"majority", accuracy(split.held_out, [&](const std::string&) { return majority; })},
          {"letter_ngram_bayes",
           accuracy(split.held_out, [&](const auto& word) { return bayes.predict(word); })}};
}

int vowel_rule(std::string_view word) {
  const std::string text = xgrad::to_ascii_lowercase(word);
  const auto vowel = [&](std::size_t i) {
    return std::string_view("aeiouy").find(text[i]) != std::string_view::npos;
  };
  int groups = 0;
  for (std::size_t i = 0; i < text.size(); ++i) groups += vowel(i) && (i == 0 || !vowel(i - 1));

  const std::size_t n = text.size();
  const bool lone_e = n >= 2 && text[n - 1] == 'e' && !vowel(n - 2);
  const bool sounded = n >= 3 && text[n - 2] == 'l' && !vowel(n - 3);
  return std::max(1, groups - (lone_e && !sounded));
}

Baseline vowel_rule_baseline(const WordSplit& split) {
  return {"vowel_rule",
          accuracy(split.held_out, [](const auto& word) { return std::to_string(vowel_rule(word)); })};
}

}  // namespace apps
