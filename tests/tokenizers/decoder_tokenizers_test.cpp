// The tokenizers of decoders, beside what Hugging Face's library gave with them.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/error.hpp>
#include <xgrad/tokenizers/decode_stream.hpp>
#include <xgrad/tokenizers/tokenizer.hpp>

#include "../expect_error.hpp"
#include "../files.hpp"
#include "library_cases.hpp"
#include "split_cases.hpp"

namespace decoder_tokenizers_test {

using nlohmann::json;
using xgrad::FileError, xgrad::ValueError, xgrad::tokenizers::Tokenizer;
using xgrad_tests::message_of, xgrad_tests::TemporaryFolder;

using Ids = std::vector<std::int64_t>;

const std::string data = XGRAD_PRETRAINED_DIR "/tokenizers/";

class DecoderTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(DecoderTokenizer, AllCasesAreTheLibrarys) {
  std::size_t count = 0;
  const auto note = [&](const std::string& name, bool right) {
    ++count;
    EXPECT_TRUE(right) << name;
  };
  xgrad_tests::LibraryCases(data + GetParam(), note).compare();
  EXPECT_GT(count, 100U);
}

INSTANTIATE_TEST_SUITE_P(TokenizerTest, DecoderTokenizer,
                         testing::Values("added_first", "falcon", "gpt2", "llama2", "llama3"));

TEST(DecoderTokenizerTest, RefusesInvalidTexts) {
  std::size_t count = 0;
  xgrad_tests::compare_invalid_texts(data + "invalid.json", Tokenizer::from_folder(data + "gpt2"),
                                     [&](const std::string& name, bool right) {
                                       ++count;
                                       EXPECT_TRUE(right) << name;
                                     });
  EXPECT_EQ(count, 23U);
}

TEST(DecoderTokenizerTest, OlderFilesGiveTheSame) {
  const Tokenizer tokenizer = Tokenizer::from_folder(data + "gpt2"),
                  older = xgrad_tests::tokenizer_of_older_files(data + "gpt2");
  const json cases = xgrad_tests::read_json(data + "gpt2/cases.json");
  for (const json& one : cases.at("strings")) {
    const auto text = one.at("text").get<std::string>();
    const auto encoding = older.encode(text);
    EXPECT_EQ(encoding.ids, tokenizer.encode(text).ids);
    EXPECT_EQ(encoding.offsets, tokenizer.encode(text).offsets);
    EXPECT_EQ(json(older.decode(encoding.ids)), one.at("skipped"));
  }
  EXPECT_EQ(older.unk_id(), tokenizer.unk_id());
}

TEST(DecoderTokenizerTest, LinesOfMergesMayEndAsOnWindows) {
  const TemporaryFolder folder;
  const std::string roberta = XGRAD_PRETRAINED_DIR "/roberta_mlm/";
  std::filesystem::copy(roberta + "vocab.json", folder.path("vocab.json"));
  std::string merges = xgrad_tests::read_bytes(roberta + "merges.txt");
  for (std::size_t i = 0; (i = merges.find('\n', i)) != merges.npos; i += 2) merges.insert(i, 1, '\r');
  folder.write("merges.txt", merges);
  EXPECT_EQ(Tokenizer::from_folder(folder.path("")).encode("the old house").ids,
            Tokenizer::from_folder(roberta).encode("the old house").ids);
}

/// A BPE model of characters with these parts.
json small_model() {
  return {
      {"added_tokens", json::array()},
      {"pre_tokenizer", nullptr},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"vocab", {{"<unk>", 0}, {"a", 1}, {"b", 2}, {"ab", 3}, {"abab", 4}, {"<0xC3>", 5}, {"<0xA9>", 6}}},
        {"merges", {"a b", "ab ab"}}}}};
}

Ids ids_of(const json& tokenizer, const std::string& text) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", tokenizer.dump());
  return Tokenizer::from_folder(folder.path("")).encode(text).ids;
}

std::string refusal_of(const json& tokenizer) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", tokenizer.dump());
  const std::string message = message_of<FileError>([&] { Tokenizer::from_folder(folder.path("")); });
  const std::string path = folder.path("") + "tokenizer.json: ";
  return message.starts_with(path) ? message.substr(path.size()) : message;
}

