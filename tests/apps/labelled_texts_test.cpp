// Files of texts with labels, as people have them.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../../apps/corpora/csv_reader.hpp"
#include "../../apps/corpora/labelled_texts.hpp"
#include "../expect_error.hpp"
#include "../files.hpp"

namespace labelled_texts_test {

using apps::LabelledForm, apps::LabelledSplit, apps::LabelledText;
using xgrad_tests::message_of;

using Strings = std::vector<std::string>;

/// Lines often enough to be split.
std::string repeated(const std::string& lines) {
  std::string text;
  for (int i = 0; i < 10; ++i) text += lines;
  return text;
}

class LabelledTextsTest : public testing::Test {
 protected:
  /// The texts of a file, a tenth of which is held out.
  std::vector<LabelledText> read(const std::string& name, const std::string& bytes,
                                 const LabelledForm& form = {}) {
    split_ = apps::read_labelled(folder_.write(name, bytes), "", form);
    std::vector<LabelledText> all = split_.train;
    all.insert(all.end(), split_.test.begin(), split_.test.end());
    return all;
  }

  /// What is wrong with a file, without its path.
  std::string refusal(const std::string& name, const std::string& bytes, const LabelledForm& form = {}) {
    const std::string path = folder_.write(name, bytes);
    const std::string message = message_of([&] { apps::read_labelled(path, "", form); });
    return message.starts_with(path) ? message.substr(path.size()) : message;
  }

