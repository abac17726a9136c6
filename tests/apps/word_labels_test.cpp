#include "../../apps/corpora/word_labels.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "../../apps/corpora/line_reader.hpp"
#include "../../apps/corpora/utf8.hpp"
#include "files.hpp"

namespace word_labels_test {

using apps::LabelledWord;
using apps::WordSplit;
using namespace std::string_literals;

class WordLabelsFiles : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }

  std::string write(const std::string& bytes) const { return folder_.write("words.txt", bytes); }

  std::string write_gzip(const std::string& bytes) const {
    const gzFile file = gzopen(path("words.gz").c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path("words.gz");
  }

  std::string error_of(const std::string& file) const {
    try {
      apps::read_word_labels(file);
    } catch (const std::runtime_error& error) {
      std::string message = error.what();
      if (message.starts_with(file)) message.erase(0, file.size());
      return message;
    }
    return "no error";
  }

 private:
  xgrad_tests::TemporaryFolder folder_;
};

const std::vector<LabelledWord> small_and_feet = {{"small", "1"}, {"recipe", "3"}};

TEST_F(WordLabelsFiles, ReadsTabsSpacesBlankLinesAndBothLineEnds) {
  for (const auto* bytes :
       {"small\t1\nrecipe\t3\n", "small 1\nrecipe 3", "small\t1\r\nrecipe\t3\r\n", "small 1\nrecipe 3\r",
        "\n  small \t 1 \n\n \t\r\nrecipe   3\n\n", "\xEF\xBB\xBFsmall 1\nrecipe 3\n"}) {
    EXPECT_EQ(apps::read_word_labels(write(bytes)), small_and_feet) << bytes;
  }
}

TEST_F(WordLabelsFiles, AByteOrderMarkIsOneAtTheBeginningOnly) {
  const std::vector<LabelledWord> words = {{"small", "1"}, {"\xEF\xBB\xBFrecipe", "3"}};
  EXPECT_EQ(apps::read_word_labels(write("\xEF\xBB\xBFsmall 1\n\xEF\xBB\xBFrecipe 3\n")), words);
}

TEST_F(WordLabelsFiles, ReadsGzip) {
  EXPECT_EQ(apps::read_word_labels(write_gzip("small 1\nrecipe 3\n")), small_and_feet);
}

TEST_F(WordLabelsFiles, ReadsGzipOfSeveralMembers) {
  const std::string file = write_gzip("small 1\nrec");
  const gzFile more = gzopen(file.c_str(), "ab");
  ASSERT_EQ(gzputs(more, "ipe 3\n"), 6);
  ASSERT_EQ(gzclose(more), Z_OK);
  EXPECT_EQ(apps::read_word_labels(file), small_and_feet);
}

TEST_F(WordLabelsFiles, ReadsLettersOfEveryScriptAndLabelsOfAnyText) {
  const std::vector<LabelledWord> words = {
      {"naïve", "französisch"}, {"шум", "русский"}, {"靴", "日本語"}, {"😀", "-1.5"}};
  EXPECT_EQ(apps::read_word_labels(write("naïve französisch\nшум русский\n靴 日本語\n😀 -1.5\n")), words);
}

TEST_F(WordLabelsFiles, KeepsARepeatedRowOnce) {
  EXPECT_EQ(apps::read_word_labels(write("small 1\nrecipe 3\nsmall\t1\n")), small_and_feet);
}

TEST_F(WordLabelsFiles, AcceptsTheLongestLine) {
  const std::string word(apps::max_line_bytes - 2, 'a');
  EXPECT_EQ(apps::read_word_labels(write(word + " 1\nb 2\n")).front().word, word);
}