TEST(DecoderTokenizerTest, UnknownCharactersAreOneTokenEachOrFusedOrBytesOrGo) {
  json tokenizer = small_model();
  EXPECT_EQ(ids_of(tokenizer, "ababxyb"), (Ids{4, 0, 0, 2}));
  tokenizer["model"]["fuse_unk"] = true;
  EXPECT_EQ(ids_of(tokenizer, "abxyb"), (Ids{3, 0, 2}));
  EXPECT_EQ(ids_of(tokenizer, "a\u00e9"), (Ids{1, 0})) << "unless bytes are asked for";
  tokenizer["model"]["byte_fallback"] = true;
  EXPECT_EQ(ids_of(tokenizer, "a\u00e9x"), (Ids{1, 5, 6, 0}));
  EXPECT_EQ(ids_of(tokenizer, "x\u00e9a"), (Ids{5, 6, 0, 1})) << "as in the library, bytes overtake";
  tokenizer["model"]["unk_token"] = nullptr;
  EXPECT_EQ(ids_of(tokenizer, "axb\u00e9"), (Ids{1, 2, 5, 6}));
}

TEST(DecoderTokenizerTest, BytesWithoutATokenAreUnknownOrFusedOrGo) {
  using Offsets = decltype(xgrad::tokenizers::Encoding::offsets);
  json tokenizer = small_model();
  tokenizer["normalizer"] = nullptr;
  tokenizer["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};
  const auto encoding_of = [&](const std::string& text) {
    return Tokenizer::from_json(tokenizer.dump()).encode(text);
  };
  EXPECT_EQ(encoding_of("abzab").ids, (Ids{3, 0, 3}));
  EXPECT_EQ(encoding_of("abzab").offsets, (Offsets{{0, 2}, {2, 3}, {3, 5}}));
  EXPECT_EQ(encoding_of("a\u00e9b z\u00e9").ids, (Ids{1, 0, 0, 2, 0, 0, 0, 0}));
  EXPECT_EQ(encoding_of("zz").ids, (Ids{0, 0}));
  tokenizer["model"]["fuse_unk"] = true;
  EXPECT_EQ(encoding_of("a\u00e9b z\u00e9").ids, (Ids{1, 0, 2, 0}));
  EXPECT_EQ(encoding_of("a\u00e9b z\u00e9").offsets, (Offsets{{0, 1}, {1, 2}, {2, 3}, {3, 6}}));
  EXPECT_EQ(encoding_of("zz").ids, Ids{0});
  tokenizer["model"]["byte_fallback"] = true;
  EXPECT_EQ(refusal_of(tokenizer),
            "model.byte_fallback must be false for a model of bytes, of which some have no token, got true");
  tokenizer["model"]["byte_fallback"] = false;
  tokenizer["model"]["unk_token"] = "<unknown>";
  EXPECT_EQ(refusal_of(tokenizer), "model.unk_token must be a token of model.vocab, got \"<unknown>\"");
  tokenizer["model"]["unk_token"] = "a";
  EXPECT_EQ(refusal_of(tokenizer),
            "model: merges of unknown bytes are not supported, got one of \"a\" and \"b\"");
  tokenizer["model"]["unk_token"] = nullptr;
  EXPECT_EQ(encoding_of("abzab").ids, Ids{4});
  EXPECT_EQ(encoding_of("abzab").offsets, (Offsets{{0, 4}})) << "as in the library";
}

TEST(DecoderTokenizerTest, WordsThatAreTokensStayIfAsked) {
  json tokenizer = small_model();
  tokenizer["model"]["vocab"]["ba"] = 7;
  EXPECT_EQ(ids_of(tokenizer, "ba"), (Ids{2, 1}));
  tokenizer["model"]["ignore_merges"] = true;
  EXPECT_EQ(ids_of(tokenizer, "ba"), Ids{7});
  EXPECT_EQ(ids_of(tokenizer, "bab"), (Ids{2, 3}));
}

TEST(DecoderTokenizerTest, EachSignOfPunctuationIsAWord) {
  json tokenizer = small_model();
  tokenizer["model"]["vocab"].update({{"!", 7}, {"!!", 8}});
  tokenizer["model"]["merges"].push_back("! !");
  EXPECT_EQ(ids_of(tokenizer, "a!!"), (Ids{1, 8}));
  tokenizer["pre_tokenizer"] = {{"type", "Punctuation"}};
  EXPECT_EQ(ids_of(tokenizer, "a!!"), (Ids{1, 7, 7}));
  tokenizer["pre_tokenizer"]["behavior"] = "Contiguous";
  EXPECT_EQ(ids_of(tokenizer, "a!!"), (Ids{1, 8}));
}

TEST(DecoderTokenizerTest, SplitsAtASignThatMeansMoreInPatterns) {
  json tokenizer = small_model();
  tokenizer["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"String", "."}}}, {"behavior", "Removed"}};
  EXPECT_EQ(ids_of(tokenizer, "ab.ab"), (Ids{3, 3}));
  tokenizer["pre_tokenizer"]["invert"] = true;
  EXPECT_EQ(ids_of(tokenizer, "ab.ab"), Ids{0});
}

TEST(DecoderTokenizerTest, WhatIsBetweenMatchesIsNotMergedWhenTheyAreInverted) {
  json tokenizer = small_model();
  tokenizer["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "[ab]"}}}, {"invert", true}};
  for (const char* behavior : {"MergedWithPrevious", "MergedWithNext"}) {
    tokenizer["pre_tokenizer"]["behavior"] = behavior;
    EXPECT_EQ(ids_of(tokenizer, "ab"), (Ids{1, 2})) << behavior;
  }
}

TEST(DecoderTokenizerTest, RefusesModelsThatAreNotWhole) {
  json tokenizer = small_model();
  tokenizer["model"]["unk_token"] = "?";
  EXPECT_EQ(refusal_of(tokenizer), "model.unk_token must be a token of model.vocab, got \"?\"");
  tokenizer = small_model();
  tokenizer["model"]["vocab"]["<unk>a"] = 7;
  tokenizer["model"]["merges"].push_back("<unk> a");
  EXPECT_EQ(
      refusal_of(tokenizer),
      "model: merges of unknown characters or of bytes that stand for them are not supported, got one of "
      "\"<unk>\" and \"a\"");
  tokenizer = small_model();
  tokenizer["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Merged"}};
  EXPECT_EQ(
      refusal_of(tokenizer),
      "pre_tokenizer.behavior must be Removed, Isolated, Contiguous, MergedWithPrevious or MergedWithNext, "
      "got \"Merged\"");
  tokenizer["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", json::array()}};
  for (int i = 0; i < 65; ++i)
    tokenizer["pre_tokenizer"]["pretokenizers"].push_back({{"type", "Digits"}, {"individual_digits", true}});
  EXPECT_EQ(refusal_of(tokenizer), "pre_tokenizer.pretokenizers[64]: must be one of at most 64");
}

TEST(DecoderTokenizerTest, DecodersDoNotGrowTextsWithoutEnd) {
  json tokenizer = small_model();
  json steps = json::array();
  for (int i = 0; i < 60; ++i)
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}});
  tokenizer["decoder"] = {{"type", "Sequence"}, {"decoders", steps}};
  const TemporaryFolder folder;
  folder.write("tokenizer.json", tokenizer.dump());
  const Tokenizer grows = Tokenizer::from_folder(folder.path(""));
  EXPECT_EQ(message_of<ValueError>([&] { grows.decode(Ids{1}); }),
            "Tokenizer: the decoder makes a text more than 100 times as long as it is");
  EXPECT_EQ(grows.decode(Ids{2}), "b");
  tokenizer["decoder"] = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1000, 'b')}};
  folder.write("tokenizer.json", tokenizer.dump());
  const Tokenizer once = Tokenizer::from_folder(folder.path(""));
  EXPECT_EQ(once.decode(Ids{1}), std::string(1000, 'b'));
  EXPECT_EQ(message_of<ValueError>([&] {
              once.decode(Ids{1, 1});
            }),
            "Tokenizer: the decoder makes a text more than 100 times as long as it is");
}

