// The tagger: tags, files of sentences, features, the model and its file.

#include "../apps/tagger.hpp"

#include <set>

#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "files.hpp"

namespace {

using namespace apps;
using xgrad_tests::message_of;
using Words = std::vector<std::string>;

TEST(UniversalTagTest, MapsTheTagsOfTheBrownCorpus) {
  const std::vector<std::pair<const char*, const char*>> expected = {
      {"nn", "NOUN"},     {"np$", "NOUN"},     {"vbd", "VERB"},   {"bez*", "VERB"},
      {".", "."},         {"--", "."},         {"``", "."},       {"*", "ADV"},
      {"cs", "ADP"},      {"at", "DET"},       {"pp$", "DET"},    {"pp$$", "PRON"},
      {"jjr", "ADJ"},     {"od", "ADJ"},       {"cc", "CONJ"},    {"cd", "NUM"},
      {"to", "PRT"},      {"nil", "X"},        {"nn-tl", "NOUN"}, {"nn-tl-hl", "NOUN"},
      {"---hl", "."},     {"*-hl", "ADV"},     {",-hl", "."},     {"fw-in+at-tl", "X"},
      {"pps+bez", "PRT"}, {"vb+ppo", "VERB"},  {"in-nc", "ADP"},  {"md+ppss", "VERB"},
      {"do+ppss", "X"},   {"ap+ap-nc", "ADJ"}, {"jj$-tl", "PRT"}, {"wdt+ber+pp", "X"},
      {"wdt+do+pps", "X"}};
  for (const auto& [brown, universal] : expected) EXPECT_EQ(universal_tag(brown), universal) << brown;
  for (const char* wrong : {"", "noun", "-hl", "NN"})
    EXPECT_TRUE(message_of([&] { universal_tag(wrong); }).starts_with("universal_tag: there is no tag "))
        << wrong;
}

class TaggedFiles : public testing::Test {
 protected:
  std::string error_of(const std::string& bytes) const {
    const std::string path = folder_.write("sentences", bytes);
    const std::string text = message_of<std::runtime_error>([&] { read_tagged_file(path); });
    return text.starts_with(path) ? text.substr(path.size()) : text;
  }

