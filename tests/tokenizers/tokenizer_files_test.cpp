#include <filesystem>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/error.hpp>
#include <xgrad/tokenizers/tokenizer.hpp>
#include <xgrad/tokenizers/tokenizer_files.hpp>

#include "../expect_error.hpp"
#include "../files.hpp"

namespace tokenizer_files_test {

using nlohmann::json;
using namespace xgrad::tokenizers;
using xgrad::FileError, xgrad::ValueError;
using xgrad_tests::message_of, xgrad_tests::read_bytes;

using Tokens = std::vector<std::string>;

std::string model_folder(const std::string& name) { return XGRAD_PRETRAINED_DIR "/" + name; }

Tokens lines_of(const std::string& path) {
  Tokens lines;
  std::istringstream text(read_bytes(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

const Tokens small{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "B", "e", "é", "\"", "\\", "猫", "##a"};

std::vector<std::int64_t> ids_of(const std::string& folder, const std::string& text) {
  return Tokenizer::from_folder(folder).encode(text).ids;
}

class TokenizerFilesTest : public testing::Test {
 protected:
  xgrad_tests::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path("new/model");
};

TEST_F(TokenizerFilesTest, AreThoseOfOtherLibraries) {
  const std::string other = model_folder("bert_sentence");
  write_word_piece(folder_, lines_of(other + "/vocab.txt"), {.max_length = 64});
  for (const char* file : {"/tokenizer.json", "/tokenizer_config.json"})
    EXPECT_EQ(json::parse(read_bytes(folder_ + file)), json::parse(read_bytes(other + file))) << file;
  EXPECT_EQ(read_bytes(folder_ + "/vocab.txt"), read_bytes(other + "/vocab.txt"));
}

TEST_F(TokenizerFilesTest, SayTheSameInBothWays) {
  for (const bool lowercase : {true, false}) {
    write_word_piece(folder_, small, {.lowercase = lowercase, .max_length = 7});
    const std::string text = "aa B é [MASK] \" \\ 猫a unknown";
    const std::vector<std::int64_t> expected =
        lowercase ? std::vector<std::int64_t>{2, 5, 12, 1, 7, 4, 9, 10, 11, 5, 1, 3}
                  : std::vector<std::int64_t>{2, 5, 12, 6, 8, 4, 9, 10, 11, 5, 1, 3};
    EXPECT_EQ(ids_of(folder_, text), expected);
    EXPECT_EQ(Tokenizer::from_folder(folder_).max_length(), 7u);
    std::filesystem::remove(folder_ + "/tokenizer.json");
    EXPECT_EQ(ids_of(folder_, text), expected);
  }
}

TEST_F(TokenizerFilesTest, AVocabularyThatCannotBeReadAgainIsNotWritten) {
  const auto error = [&](Tokens vocabulary, const std::string& more) {
    vocabulary.push_back(more);
    return message_of<ValueError>([&] { write_word_piece(folder_, vocabulary); });
  };
  const std::string here = "write_word_piece: ";
  EXPECT_EQ(error(small, "a"), here + "tokens must differ, got \"a\" twice");
  EXPECT_EQ(error(small, ""),
            here + "a token must have characters and no white space, got \"\" for the id 13");
  EXPECT_EQ(error(small, "x\u3000"),
            here + "a token must have characters and no white space, got \"x\u3000\" for the id 13");
  EXPECT_EQ(error(small, "\xE9"), here + "a token must be UTF-8, got something else for the id 13");
  EXPECT_EQ(error({"[PAD]", "[UNK]", "[CLS]", "[SEP]"}, "a"),
            here + "the vocabulary must have [MASK], got 5 tokens without it");
  EXPECT_FALSE(std::filesystem::exists(folder_));
  temporary_.write("file", "");
  EXPECT_EQ(message_of<FileError>([&] { write_word_piece(temporary_.path("file"), small); }),
            temporary_.path("file") + ": cannot be made a folder: Not a directory");
}

TEST_F(TokenizerFilesTest, AreSavedAsTheyWereRead) {
  Tokenizer::from_folder(model_folder("roberta_mlm")).save(folder_);
  for (const char* file : {"/tokenizer.json", "/tokenizer_config.json", "/vocab.json", "/merges.txt"})
    EXPECT_EQ(read_bytes(folder_ + file), read_bytes(model_folder("roberta_mlm") + file));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/config.json"));
  Tokenizer::from_folder(folder_).save(folder_);
  EXPECT_EQ(ids_of(folder_, "a b"), ids_of(model_folder("roberta_mlm"), "a b"));
}

}  // namespace tokenizer_files_test