TEST(DecoderTokenizerTest, StreamsGiveWholeCharacters) {
  const Tokenizer tokenizer = Tokenizer::from_folder(data + "llama2");
  const Ids ids = tokenizer.encode("a\U0001F600b", {.add_special_tokens = false}).ids;
  xgrad::tokenizers::DecodeStream stream(tokenizer);
  for (int round = 0; round < 2; ++round) {  // a stream that is finished begins anew
    std::string all;
    for (const std::int64_t id : ids) all += stream.step(id);
    EXPECT_EQ(all + stream.finish(), "a\U0001F600b");
  }
  EXPECT_EQ(stream.step(ids[0]), "a");
  EXPECT_EQ(stream.step(ids[1]), "");
  EXPECT_EQ(stream.step(-1), "");
  EXPECT_EQ(stream.finish(), "\ufffd") << "half a character is told as such";
}

TEST(DecoderTokenizerTest, TokensWithoutATextKeepTheBlanksOfTheNextOnes) {
  const Tokenizer tokenizer = Tokenizer::from_folder(data + "sentencepiece_unigram");
  const Ids ids = tokenizer.encode("the house").ids;
  xgrad::tokenizers::DecodeStream stream(tokenizer, false);
  std::string all;
  for (const std::int64_t id : ids) all += stream.step(id) + stream.step(*tokenizer.token_to_id("</s>"));
  EXPECT_EQ(all + stream.finish(), "the house");
}