  xgrad_tests::TemporaryFolder folder_;
  LabelledSplit split_;
};

TEST_F(LabelledTextsTest, BlankLinesDoNotMakeTextsWords) {
  for (const std::string lines : {"a good film\tpos\n\na bad film\tneg\n", "good\tpos\nbad\tneg\n"}) {
    const auto texts = read("texts", repeated(lines) + "\n");
    EXPECT_FALSE(split_.of_words);
    EXPECT_EQ(texts.size(), 20U);
    EXPECT_EQ(split_.labels(), (Strings{"neg", "pos"}));
    const std::string count = lines.find("\n\n") == lines.npos ? "1 blank line" : "11 blank lines";
    EXPECT_EQ(split_.notes, Strings{folder_.path("texts") + ": " + count + " left out"});
  }
  read("texts", "\n" + repeated("good\tpos\nbad\tneg\n"));
  EXPECT_FALSE(split_.of_words);
}

TEST_F(LabelledTextsTest, SentencesOfWordsHaveBlankLines) {
  for (const std::string lines :
       {"My\tPRON\nfeet\tNOUN\n\n", "My x PRON\nfeet x NOUN\n\n", "My\tx PRON\nfeet x NOUN\n\n"}) {
    const auto texts = read("words", repeated(lines));
    EXPECT_TRUE(split_.of_words);
    ASSERT_EQ(texts.size(), 10U);
    EXPECT_EQ(texts[0].text, "My feet");
    EXPECT_EQ(texts[0].labels, (Strings{"PRON", "NOUN"}));
    EXPECT_EQ(split_.notes, Strings());
  }
  read("words.conll", repeated("New York\tLOC\nis\tO\n\n"));
  EXPECT_TRUE(split_.of_words);
  read("words", repeated("good\tpos\n\nbad\tneg\n\n"), {.format = "lines"});
  EXPECT_FALSE(split_.of_words);
}

TEST_F(LabelledTextsTest, TextsWithoutLabelsAreNoWords) {
  const std::string how =
      "; texts are in lines of a text, a tab and a label; words in lines of columns, the word first and its "
      "label last, with a blank line after each sentence";
  EXPECT_EQ(
      refusal("texts", repeated("the house is old\n\nmy shoes\n\n")),
      ":3: a line must have 4 columns, as the ones before, or --format words must say that it has a word "
      "and its label" +
          how + ", got \"my shoes\"");
  std::string names;
  for (int i = 0; i < 20; ++i) names += "first" + std::to_string(i) + " last" + std::to_string(i) + "\n\n";
  const std::string reason =
      ": its lines are words with labels, and must have words that share labels, got 20 words with 20 labels";
  EXPECT_EQ(refusal("texts", names), reason + how);
  EXPECT_EQ(refusal("texts", names, {.format = "words"}), reason + how);
  EXPECT_EQ(read("words", repeated("the x y DET\nhouse NOUN\n\n"), {.format = "words"}).size(), 10U);
  EXPECT_EQ(read("words.conll", repeated("the x y DET\nhouse NOUN\n\n")).size(), 10U);
  EXPECT_EQ(
      split_.forms,
      Strings{folder_.path("words.conll") +
              ": read as lines of columns, a word first and its label last, with a blank line after each "
              "sentence: 10 sentences, 20 words, 2 labels"});
}

TEST_F(LabelledTextsTest, BlanksAroundLabelsAreIgnored) {
  read("texts", repeated("a good film\tpos\na bad film\tneg \na nice film\t pos\n"));
  EXPECT_EQ(split_.labels(), (Strings{"neg", "pos"}));
}

TEST_F(LabelledTextsTest, TheFirstLineMayNameColumns) {
  const auto texts = read("texts", "\ttext\tlabel\n" + repeated("0\ta good film\tpos\n1\ta bad film\tneg\n"));
  EXPECT_EQ(texts.size(), 20U);
  EXPECT_EQ(split_.labels(), (Strings{"neg", "pos"}));
  EXPECT_EQ(split_.notes, Strings{folder_.path("texts") + ": columns that are not used: \"\""});
  EXPECT_EQ(read("texts", "sentence\tlabel\n" + repeated("a good film\tpos\na bad film\tneg\n")).size(), 20U);

  const std::string unknown = "review\tsentiment\n" + repeated("a good film\tpos\na bad film\tneg\n");
  EXPECT_EQ(refusal("texts", unknown),
            ":1: the first label must be that of another line, too, as all others are; if the line names the "
            "columns, --label must be the name of the labels; got \"sentiment\"");
  EXPECT_EQ(read("texts", unknown, {.label = "sentiment"}).size(), 20U);
  EXPECT_EQ(refusal("texts", unknown, {.label = "mood"}),
            ":1: the columns must have one of the name \"mood\", or that of --label, got \"review\", "
            "\"sentiment\"");
  EXPECT_EQ(
      refusal("texts", "a\tb\tlabel\n"),
      ":1: the columns must have one of the name \"text\", or that of --text, got \"a\", \"b\", \"label\"");
}

TEST_F(LabelledTextsTest, ReadsPairs) {
  const std::string pairs = repeated("a house\tit is old\tyes\na house\tit is new\tno\n");
  const auto texts = read("texts", pairs, {.pairs = true});
  ASSERT_EQ(texts.size(), 20U);
  EXPECT_EQ(texts[0].text, "a house");
  EXPECT_EQ(*texts[0].second, texts[0].labels[0] == "yes" ? "it is old" : "it is new");
  EXPECT_EQ(split_.forms, Strings{folder_.path("texts") +
                                  ": read as lines of two texts and a label with tabs between: 20 pairs, 2 "
                                  "labels"});
  EXPECT_EQ(refusal("texts", pairs),
            ":1: a line must be a text, a tab and a label, got \"a house\\x09it is "
            "old\\x09yes\"");
  EXPECT_EQ(refusal("texts", "a house\tyes\n", {.pairs = true}),
            ":1: a line must have 3 columns with tabs between, got \"a house\\x09yes\"");
  EXPECT_EQ(*read("texts", "text\tother\tlabel\n" + pairs, {.second = "other"})[0].second, *texts[0].second);
  EXPECT_EQ(
      refusal("texts", "text\tlabel\n" + pairs, {.pairs = true}),
      ":1: the first line must be a pair and a label, or --second name a column instead of --pairs, got "
      "\"text\\x09label\"");
}

TEST_F(LabelledTextsTest, ReadsCsv) {
  const auto texts = read(
      "texts.csv", "label,text\r\n" + repeated("1,\"good, and \"\"new\"\"\r\nhere\"\r\n0,bad\r\n") + "\r\n");
  ASSERT_EQ(texts.size(), 20U);
  EXPECT_EQ(split_.labels(), (Strings{"0", "1"}));
  for (const LabelledText& text : texts)
    EXPECT_EQ(text.text, text.labels[0] == "1" ? "good, and \"new\"\nhere" : "bad");
  EXPECT_EQ(split_.notes, Strings{folder_.path("texts.csv") + ": 1 blank line left out"});

  EXPECT_EQ(
      refusal("texts.csv", "text;label\na;b\n"),
      ":1: the columns must have one of the name \"label\", or that of --label, got \"text;label\"; are they "
      "separated by ';'?");
  EXPECT_EQ(refusal("texts.csv", "text\tlabel\na\tb\n"),
            ":1: the columns must have one of the name \"label\", or that of --label, got "
            "\"text\\x09label\"; are they separated by tabs, as --format tsv has them?");
  EXPECT_EQ(refusal("texts.csv", "text,label\na,b\n\nc\n"),
            ":4: a record must have 2 fields, as the first one, got 1");
  EXPECT_EQ(refusal("texts.csv", "text,label\na,\n"), ":2: a label must not be blank");
  EXPECT_EQ(refusal("texts.csv", "text,label\n,b\n"), ":2: a text must not be blank");
  EXPECT_EQ(refusal("texts.csv", "text,label\na\"b,c\n"),
            ":2: a field with quotes in it must begin and end with one, and have each of its own twice, got "
            "\"a\"b\"");
  EXPECT_EQ(refusal("texts.csv", "text,label\n\"a\"b,c\n"),
            ":2: a closing quote must be followed by a separator or the end of the line, got \"\"a\"b,c\"");
  EXPECT_EQ(refusal("texts.csv", "text,label\n\"a\nb,c\n"),
            ":4: the quote in line 2 must be closed, got \"\"a\\x0Ab,c\"");
}

TEST_F(LabelledTextsTest, QuotesInLinesAreNotGuessed) {
  const std::string lines = "text\tlabel\n" + repeated("\"a \"\"good\"\" film\"\tpos\na bad film\tneg\n");
  EXPECT_EQ(
      refusal("texts", lines),
      ":2: a text with doubled quotes in quotes is read by --format tsv, and as it is by --format lines, got "
      "\"\"a \"\"good\"\" film\"\\x09pos\"");
  const auto text_of = [&](const LabelledForm& form) {
    const auto texts = read("texts", lines, form);
    return std::ranges::find(texts, Strings{"pos"}, &LabelledText::labels)->text;
  };
  EXPECT_EQ(text_of({.format = "tsv"}), "a \"good\" film");
  EXPECT_EQ(text_of({.format = "lines"}), "\"a \"\"good\"\" film\"");
  EXPECT_EQ(read("texts", repeated("\"yes\" or \"no\"\tpos\n\"\"\tneg\n\"a\"\"\tneg\n")).size(), 30U);
}

TEST_F(LabelledTextsTest, RecordsOfCsvHaveAllTheirFields) {
  apps::CsvReader reader(folder_.write("a.csv", "a,,\"\"\n,\n\"x\ny\",\"z\"\n"));
  Strings fields;
  ASSERT_TRUE(reader.next(fields));
  EXPECT_EQ(fields, (Strings{"a", "", ""}));
  ASSERT_TRUE(reader.next(fields));
  EXPECT_EQ(fields, (Strings{"", ""}));
  ASSERT_TRUE(reader.next(fields));
  EXPECT_EQ(fields, (Strings{"x\ny", "z"}));
  EXPECT_EQ(reader.line(), 3U);
  EXPECT_FALSE(reader.next(fields));
}

TEST_F(LabelledTextsTest, ReadsJsonLines) {
  const auto texts = read(
      "texts.jsonl",
      repeated("{\"text\": \"good\", \"label\": 1, \"id\": [2]}\n\n{\"label\": 0, \"text\": \"bad\"}\n"));
  ASSERT_EQ(texts.size(), 20U);
  EXPECT_EQ(split_.labels(), (Strings{"0", "1"}));
  EXPECT_EQ(read("texts.jsonl",
                 repeated("{\"a\": \"good\", \"b\": \"x\", \"c\": true}\n{\"a\": \"bad\", \"b\": \"y\", "
                          "\"c\": false}\n"),
                 {.text = "a", .second = "b", .label = "c"})
                .size(),
            20U);
  EXPECT_EQ(split_.labels(), (Strings{"false", "true"}));
  EXPECT_EQ(refusal("texts.jsonl", "{\"text\": \"a\", \"label\": 1}\n[]\n"),
            ":2: a line must be a JSON object, got \"[]\"");
  EXPECT_EQ(refusal("texts.jsonl", "{\"text\": \"a\"}\n"),
            ":1: an object must have the key \"label\", or that of --label, got \"{\"text\": \"a\"}\"");
  EXPECT_EQ(refusal("texts.txt", "\n {\"text\": \"a\"}\n").substr(0, 82),
            ":2: a line of JSON is read by --format jsonl, or from a file whose name ends in .j");
  EXPECT_EQ(refusal("texts.jsonl", "{\"text\": 3, \"label\": 1}\n"),
            ":1: the value of \"text\" must be a string, got \"3\"");
  EXPECT_EQ(refusal("texts.jsonl", "{\"text\": \"a\", \"label\": 1.5}\n"),
            ":1: a label must be a string, a whole number or a bool, got \"1.5\"");
  EXPECT_EQ(refusal("texts.jsonl", "{\"text\": \"a\", \"text\": \"b\", \"label\": 1}\n").substr(0, 39),
            ":1: an object must have each key once, ");
}

TEST_F(LabelledTextsTest, LabelsToPredictAreThoseOfTexts) {
  const std::string data = folder_.write("data", repeated("a good film\tpos\na bad film\tneg\n")),
                    test = folder_.write("test", "a nice film\tpos\n\nit is a film\tneutral\n");
  EXPECT_EQ(message_of([&] { apps::read_labelled(data, test); }),
            test + ":3: a label must be one of those in " + data + ", \"neg\", \"pos\", got \"neutral\"");
  const std::string words = folder_.write("words", repeated("a DET\nfilm NOUN\n\n")),
                    other = folder_.write("other", "a DET\nfilm NOUN\n\nit PRON\n\n");
  EXPECT_EQ(message_of([&] { apps::read_labelled(words, other); }),
            other + ":4: a label must be one of those in " + words + ", \"DET\", \"NOUN\", got \"PRON\"");

  // None is held out whose label is nowhere else, whichever texts are drawn.
  std::string many = repeated("a good film\tpos\na bad film\tneg\n");
  for (int i = 0; i < 20; ++i) many += "film " + std::to_string(i) + "\t" + std::to_string(i) + "\n";
  read("texts", many);
  EXPECT_EQ(split_.labels().size(), 22U);
  for (const LabelledText& text : split_.test)
    EXPECT_TRUE(text.labels[0] == "pos" || text.labels[0] == "neg");
  EXPECT_FALSE(split_.test.empty());
}

}  // namespace labelled_texts_test