  xgrad_tests::TemporaryFolder folder_;
};

TEST_F(TaggedFiles, ReadsASentenceALine) {
  const TaggedFile file =
      read_tagged_file(folder_.write("a", "\n\tThe/DET  cat/NOUN\n\n1/2/NUM //. ./.\r\n"));
  ASSERT_EQ(file.size(), 2u);
  EXPECT_EQ(file[0].words, (Words{"The", "cat"}));
  EXPECT_EQ(file[0].tags, (Words{"DET", "NOUN"}));
  EXPECT_EQ(file[1].words, (Words{"1/2", "/", "."}));
}

TEST_F(TaggedFiles, RefusesWhatIsNoTaggedSentence) {
  EXPECT_EQ(error_of("The/DET\ncat\n"), ":2: every word must have a tag, as in house/NOUN, got \"cat\"");
  EXPECT_EQ(error_of("/NOUN"), ":1: every word must have a tag, as in house/NOUN, got \"/NOUN\"");
  EXPECT_EQ(error_of("cat/"), ":1: every word must have a tag, as in house/NOUN, got \"cat/\"");
  EXPECT_EQ(error_of("a/X\n\xFF/X\n"), ":2: a line must be valid UTF-8, got \"\\xFF/X\"");
  EXPECT_TRUE(message_of([&] { read_tagged_folder(folder_.path("nowhere")); }).starts_with(folder_.path("")));
}

TaggedSentence sentence(const std::string& text) {
  TaggedSentence result;
  for (const std::string& part : xgrad::whitespace_tokens(text)) {
    result.words.push_back(part.substr(0, part.find('/')));
    result.tags.push_back(part.substr(part.find('/') + 1));
  }
  return result;
}

TEST(TaggedSplitTest, HoldsOutWholeFiles) {
  std::vector<TaggedFile> files;
  for (int i = 0; i < 40; ++i) files.push_back({sentence("w" + std::to_string(i) + "/X")});
  const TaggedSplit split = split_files(files);
  EXPECT_EQ(split.test.size(), 4u);
  EXPECT_EQ(split.test[1].words, Words{"w14"});
  EXPECT_EQ(split.validation.size(), 2u);
  EXPECT_EQ(split.validation[0].words, Words{"w9"});
  EXPECT_EQ(split.train.size(), 34u);
  files.resize(9);
  EXPECT_EQ(message_of([&] { split_files(files); }),
            "split_files: each part must have sentences, got 8 to train on, 0 to validate and 1 to test");
  EXPECT_EQ(message_of([&] { split_files(std::vector<TaggedFile>(20)); }),
            "split_files: each part must have sentences, got 0 to train on, 0 to validate and 0 to test");
}

TEST(MostFrequentTagTest, GuessesUnknownWordsAsRareOnes) {
  const std::vector<TaggedSentence> train = {
      sentence("run/VERB run/VERB run/NOUN cat/NOUN dog/NOUN red/ADJ")};
  EXPECT_EQ(most_frequent_tag_accuracy(train, {sentence("run/VERB run/NOUN bird/NOUN blue/ADJ")}), 0.5);
}

TEST(ShapeOfTest, TellsSpellingsApart) {
  std::vector<std::int64_t> shapes;
  for (const char* word : {"cat", "Cat", "CAT", "1964", "cat-like", "it's", "A1", "", "\xC3\xA4"}) {
    for (const bool first : {false, true}) shapes.push_back(shape_of(word, first));
  }
  for (const std::int64_t shape : shapes) {
    EXPECT_GE(shape, 1);
    EXPECT_LT(shape, static_cast<std::int64_t>(shape_count));
  }
  const std::vector<std::int64_t> different(shapes.begin(), shapes.begin() + 14);
  EXPECT_EQ(std::set<std::int64_t>(different.begin(), different.end()).size(), 14u);
  EXPECT_EQ(shape_of("\xC3\xA4", false), shape_of("cat", false));
}

TEST(WordPartsTest, ShortWordsAreMarked) {
  EXPECT_EQ(ending("walking", 3), "ing");
  EXPECT_EQ(ending("ing", 3), "^ing");
  EXPECT_EQ(beginning("walking", 3), "wal");
  EXPECT_EQ(beginning("is", 3), "is$");
}

const std::vector<TaggedSentence>& corpus() {
  static const std::vector<TaggedSentence> sentences = [] {
    std::vector<TaggedSentence> result;
    for (const char* noun : {"cat", "dog", "house"}) {
      for (const char* verb : {"sees", "likes"}) {
        result.push_back(sentence(std::string("The/DET ") + noun + "/NOUN " + verb + "/VERB it/PRON ./."));
        result.push_back(sentence(std::string("the/DET run/NOUN ") + verb + "/VERB " + noun + "/NOUN ./."));
        result.push_back(sentence(std::string("they/PRON run/VERB to/PRT the/DET ") + noun + "/NOUN ./."));
      }
    }
    return result;
  }();
  return sentences;
}

std::vector<Words> words_of(const std::vector<TaggedSentence>& sentences) {
  std::vector<Words> words;
  for (const TaggedSentence& one : sentences) words.push_back(one.words);
  return words;
}

/// A tagger that has learned the little corpus, in which "run" is a noun or a verb.
const Tagger& trained() {
  static const Tagger tagger = [] {
    xgrad::manual_seed(1);
    Tagger result(TaggerVocabulary(corpus()),
                  {.d_model = 16, .heads = 2, .d_ff = 32, .layers = 1, .dropout = 0.1});
    xgrad::AdamW<float> optimizer(result.model().parameters(), {.lr = 0.01});
    std::vector<const Words*> words;
    std::vector<std::vector<std::int64_t>> tags;
    for (const TaggedSentence& one : corpus()) {
      words.push_back(&one.words);
      tags.push_back(result.vocabulary().tags().ids(one.tags));
    }
    xgrad::Ids target = xgrad::pad_sequence(tags, -100);
    target.reshape({target.size()});
    for (int step = 0; step < 60; ++step) {
      optimizer.zero_grad();
      const xgrad::Variable<float> scores = result.model()(result.vocabulary().features(words));
      cross_entropy(reshape(scores, {-1, scores.shape(2)}), target).backward();
      optimizer.step();
    }
    return result;
  }();
  return tagger;
}

TEST(TaggerTest, LearnsWordsByTheirNeighbours) {
  const std::vector<Words> tags = trained().tags(words_of(corpus()));
  for (std::size_t i = 0; i < tags.size(); ++i) EXPECT_EQ(tags[i], corpus()[i].tags) << i;
  EXPECT_TRUE(trained().model().training()) << "tagging puts the mode back";
}

TEST(TaggerTest, TagsTextsOfAnyLength) {
  EXPECT_TRUE(trained().tags({}).empty());
  EXPECT_TRUE(trained().model().training()) << "the mode is put back without words, too";
  EXPECT_EQ(trained().tags({{}, {"the"}, {}}), (std::vector<Words>{{}, {"DET"}, {}}));
  const Words longer(300, "the");
  EXPECT_EQ(trained().tags({longer})[0].size(), 300u);
}

TEST(TaggerTest, AnErrorPutsTheModeBack) {
  const xgrad::Vocabulary known({"[PAD]", "the"}, ""), tags({"DET"}, "");
  const Tagger tagger({known, known, known, known, tags}, {.d_model = 4, .heads = 2, .d_ff = 8});
  EXPECT_EQ(message_of<xgrad::IndexError>([&] { tagger.tags({{"xylophone"}}); }),
            "Vocabulary: there is no token 'xylophone'");
  EXPECT_TRUE(tagger.model().training());
}

TEST(TaggerTest, PaddingChangesNoScore) {
  const Tagger& tagger = trained();
  const xgrad::NoGrad guard;
  tagger.model().eval();
  const Words shorter = {"the", "run", "likes"}, longer = {"they", "run", "to", "the", "cat", "."};
  const TaggerVocabulary& vocabulary = tagger.vocabulary();
  const xgrad::Variable<float> alone = tagger.model()(vocabulary.features({&shorter}));
  const xgrad::Variable<float> padded = tagger.model()(vocabulary.features({&shorter, &longer}));
  tagger.model().train();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    for (std::size_t tag = 0; tag < alone.shape(2); ++tag) {
      EXPECT_NEAR(alone.value()(0, i, tag), padded.value()(0, i, tag), 1e-5) << shorter[i];
    }
  }
}