TEST_F(WordLabelsFiles, NamesTheLineAndTextOfAnError) {
  const std::string exactly_two = "a line must be a word and a label, got ";
  const std::string utf8 = "a line must be valid UTF-8, got ";
  const std::string control = "a line must hold no control characters, got ";
  const std::string any = ": must hold words and labels, got no line with any";
  const std::pair<std::string, std::string> cases[] = {
      {"", any},
      {"\n \t\r\n", any},
      {"\xEF\xBB\xBF", any},
      {"small 1\nshoes\nfeet 1\n", ":2: " + exactly_two + R"("shoes")"},
      {"small 1\n\nice cream 2\n", ":3: " + exactly_two + R"("ice cream 2")"},
      {std::string(50, 'x'), ":1: " + exactly_two + '"' + std::string(40, 'x') + R"(...")"},
      {"small 1\ncaf\xE9 2\n", ":2: " + utf8 + R"("caf\xE9 2")"},
      {"\xC0\xAF 1\n", ":1: " + utf8 + R"("\xC0\xAF 1")"},
      {"\xED\xA0\x80 1\n", ":1: " + utf8 + R"("\xED\xA0\x80 1")"},
      {"\xF4\x90\x80\x80 1\n", ":1: " + utf8 + R"("\xF4\x90\x80\x80 1")"},
      {"\xFF\xFEs\0 \0"s + "1\0\n\0"s, ":1: " + utf8 + R"("\xFF\xFEs\x00 \x00)" + R"(1\x00")"},
      {"small 1\nsho\0es 1\n"s, ":2: " + control + R"("sho\x00es 1")"},
      {"small 1\rfeet 1\r", ":1: " + control + R"("small 1\x0D)" + R"(feet 1")"},
      {"\x1B[31mred 1\n", ":1: " + control + R"("\x1B[31mred 1")"},
      {"read 1\nsmall 1\nread 2\n", R"(:3: a word must keep its label "1" of line 1, got "read 2")"},
      {"small 1\nfeet 1\n", ": must hold 2 to 1000 different labels, got 1"},
      {"small 1\n" + std::string(3 << 20, 'a'),
       R"(:2: a line must be at most 1048576 bytes, got ")" + std::string(40, 'a') + R"(...")"},
  };
  for (const auto& [bytes, message] : cases) EXPECT_EQ(error_of(write(bytes)), message);
}

TEST_F(WordLabelsFiles, LimitsTheNumberOfClasses) {
  std::string bytes;
  for (int i = 0; i <= 1000; ++i) bytes += "word" + std::to_string(i) + " " + std::to_string(i) + "\n";
  EXPECT_EQ(error_of(write(bytes)), ": must hold 2 to 1000 different labels, got 1001");
}

TEST_F(WordLabelsFiles, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(error_of(path("missing.txt")), ": cannot open: No such file or directory");
  EXPECT_EQ(error_of(path("")), ": must be a regular file, got a directory");
  EXPECT_EQ(error_of("/dev/zero"), ": must be a regular file, got a device or socket");
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(error_of(path("fifo")), ": must be a regular file, got a FIFO");
}

TEST_F(WordLabelsFiles, RefusesDamagedGzip) {
  std::string words;
  for (int i = 0; i < 20000; ++i)
    words += "word" + std::to_string(i * 7919) + " " + std::to_string(i % 2) + "\n";
  const std::string file = write_gzip(words);
  const auto bytes = std::filesystem::file_size(file);
  EXPECT_EQ(apps::read_word_labels(file).size(), 20000);
  for (const auto kept : {bytes - 1, bytes - 8, bytes / 2, std::uintmax_t{12}}) {
    std::filesystem::resize_file(file, kept);
    EXPECT_TRUE(error_of(file).ends_with(": cannot read: damaged or incomplete gzip data")) << error_of(file);
  }
}

TEST(WordLabels, CharactersAreCodePoints) {
  EXPECT_EQ(apps::characters("é€😀a"), U"é€😀a");
  EXPECT_EQ(apps::characters(""), U"");
  EXPECT_EQ(apps::decode_utf8("\xF0\x9F\x98"), std::nullopt);
  try {
    apps::characters("caf\xE9");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), R"(characters: word must be valid UTF-8, got "caf\xE9")");
  }
}

TEST(WordLabels, CodePointsOfEveryLengthGoThroughUtf8) {
  for (const auto& [point, bytes] : {std::pair{U'\x01', "\x01"},
                                     {U'\x7F', "\x7F"},
                                     {U'\x80', "\xC2\x80"},
                                     {U'\x7FF', "\xDF\xBF"},
                                     {U'\x800', "\xE0\xA0\x80"},
                                     {U'猫', "\xE7\x8C\xAB"},
                                     {U'\xD7FF', "\xED\x9F\xBF"},
                                     {U'\xE000', "\xEE\x80\x80"},
                                     {U'\xFFFF', "\xEF\xBF\xBF"},
                                     {U'\x10000', "\xF0\x90\x80\x80"},
                                     {U'\x10FFFF', "\xF4\x8F\xBF\xBF"}}) {
    EXPECT_EQ(apps::encode_utf8(point), bytes);
    EXPECT_EQ(apps::decode_utf8(bytes), std::u32string(1, point)) << bytes;
  }
  for (const char* wrong :
       {"\x80", "\xBF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF8\x88\x80\x80\x80", "\xE7\x8C", "\xE7\x8C\x41", "\xC2\xC2"})
    EXPECT_EQ(apps::decode_utf8(wrong), std::nullopt) << wrong;
  EXPECT_FALSE(apps::decode_utf8(std::string_view("\xC2\x80", 1))) << "its rest is not the text's";
}

TEST(WordLabels, TextsOfErrorsAreCutAfterFortyCharacters) {
  std::string forty;
  for (int i = 0; i < 40; ++i) forty += "猫";
  EXPECT_EQ(apps::printable(forty), "\"" + forty + "\"");
  EXPECT_EQ(apps::printable(forty + "x"), "\"" + forty + "...\"");
  EXPECT_EQ(apps::printable("a\x1F\x7F\xC2\x85\xC2\xA0"), "\"a\\x1F\\x7F\\xC2\\x85\xC2\xA0\"");
}

