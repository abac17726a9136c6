#include "tagger.hpp"

#include <algorithm>
#include <utility>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "../common/columns.hpp"
#include "saved_model.hpp"

namespace apps {
namespace {

xgrad::Vocabulary words_in(const std::vector<TaggedSentence>& sentences, std::size_t min_freq,
                           std::string (*part)(const std::string&)) {
  std::vector<std::vector<std::string>> texts;
  for (const TaggedSentence& sentence : sentences) {
    texts.emplace_back();
    for (const std::string& word : sentence.words)
      texts.back().push_back(part(xgrad::to_ascii_lowercase(word)));
  }
  return xgrad::Vocabulary::build(texts, {.min_freq = min_freq});
}

xgrad::Vocabulary tags_in(const std::vector<TaggedSentence>& sentences) {
  std::vector<std::vector<std::string>> texts;
  texts.reserve(sentences.size());
  for (const TaggedSentence& sentence : sentences) texts.push_back(sentence.tags);
  return xgrad::Vocabulary::build(texts, {.specials = {}, .unknown = ""});
}

/// Padding is zeros, as shifted() has beyond a sentence: scores must not depend on what else is in the batch.
xgrad::Embedding<float> embedding(std::size_t rows, std::size_t width) {
  return xgrad::Embedding<float>(rows, width, {.padding_idx = 0});
}

}  // namespace

std::int64_t shape_of(const std::string& word, bool first) {
  const auto any = [&](auto what) {
    return std::any_of(word.begin(), word.end(), [&](char c) { return what(static_cast<unsigned char>(c)); });
  };
  const auto upper = [](unsigned char c) { return c >= 'A' && c <= 'Z'; };
  const auto lower = [](unsigned char c) { return (c >= 'a' && c <= 'z') || c >= 0x80; };
  const auto digit = [](unsigned char c) { return c >= '0' && c <= '9'; };
  const auto mark = [&](unsigned char c) { return !upper(c) && !lower(c) && !digit(c) && c != '-'; };
  const bool capital = !word.empty() && upper(static_cast<unsigned char>(word[0]));
  return 1 + (capital ? 1 : 0) + (any(lower) ? 2 : 0) + (any(digit) ? 4 : 0) +
         (word.find('-') != word.npos ? 8 : 0) + (any(mark) ? 16 : 0) + (first ? 32 : 0);
}

std::string ending(const std::string& word, std::size_t count) {
  return width_of(word) > count ? last_characters(word, count) : "^" + word;
}

std::string beginning(const std::string& word, std::size_t count) {
  return width_of(word) > count ? first_characters(word, count) : word + "$";
}

TaggerVocabulary::TaggerVocabulary(const std::vector<TaggedSentence>& sentences)
    : TaggerVocabulary(words_in(sentences, 2, [](const std::string& word) { return word; }),
                       words_in(sentences, 5, [](const std::string& word) { return beginning(word, 3); }),
                       words_in(sentences, 5, [](const std::string& word) { return ending(word, 3); }),
                       words_in(sentences, 5, [](const std::string& word) { return ending(word, 2); }),
                       tags_in(sentences)) {}

TaggerVocabulary::TaggerVocabulary(xgrad::Vocabulary words, xgrad::Vocabulary prefixes,
                                   xgrad::Vocabulary suffixes, xgrad::Vocabulary short_suffixes,
                                   xgrad::Vocabulary tags)
    : words_(std::move(words)),
      prefixes_(std::move(prefixes)),
      suffixes_(std::move(suffixes)),
      short_suffixes_(std::move(short_suffixes)),
      tags_(std::move(tags)) {}

WordFeatures TaggerVocabulary::features(const std::vector<const std::vector<std::string>*>& sentences) const {
  std::vector<std::vector<std::int64_t>> words, prefixes, suffixes, short_suffixes, shapes;
  for (const std::vector<std::string>* sentence : sentences) {
    for (auto* list : {&words, &prefixes, &suffixes, &short_suffixes, &shapes}) list->emplace_back();
    for (std::size_t i = 0; i < sentence->size(); ++i) {
      const std::string word = xgrad::to_ascii_lowercase((*sentence)[i]);
      words.back().push_back(words_.id(word));
      prefixes.back().push_back(prefixes_.id(beginning(word, 3)));
      suffixes.back().push_back(suffixes_.id(ending(word, 3)));
      short_suffixes.back().push_back(short_suffixes_.id(ending(word, 2)));
      shapes.back().push_back(shape_of((*sentence)[i], i == 0));
    }
  }
  return {xgrad::pad_sequence(words), xgrad::pad_sequence(prefixes), xgrad::pad_sequence(suffixes),
          xgrad::pad_sequence(short_suffixes), xgrad::pad_sequence(shapes)};
}

bool TaggerVocabulary::knows(const std::string& word) const {
  return words_.contains(xgrad::to_ascii_lowercase(word));
}

xgrad::Variable<float> shifted(const xgrad::Variable<float>& x, int by) {
  const std::ptrdiff_t rest = static_cast<std::ptrdiff_t>(x.shape(1)) - 1;
  const xgrad::Variable<float> zeros(xgrad::Array<float>(xgrad::Shape{x.shape(0), 1, x.shape(2)}, 0.0F));
  return by > 0 ? xgrad::cat({zeros, narrow(x, 1, 0, rest)}, 1)
                : xgrad::cat({narrow(x, 1, 1, rest), zeros}, 1);
}

TaggerModel::TaggerModel(const TaggerVocabulary& vocabulary, const xgrad::EncoderConfig& config)
    : Module("TaggerModel"),
      words_(child("words", embedding(vocabulary.words().size(), config.d_model))),
      prefixes_(child("prefixes", embedding(vocabulary.prefixes().size(), config.d_model))),
      suffixes_(child("suffixes", embedding(vocabulary.suffixes().size(), config.d_model))),
      short_suffixes_(child("short_suffixes", embedding(vocabulary.short_suffixes().size(), config.d_model))),
      shapes_(child("shapes", embedding(shape_count, config.d_model))),
      positions_(child("positions", xgrad::LearnedPositionalEncoding<float>(
                                        TaggerVocabulary::longest_sentence, config.d_model))),
      before_(child("before", xgrad::Linear<float>(config.d_model, config.d_model))),
      after_(child("after", xgrad::Linear<float>(config.d_model, config.d_model))),
      norm_(child("norm", xgrad::LayerNorm<float>(config.d_model))),
      dropout_(config.dropout),
      encoder_(child("encoder", xgrad::TransformerEncoder<float>(config))),
      head_(child("head", xgrad::Linear<float>(config.d_model, vocabulary.tags().size()))) {
  // Embeddings start small, so that what a word learns soon outweighs its random start.
  for (const auto& table : {words_.weight(), prefixes_.weight(), suffixes_.weight(), short_suffixes_.weight(),
                            shapes_.weight(), positions_.parameters()[0]}) {
    table.assign(table.value() * 0.1F);
  }
}

xgrad::Variable<float> TaggerModel::operator()(const WordFeatures& features) const {
  const auto scope = this->scope();
  const xgrad::Variable<float> known = words_(features.words) + prefixes_(features.prefixes) +
                                       suffixes_(features.suffixes) +
                                       short_suffixes_(features.short_suffixes) + shapes_(features.shapes);
  const xgrad::Variable<float> in_place = known + before_(shifted(known, 1)) + after_(shifted(known, -1));
  const xgrad::Variable<float> x = dropout(norm_(positions_(in_place)), dropout_, {.training = training()});
  return head_(encoder_(x, xgrad::padding_mask(features.shapes, 0)));
}

Tagger::Tagger(TaggerVocabulary vocabulary, const xgrad::EncoderConfig& config)
    : vocabulary_(std::move(vocabulary)), config_(config), model_(vocabulary_, config) {}

Tagger Tagger::load(const std::string& path) {
  const SavedModel saved(path, task);
  return saved.model([&] {
    const auto vocabulary = [&](const char* key) { return xgrad::Vocabulary(saved.lines(key)); };
    return Tagger({vocabulary("words"), vocabulary("prefixes"), vocabulary("suffixes"),
                   vocabulary("short_suffixes"), xgrad::Vocabulary(saved.lines("tags"), "")},
                  saved.encoder());
  });
}

void Tagger::save(const std::string& path) const {
  xgrad::Metadata metadata = sizes_of(config_);
  metadata["task"] = task;
  metadata["words"] = joined_lines(vocabulary_.words().tokens());
  metadata["prefixes"] = joined_lines(vocabulary_.prefixes().tokens());
  metadata["suffixes"] = joined_lines(vocabulary_.suffixes().tokens());
  metadata["short_suffixes"] = joined_lines(vocabulary_.short_suffixes().tokens());
  metadata["tags"] = joined_lines(vocabulary_.tags().tokens());
  save_safetensors(model_.state_dict(), path, metadata);
}

std::vector<std::vector<std::string>> Tagger::tags(
    const std::vector<std::vector<std::string>>& sentences) const {
  const xgrad::NoGrad guard;
  // Sentences are cut into pieces; pieces of similar length go through the model together.
  struct Piece {
    std::size_t sentence, begin;
    std::vector<std::string> words;
  };
  std::vector<Piece> pieces;
  std::vector<std::size_t> lengths;
  std::vector<std::vector<std::string>> result(sentences.size());
  constexpr std::size_t longest = TaggerVocabulary::longest_sentence;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    result[i].resize(sentences[i].size());
    for (std::size_t begin = 0; begin < sentences[i].size(); begin += longest) {
      const std::size_t end = std::min(begin + longest, sentences[i].size());
      pieces.push_back({i,
                        begin,
                        {sentences[i].begin() + static_cast<std::ptrdiff_t>(begin),
                         sentences[i].begin() + static_cast<std::ptrdiff_t>(end)}});
      lengths.push_back(end - begin);
    }
  }
  if (pieces.empty()) return result;
  const xgrad::EvalMode eval_mode(model_);
  xgrad::BatchSampler batches(lengths, {.batch_size = 64, .shuffle = false});
  for (std::size_t n = batches.batches_per_epoch(); n > 0; --n) {
    const std::vector<std::size_t> chosen = batches.next();
    std::vector<const std::vector<std::string>*> batch;
    batch.reserve(chosen.size());
    for (const std::size_t i : chosen) batch.push_back(&pieces[i].words);
    const xgrad::Variable<float> scores = model_(vocabulary_.features(batch));
    for (std::size_t row = 0; row < chosen.size(); ++row) {
      const Piece& piece = pieces[chosen[row]];
      for (std::size_t i = 0; i < piece.words.size(); ++i) {
        const float* first = &scores.value()(row, i, 0);
        const auto best = std::max_element(first, first + scores.shape(2)) - first;
        result[piece.sentence][piece.begin + i] = vocabulary_.tags().token(best);
      }
    }
  }
  return result;
}

}  // namespace apps
