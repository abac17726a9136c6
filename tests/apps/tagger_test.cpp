// The tagger: tags, files of sentences, features, the model and its file.

#include "../../apps/models/tagger.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"
#include "files.hpp"

namespace tagger_test {

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
}

TEST_F(TaggedFiles, AreReadInTheOrderOfTheirNames) {
  for (const char* name : {"c", "a", "10", "b"}) folder_.write(name, std::string(name) + "/X\n");
  std::filesystem::create_directory(folder_.path("aa"));
  std::vector<std::string> words;
  for (const TaggedFile& file : read_tagged_folder(folder_.path(""))) words.push_back(file.at(0).words.at(0));
  EXPECT_EQ(words, (Words{"10", "a", "b", "c"}));
  EXPECT_EQ(message_of([&] { read_tagged_folder(folder_.path("aa")); }),
            folder_.path("aa") + ": must hold files of tagged sentences, got none");
  EXPECT_EQ(message_of([&] { read_tagged_folder(folder_.path("nowhere")); }),
            folder_.path("nowhere") + ": cannot be read: No such file or directory");
}

TEST_F(TaggedFiles, MayBeInChinese) {
  // The second and the third word have bytes that are blanks in other encodings.
  const TaggedFile file = read_tagged_file(folder_.write("a", "黑猫/名词 酅/名词 丠/X 睡/动词 。/.\n"));
  ASSERT_EQ(file.size(), 1u);
  EXPECT_EQ(file[0].words, (Words{"黑猫", "酅", "丠", "睡", "。"}));
  EXPECT_EQ(file[0].tags, (Words{"名词", "名词", "X", "动词", "."}));
  EXPECT_EQ(error_of("黑猫/名词 白猫\n"), ":1: every word must have a tag, as in house/NOUN, got \"白猫\"");
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

TEST(MostFrequentTagTest, TakesTheTagThatAWordHasMostOften) {
  const std::vector<TaggedSentence> train = {sentence("a/X a/Y a/Y b/X b/X once/Z"), sentence("a/X a/X")};
  EXPECT_EQ(most_frequent_tag_accuracy(train, {sentence("a/X a/X a/Y a/Z b/Y new/Z new/Z b/X")}), 0.625);
  EXPECT_EQ(
      most_frequent_tag_accuracy({sentence("a/X a/X")}, {sentence("new/X"), sentence("new/Y new/Y new/X")}),
      0.5)
      << "without words that occur once, it is the tag of another";
}

TEST(ShapeOfTest, AddsUpWhatAWordHas) {
  for (const auto& [word, shape] : std::vector<std::pair<std::string, std::int64_t>>{{"", 1},
                                                                                     {"cat", 3},
                                                                                     {"Cat", 4},
                                                                                     {"CAT", 2},
                                                                                     {"iPhone", 3},
                                                                                     {"1964", 5},
                                                                                     {"A1", 6},
                                                                                     {"-", 9},
                                                                                     {"cat-like", 11},
                                                                                     {".", 17},
                                                                                     {"it's", 19},
                                                                                     {"A-a1'", 32},
                                                                                     {"猫", 3},
                                                                                     {"Ä", 3},
                                                                                     {"猫1", 7}}) {
    EXPECT_EQ(shape_of(word, false), shape) << word;
    EXPECT_EQ(shape_of(word, true), shape + 32) << word;
  }
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
  EXPECT_EQ(beginning("", 3), "$");
}

TEST(WordPartsTest, AreOfWholeCharacters) {
  EXPECT_EQ(ending("größe", 2), "ße");
  EXPECT_EQ(ending("größe", 3), "öße");
  EXPECT_EQ(beginning("größe", 3), "grö");
  EXPECT_EQ(beginning("äöü", 3), "äöü$");
  EXPECT_EQ(ending("黑猫", 2), "^黑猫");
  EXPECT_EQ(ending("小黑猫", 2), "黑猫");
  EXPECT_EQ(beginning("一只小黑猫", 3), "一只小");
}

TEST(TaggerVocabularyTest, HasFrequentWordsAndPartsOfThemInSmallLetters) {
  std::vector<TaggedSentence> sentences;
  for (const char* text : {"Walking/V walking/V walKING/V", "talking/V talking/N", "once/N", "king/N",
                           "balking/V walks/V walks/V walks/V"})
    sentences.push_back(sentence(text));
  const TaggerVocabulary vocabulary(sentences);
  EXPECT_EQ(vocabulary.words().tokens(), (Words{"[PAD]", "[UNK]", "walking", "walks", "talking"}))
      << "words that come twice";
  EXPECT_EQ(vocabulary.prefixes().tokens(), (Words{"[PAD]", "[UNK]", "wal"})) << "parts that come five times";
  EXPECT_EQ(vocabulary.suffixes().tokens(), (Words{"[PAD]", "[UNK]", "ing"}));
  EXPECT_EQ(vocabulary.short_suffixes().tokens(), (Words{"[PAD]", "[UNK]", "ng"}));
  EXPECT_EQ(vocabulary.tags().tokens(), (Words{"V", "N"}));
  EXPECT_TRUE(vocabulary.knows("TALKING"));
  EXPECT_FALSE(vocabulary.knows("once"));
}

TEST(TaggerVocabularyTest, FeaturesAreIdsOfTheWordsAndTheirParts) {
  const auto tokens = [](Words more) {
    more.insert(more.begin(), {"[PAD]", "[UNK]"});
    return xgrad::Vocabulary(more);
  };
  const TaggerVocabulary vocabulary(tokens({"the", "cat"}), tokens({"the$", "cat$", "see"}),
                                    tokens({"^the", "ees"}), tokens({"he", "at", "黑猫"}),
                                    xgrad::Vocabulary({"X"}, ""));
  const Words first = {"The", "Sees", "小黑猫"}, second = {"cat"};
  const WordFeatures features = vocabulary.features({&first, &second});
  EXPECT_EQ(features.words, (xgrad::Ids{{2, 1, 1}, {3, 0, 0}}));
  EXPECT_EQ(features.prefixes, (xgrad::Ids{{2, 4, 1}, {3, 0, 0}}));
  EXPECT_EQ(features.suffixes, (xgrad::Ids{{2, 3, 1}, {1, 0, 0}}));
  EXPECT_EQ(features.short_suffixes, (xgrad::Ids{{2, 1, 4}, {3, 0, 0}}));
  EXPECT_EQ(features.shapes, (xgrad::Ids{{36, 4, 3}, {35, 0, 0}})) << "the first of a sentence is marked";
}

TEST(ShiftedTest, MovesByOnePositionAndFillsWithZeros) {
  const xgrad::Variable<float> x(xgrad::Array<float>{{{1, 2}, {3, 4}, {5, 6}}, {{7, 8}, {9, 10}, {11, 12}}});
  EXPECT_EQ(shifted(x, 1).value(),
            (xgrad::Array<float>{{{0, 0}, {1, 2}, {3, 4}}, {{0, 0}, {7, 8}, {9, 10}}}));
  EXPECT_EQ(shifted(x, -1).value(),
            (xgrad::Array<float>{{{3, 4}, {5, 6}, {0, 0}}, {{9, 10}, {11, 12}, {0, 0}}}));
  const xgrad::Variable<float> one(xgrad::Array<float>{{{1, 2}}});
  for (const int by : {1, -1}) EXPECT_EQ(shifted(one, by).value(), (xgrad::Array<float>{{{0, 0}}}));
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
}

/// So many words of the corpus, one sentence after the other.
Words long_text(std::size_t count) {
  Words text;
  for (std::size_t i = 0; text.size() < count; ++i) {
    const Words& words = corpus()[i % corpus().size()].words;
    text.insert(text.end(), words.begin(), words.end());
  }
  text.resize(count);
  return text;
}

TEST(TaggerTest, TagsALongTextPieceByPiece) {
  for (const std::size_t count : {127, 128, 129, 256, 300}) {
    const Words text = long_text(count);
    Words expected;
    for (std::size_t begin = 0; begin < count; begin += 128) {
      const Words piece(text.begin() + static_cast<std::ptrdiff_t>(begin),
                        text.begin() + static_cast<std::ptrdiff_t>(std::min(begin + 128, count)));
      const Words tags = trained().tags({piece})[0];
      expected.insert(expected.end(), tags.begin(), tags.end());
    }
    EXPECT_EQ(trained().tags({text})[0], expected) << count;
    EXPECT_GT(std::set<std::string>(expected.begin(), expected.end()).size(), 3u);
  }
  EXPECT_EQ(trained().model().state_dict().at("positions.pos_embedding.weight").shape(0), 128u);
}

TEST(TaggerTest, TagsManyTextsAsItTagsEach) {
  std::vector<Words> texts;
  for (std::size_t i = 0; i < 70; ++i) texts.push_back(long_text(1 + i * 7 % 31));
  texts[33] = long_text(140);
  const std::vector<Words> tags = trained().tags(texts);
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(tags[i], trained().tags({texts[i]})[0]) << i;
}

TEST(TaggerModelTest, IsItsLayersOneAfterTheOther) {
  constexpr double p = 0.3;
  const xgrad::EncoderConfig config{.d_model = 4, .heads = 2, .d_ff = 6, .layers = 2, .dropout = p};
  xgrad::manual_seed(2);
  const TaggerVocabulary vocabulary(corpus());
  const TaggerModel model(vocabulary, config);
  for (const auto& parameter : model.parameters()) parameter.assign(xgrad::normal<float>(parameter.shape()));
  const xgrad::StateDict<float> state = model.state_dict();
  const auto weight = [&](const std::string& name) { return xgrad::Variable<float>(state.at(name)); };
  const xgrad::TransformerEncoder<float> encoder(config);
  xgrad::StateDict<float> of_encoder;
  for (const auto& [name, array] : state)
    if (name.starts_with("encoder.")) of_encoder[name.substr(8)] = array;
  encoder.load_state_dict(of_encoder);

  const Words first = {"the", "run", "likes"}, second = {"they", "run", "to", "the", "cat", "."};
  const WordFeatures features = vocabulary.features({&first, &second});
  for (const bool training : {true, false}) {
    model.train(training);
    encoder.train(training);
    xgrad::Variable<float> x = embedding(features.words, weight("words.weight"));
    x = x + embedding(features.prefixes, weight("prefixes.weight"));
    x = x + embedding(features.suffixes, weight("suffixes.weight"));
    x = x + embedding(features.short_suffixes, weight("short_suffixes.weight"));
    x = x + embedding(features.shapes, weight("shapes.weight"));
    x = x + linear(shifted(x, 1), weight("before.weight"), weight("before.bias")) +
        linear(shifted(x, -1), weight("after.weight"), weight("after.bias"));
    x = x + narrow(weight("positions.pos_embedding.weight"), 0, 0, 6);
    x = layer_norm(x, {4}, weight("norm.weight"), weight("norm.bias"));
    xgrad::manual_seed(9);
    const xgrad::Variable<float> want =
        linear(encoder(dropout(x, p, {.training = training}), xgrad::padding_mask(features.words, 0)),
               weight("head.weight"), weight("head.bias"));
    xgrad::manual_seed(9);
    const xgrad::Variable<float> got = model(features);
    ASSERT_EQ(got.shape(), want.shape());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got.value().data()[i], want.value().data()[i], 1e-4)
          << i << (training ? " in training" : "");
  }
}