TEST(WordLabels, OfSeveralLabelsAndScoresTheFirstIsTaken) {
  EXPECT_EQ(apps::majority_label({{"a", "9"}, {"b", "10"}, {"c", "10"}, {"d", "9"}}), "9");
  EXPECT_EQ(apps::NgramBayes({{"a", "x"}, {"b", "y"}}).predict("q"), "x");
}

TEST(WordLabels, ClassesAreInNumericalOrderWhenAllAreIntegers) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(apps::classes_of({{"a", "10"}, {"b", "9"}, {"c", "-1"}, {"d", "9"}}), (Labels{"-1", "9", "10"}));
  EXPECT_EQ(apps::classes_of({{"a", "10"}, {"b", "9"}, {"c", "x"}}), (Labels{"10", "9", "x"}));
  EXPECT_EQ(apps::classes_of({{"a", "9"}, {"b", "10000000000000000000"}}),
            (Labels{"10000000000000000000", "9"}));
}

TEST(WordLabels, TheSplitIsFnv1aOfTheLowerCaseWord) {
  EXPECT_EQ(apps::fnv1a(""), 0xcbf29ce484222325);
  EXPECT_EQ(apps::fnv1a("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(apps::fnv1a("foobar"), 0x85944171f73967e8);
  for (const auto* word : {"name", "Name", "NAME"}) EXPECT_TRUE(apps::is_held_out(word)) << word;
  for (const auto* word : {"compute", "recipe", "shoes", "naïve"}) {
    EXPECT_FALSE(apps::is_held_out(word)) << word;
  }
}

TEST(WordLabels, ASplitWithAnEmptyPartIsAnError) {
  try {
    apps::split_words({{"compute", "2"}, {"small", "1"}});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "split_words: words must be enough to train on some and hold out some, got 2 to train on "
                 "and 0 held out");
  }
}

// The n-grams of "a" are < a > <a a> <a>, six, of which < and > are in every word: with b and d, V = 14.
const std::vector<LabelledWord> letters = {{"a", "x"}, {"b", "y"}, {"d", "y"}};

TEST(WordLabels, NgramBayesScores) {
  const auto scores = apps::NgramBayes(letters).scores("ac");  // known: < a > <a
  ASSERT_EQ(scores.size(), 2);
  EXPECT_NEAR(scores[0], std::log(1.0 / 3 * std::pow(2.0 / 20, 4)), 1e-12);
  EXPECT_NEAR(scores[1], std::log(2.0 / 3 * std::pow(3.0 / 26, 2) * std::pow(1.0 / 26, 2)), 1e-12);
}

TEST(WordLabels, BaselinesOnATinySplit) {
  const auto found = apps::baselines({letters, {{"ac", "x"}, {"cb", "y"}, {"cc", "x"}}});
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].name, "majority");
  EXPECT_DOUBLE_EQ(found[0].accuracy, 1.0 / 3);
  EXPECT_EQ(found[1].name, "letter_ngram_bayes");
  EXPECT_DOUBLE_EQ(found[1].accuracy, 2.0 / 3);
}

TEST(WordLabels, VowelRule) {
  const std::map<std::string, int> expected = {
      {"", 1},     {"hmm", 1},     {"the", 1}, {"Small", 1},  {"shoes", 1},  {"table", 2}, {"whale", 1},
      {"free", 1}, {"compute", 2}, {"e", 1},   {"rhythm", 1}, {"recipe", 2}, {"banana", 3}};
  for (const auto& [word, syllables] : expected) EXPECT_EQ(apps::vowel_rule(word), syllables) << word;
}

std::map<std::string, std::size_t> count_labels(const std::vector<LabelledWord>& words) {
  std::map<std::string, std::size_t> counts;
  for (const auto& entry : words) ++counts[entry.label];
  return counts;
}

TEST(WordLabels, CmudictSyllables) {
  const auto words = apps::read_word_labels(XGRAD_SOURCE_DIR "/apps/data/cmudict_syllables.tsv.gz");
  EXPECT_EQ(words.size(), 116349);
  EXPECT_TRUE(std::ranges::is_sorted(words, {}, &LabelledWord::word));
  EXPECT_EQ(count_labels(words),
            (std::map<std::string, std::size_t>{
                {"1", 15016}, {"2", 53687}, {"3", 32084}, {"4", 11583}, {"5", 3286}, {"6", 693}}));

  const WordSplit split = apps::split_words(words);
  EXPECT_EQ(split.train.size(), 104695);
  EXPECT_EQ(split.held_out.size(), 11654);
  EXPECT_EQ(count_labels(split.held_out),
            (std::map<std::string, std::size_t>{
                {"1", 1552}, {"2", 5298}, {"3", 3319}, {"4", 1087}, {"5", 333}, {"6", 65}}));

  const auto found = apps::baselines(split);
  EXPECT_NEAR(found[0].accuracy, 0.4546, 1e-4);
  EXPECT_NEAR(found[1].accuracy, 0.6286, 1e-4);
  EXPECT_NEAR(apps::vowel_rule_baseline(split).accuracy, 0.8449, 1e-4);
}

}  // namespace word_labels_test