/// This decoder drops an "a" before broken bytes up to the end if they are even in number.
TEST(DecoderTokenizerTest, StreamsDoNotTakeBackWhatTheDecoderDropsLater) {
  json tokenizer = small_model();
  const json drop{{"type", "Replace"}, {"pattern", {{"Regex", "a(?=(?:\ufffd\ufffd)+$)"}}}, {"content", ""}};
  tokenizer["decoder"] = {{"type", "Sequence"},
                          {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}, drop}}};
  xgrad::tokenizers::DecodeStream stream(Tokenizer::from_json(tokenizer.dump()));
  std::string all = stream.step(1), broken;
  for (int i = 0; i < 65; ++i) {
    all += stream.step(5);
    broken += "\ufffd";
  }
  all += stream.step(2);
  EXPECT_EQ(all + stream.finish(), "a" + broken + "b");
}

/// The library's stream, which holds back any number of tokens.
class PatientStream {
 public:
  explicit PatientStream(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  void step(std::int64_t id) {
    ids_.push_back(id);
    const std::string text = tokenizer_->decode(ids_);
    if (text.size() <= said_.size() || text.ends_with("\ufffd")) return;
    all_ += new_part(text);
    ids_.erase(ids_.begin(), ids_.begin() + said_ids_);
    said_ = tokenizer_->decode(ids_);
    said_ids_ = static_cast<std::ptrdiff_t>(ids_.size());
  }

  std::string finish() { return all_ + new_part(tokenizer_->decode(ids_)); }

 private:
  std::string new_part(const std::string& text) const {
    return text.starts_with(said_) ? text.substr(said_.size())
                                   : tokenizer_->decode(Ids(ids_.begin() + said_ids_, ids_.end()));
  }

  const Tokenizer* tokenizer_;
  Ids ids_;
  std::string said_, all_;
  std::ptrdiff_t said_ids_ = 0;
};

class BrokenCharacters : public testing::TestWithParam<const char*> {
 protected:
  /// Streams the tokens beside the library's way. Returns the bytes that came out with them.
  std::size_t compare(const Ids& ids) const {
    xgrad::tokenizers::DecodeStream stream(tokenizer_);
    PatientStream patient(tokenizer_);
    std::string all;
    for (const std::int64_t id : ids) {
      const std::string piece = stream.step(id);
      EXPECT_EQ(xgrad::detail::utf8::find_invalid_utf8(piece), piece.npos);
      all += piece;
      patient.step(id);
    }
    const std::size_t size = all.size();
    EXPECT_TRUE(all + stream.finish() == patient.finish()) << json(ids);
    return size;
  }

  /// Tokens that are parts of characters, and others.
  Ids tokens(bool broken) const {
    Ids result;
    for (std::int64_t id = 0; id <= tokenizer_.largest_id(); ++id) {
      if (!tokenizer_.contains(id)) continue;
      const std::string bytes = tokenizer_.token_bytes(id);
      if (broken == (xgrad::detail::utf8::find_invalid_utf8(bytes) != bytes.npos)) result.push_back(id);
    }
    return result;
  }