TEST(TaggerModelTest, EmbeddingsStartSmallAndPaddingAsZeros) {
  xgrad::manual_seed(2);
  const TaggerModel model(TaggerVocabulary(corpus()), {.d_model = 64, .heads = 2, .d_ff = 6});
  const xgrad::StateDict<float> state = model.state_dict();
  for (const char* name :
       {"words", "prefixes", "suffixes", "short_suffixes", "shapes", "positions.pos_embedding"}) {
    const xgrad::Array<float>& table = state.at(std::string(name) + ".weight");
    double squares = 0;
    for (const float x : table) squares += static_cast<double>(x * x);
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(table.size())), 0.1, 0.02) << name;
    const bool zeros = std::all_of(table.begin(), table.begin() + 64, [](float x) { return x == 0; });
    EXPECT_EQ(zeros, std::string(name) != "positions.pos_embedding") << name;
  }
}

TEST(TaggerTest, ItsFileMayHoldWordsOfAnyScript) {
  std::vector<TaggedSentence> sentences;
  for (int i = 0; i < 6; ++i)
    sentences.push_back(sentence("小黑猫/名词 睡觉/动词 größe/名词 café/名词 😀😀😀/X"));
  xgrad::manual_seed(3);
  const Tagger tagger(TaggerVocabulary(sentences), {.d_model = 4, .heads = 2, .d_ff = 6});
  EXPECT_TRUE(tagger.vocabulary().short_suffixes().contains("ße"));
  EXPECT_TRUE(tagger.vocabulary().short_suffixes().contains("黑猫"));
  const xgrad_tests::TemporaryFolder folder;
  tagger.save(folder.path("tagger"));
  const Tagger loaded = Tagger::load(folder.path("tagger"));
  EXPECT_EQ(loaded.vocabulary().words().tokens(), tagger.vocabulary().words().tokens());
  EXPECT_EQ(loaded.vocabulary().prefixes().tokens(), tagger.vocabulary().prefixes().tokens());
  EXPECT_EQ(loaded.vocabulary().suffixes().tokens(), tagger.vocabulary().suffixes().tokens());
  EXPECT_EQ(loaded.vocabulary().short_suffixes().tokens(), tagger.vocabulary().short_suffixes().tokens());
  EXPECT_EQ(loaded.vocabulary().tags().tokens(), tagger.vocabulary().tags().tokens());
  EXPECT_EQ(loaded.tags(words_of(sentences)), tagger.tags(words_of(sentences)));
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
  for (const std::string layers : {"0", "64"}) {
    const std::string text =
        message([&](auto& metadata) { metadata["d_model"] = "4096", metadata["layers"] = layers; });
    EXPECT_EQ(text.substr(0, text.find("has at")), ": a layer of the metadata's \"d_model\" and \"d_ff\" ");
    EXPECT_NE(text.find("and there are " + layers + " of them"), std::string::npos) << text;
  }
  EXPECT_EQ(message([](auto& metadata) { metadata["tags"] = "X\nX\n"; }),
            ": Vocabulary: tokens must be unique, got 'X' twice");
  EXPECT_NE(message([](auto& metadata) { metadata["d_ff"] = "8"; }).find("feed_forward.linear1.weight"),
            std::string::npos);
}

}  // namespace tagger_test