TEST(TaggerTest, ItsFileGivesTheSameTags) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string path = folder.path("tagger.safetensors");
  trained().save(path);
  const Tagger loaded = Tagger::load(path);
  EXPECT_FALSE(loaded.model().training());
  EXPECT_EQ(loaded.model().state_dict(), trained().model().state_dict());
  const std::vector<Words> texts = {{"the", "run", "likes", "Xylophones", "."}, {"they", "run", "to", "it"}};
  EXPECT_EQ(loaded.tags(texts), trained().tags(texts));
}

TEST(TaggerTest, RefusesAFileThatIsNotItsOwn) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string path = folder.path("model.safetensors");
  const xgrad::StateDict<float> weights = trained().model().state_dict();
  const auto message = [&](auto change) {
    trained().save(path);
    xgrad::Metadata metadata = xgrad::SafetensorsFile(path).metadata();
    change(metadata);
    save_safetensors(weights, path, metadata);
    const std::string text = message_of<xgrad::FileError>([&] { Tagger::load(path); });
    return text.substr(std::min(path.size(), text.size()));
  };
  EXPECT_EQ(message([](auto& metadata) { metadata.clear(); }), ": the metadata \"task\" must be there");
  EXPECT_EQ(message([](auto& metadata) { metadata["task"] = "chess"; }),
            ": the metadata \"task\" must be 'tags'");
  EXPECT_EQ(message([](auto& metadata) { metadata["heads"] = "many"; }),
            ": the metadata \"heads\" must be a number of at most 4096");
  EXPECT_EQ(message([](auto& metadata) { metadata["d_model"] = "5000000"; }),
            ": the metadata \"d_model\" must be a number of at most 4096");
  EXPECT_EQ(message([](auto& metadata) { metadata["tags"] = "X\nX\n"; }),
            ": Vocabulary: every token must be there once, got 'X' twice");
  EXPECT_NE(message([](auto& metadata) { metadata["d_ff"] = "8"; }).find("feed_forward.linear1.weight"),
            std::string::npos);
}

}  // namespace