  Tokenizer tokenizer_ = Tokenizer::from_folder(data + GetParam());
};

TEST_P(BrokenCharacters, OfManyOnlyTheLastAreHeldBack) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "\ufffd";
  for (const Ids& ids : {Ids(500, tokens(true).back()), tokenizer_.encode(text).ids})
    EXPECT_GT(compare(ids) + 300, tokenizer_.decode(ids).size());
}

TEST_P(BrokenCharacters, GiveWhatTheWholeTextHas) {
  std::mt19937 random(1);
  const Ids broken = tokens(true), others = tokens(false);
  const auto one_of = [&](const Ids& ids) { return ids[random() % ids.size()]; };
  std::vector<Ids> characters;
  for (const char* text : {"\u00e9", "\u20ac", "\U0001F600", "\n"}) {
    Ids ids = tokenizer_.encode(std::string("a") + text, {.add_special_tokens = false}).ids;
    ids.erase(ids.begin());
    characters.push_back(ids);
  }
  for (int round = 0; round < 25; ++round) {
    const Ids few{one_of(broken), one_of(broken), one_of(broken), one_of(others)};
    const Ids& repeated = characters[random() % characters.size()];
    Ids ids;
    while (ids.size() < 500) {
      switch (random() % 4) {
        case 0:
          ids.insert(ids.end(), random() % 80, few[random() % 3]);
          break;
        case 1:
          for (std::size_t times = random() % 80; times > 0; --times)
            ids.insert(ids.end(), repeated.begin(), repeated.end());
          break;
        case 2:
          for (std::size_t times = random() % 80; times > 0; --times) ids.push_back(few[random() % 3]);
          break;
        default:
          if (random() % 3 == 0) ids.push_back(few[3]);
      }
    }
    compare(ids);
  }
}

INSTANTIATE_TEST_SUITE_P(TokenizerTest, BrokenCharacters,
                         testing::Values("falcon", "gpt2", "llama2", "llama3", "sentencepiece_unigram"));

/// SentencePiece's pieces and the tokens of a vocabulary beside them, in another order.
TEST(DecoderTokenizerTest, MariansTokensAreThoseOfItsVocabulary) {
  const Tokenizer pieces = Tokenizer::from_folder(data + "sentencepiece_unigram");
  const auto last = static_cast<std::int64_t>(pieces.size()) - 1;
  json vocabulary{{"<pad>", last + 1}, {">>fra<<", last + 2}};
  for (std::int64_t id = 0; id <= last; ++id) vocabulary[pieces.token(id)] = last - id;
  const TemporaryFolder folder;
  for (const char* name : {"source.spm", "target.spm"})
    std::filesystem::copy(data + "sentencepiece_unigram/spm.model", folder.path(name));
  folder.write("vocab.json", vocabulary.dump());
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": "MarianTokenizer", "eos_token": "</s>", "unk_token": "<unk>"})");
  for (const bool target : {false, true}) {
    const Tokenizer marian = Tokenizer::from_folder(folder.path(""), {.target = target});
    Ids wanted{last + 2};
    for (const std::int64_t id : pieces.encode("the house").ids) wanted.push_back(last - id);
    wanted.push_back(*marian.token_to_id("</s>"));
    EXPECT_EQ(marian.encode(">>fra<<the house").ids, wanted);
    EXPECT_EQ(marian.decode(wanted), ">>fra<< the house");
    EXPECT_EQ(marian.decode(wanted, false), ">>fra<< the house</s>");
    EXPECT_EQ(marian.decode(Ids{last + 1, last + 1}, false), "<pad> <pad>");
    EXPECT_EQ(marian.encode(">>xyz<<").ids[0], marian.unk_id());
  }
  folder.write("tokenizer_config.json", R"({"separate_vocabs": true})");
  EXPECT_TRUE(message_of<FileError>([&] {
                Tokenizer::from_folder(folder.path(""));
              }).ends_with("separate_vocabs must be false, got true"));
}

}  // namespace decoder_tokenizers_test
