// Folders and indices whose files other processes cut or overwrite while they are read.

#include "../changed_files.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/files.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/retrieval.hpp>

#include "../expect_error.hpp"
#include "../program.hpp"
#include "folder.hpp"
#include "running_program.hpp"

namespace changed_model_files_test {

namespace fs = std::filesystem;
using namespace xgrad::pretrained;
using xgrad::Array, xgrad::FileError, xgrad::retrieval::SearchIndex;
using xgrad_tests::FolderCopy, xgrad_tests::MappingHook, xgrad_tests::message_of, xgrad_tests::output_of,
    xgrad_tests::read_bytes, xgrad_tests::RunningProgram, xgrad_tests::size_message,
    xgrad_tests::TemporaryFolder;

/// Runs a call for each file of a folder that it maps, and cuts the file then, or when memory is given back.
void expect_errors(const std::string& folder, const std::function<void()>& call) {
  std::set<std::string> files;
  bool releases = false;
  {
    const MappingHook note(
        [&](const std::string& mapped) {
          if (mapped.starts_with(folder + "/")) files.insert(mapped);
        },
        [&] { releases = true; });
    call();
  }
  EXPECT_FALSE(files.empty());
  for (const std::string& file : files) {
    const std::string bytes = read_bytes(file);
    for (const bool at_release : {false, true}) {
      if (at_release && !(releases && file.ends_with("model.safetensors"))) continue;
      const auto cut_if = [&](bool condition) {
        if (condition) fs::resize_file(file, bytes.size() / 2);
      };
      const MappingHook hook([&](const std::string& mapped) { cut_if(!at_release && mapped == file); },
                             [&] { cut_if(at_release); });
      EXPECT_EQ(message_of<FileError>(call), size_message(file, bytes.size(), bytes.size() / 2))
          << at_release;
      std::ofstream(file, std::ios::binary) << bytes;
    }
  }
}

TEST(ChangedModelFilesTest, AreErrorsWithTheNameWhicheverIsCut) {
  const FolderCopy copy("bert_sentence");
  const std::string folder = fs::canonical(copy.path());
  expect_errors(folder, [&] { SentenceEmbedder<float>::from_folder(folder); });
  expect_errors(folder, [&] { static_cast<void>(SentenceEmbedder<float>::from_folder(folder).digest()); });
  expect_errors(folder, [&] { Encoder<float>::from_folder(folder, {.precision = Precision::bfloat16}); });
}

TEST(ChangedModelFilesTest, AreErrorsOfATokenizer) {
  for (const char* name : {"bert_sentence", "roberta_mlm", "tokenizers/sentencepiece_unigram"}) {
    const FolderCopy copy(name);
    const std::string folder = fs::canonical(copy.path());
    const auto load = [&] { xgrad::tokenizers::Tokenizer::from_folder(folder); };
    expect_errors(folder, load);
    if (!fs::remove(folder + "/tokenizer.json")) continue;
    expect_errors(folder, load);  // of the older files
  }
}

class ChangedCorpusTest : public testing::Test {
 protected:
  SearchIndex<float> open() const {
    return SearchIndex<float>::open(path_, corpus_, embedder_, {.note = [](const std::string&) {}});
  }
  static std::string text_of(const SearchIndex<float>& index, std::size_t i) {
    return message_of<FileError>([&] { static_cast<void>(index.text(i)); });
  }
  std::string changed(const std::string& path, std::size_t before) const {
    return size_message(path, before, fs::file_size(path));
  }

  const TemporaryFolder folder_;
  const std::string home_ = fs::canonical(folder_.path("")),
                    corpus_ = folder_.write("texts", "my shoes\nbig feet\nthe old house\n"),
                    path_ = folder_.path("texts.index");
  const std::size_t size_ = fs::file_size(corpus_);
  const FolderCopy copy_{"bert_sentence"};
  const SentenceEmbedder<float> embedder_ = SentenceEmbedder<float>::from_folder(copy_.path());
};

TEST_F(ChangedCorpusTest, OtherLinesAreNeverHits) {
  const SearchIndex<float> index = open();
  EXPECT_TRUE(index.is_current());
  EXPECT_EQ(index.text(1), "big feet");
  folder_.write("texts", "x");
  EXPECT_FALSE(index.is_current());
  EXPECT_EQ(text_of(index, 1), changed(corpus_, size_));
  EXPECT_EQ(message_of<FileError>([&] { static_cast<void>(index.line(1)); }), changed(corpus_, size_));
  folder_.write("texts", "my shoes\nbig foot\nthe old house\n");
  fs::last_write_time(corpus_, fs::last_write_time(path_) + std::chrono::seconds(1));
  EXPECT_FALSE(index.is_current());
  EXPECT_EQ(text_of(index, 1),
            corpus_ + ": must not change while it is read, got another time of modification");
}

TEST_F(ChangedCorpusTest, AddedLinesAndAnotherTimeChangeNoHit) {
  const SearchIndex<float> index = open();
  std::ofstream(corpus_, std::ios::app) << "the new house\n";
  EXPECT_TRUE(index.is_current());
  EXPECT_EQ(index.text(2), "the old house");
  fs::last_write_time(corpus_, fs::last_write_time(path_) + std::chrono::seconds(1));
  EXPECT_TRUE(index.is_current());
  EXPECT_EQ(index.size(), 3u);
  EXPECT_EQ(open().size(), 4u);
}

TEST_F(ChangedCorpusTest, AReplacedCorpusIsAnotherOne) {
  const SearchIndex<float> index = open();
  folder_.write("new", read_bytes(corpus_));
  fs::rename(folder_.path("new"), corpus_);
  EXPECT_FALSE(index.is_current());
  EXPECT_EQ(index.text(2), "the old house") << "as it was";
  fs::remove(corpus_);
  EXPECT_FALSE(index.is_current());
}

TEST_F(ChangedCorpusTest, ACutIndexIsAnErrorWithItsName) {
  const SearchIndex<float> index = open();
  const std::size_t size = fs::file_size(path_);
  const Array<float> query = embedder_(std::vector<std::string>{"my"});
  EXPECT_EQ(index.search(query)[0].size(), 3u);
  fs::resize_file(path_, 9);
  EXPECT_FALSE(index.is_current());
  EXPECT_EQ(message_of<FileError>([&] { static_cast<void>(index.search(query)); }), changed(path_, size));
  EXPECT_EQ(text_of(index, 0), changed(path_, size));
}

TEST_F(ChangedCorpusTest, ACorpusThatIsCutWhileItsIndexIsMadeIsAnError) {
  const MappingHook hook([&](const std::string& mapped) {
    if (mapped == home_ + "/texts") fs::resize_file(corpus_, 4);
  });
  EXPECT_EQ(message_of<FileError>([&] { open(); }), size_message(corpus_, size_, 4));
  EXPECT_EQ(folder_.file_count(), 1u) << "no index";
}

TEST_F(ChangedCorpusTest, ACorpusThatIsCutBetweenTwoBatchesIsAnError) {
  std::string lines;
  for (std::size_t i = 0; i < 2100; ++i) lines += "my shoes\n";
  folder_.write("texts", lines);
  const auto make = [&] {
    return SearchIndex<float>::open(
        path_, corpus_, embedder_,
        {.note = [](const std::string&) {},
         .progress = [&](std::size_t, std::size_t) { folder_.write("texts", "x"); }});
  };
  EXPECT_EQ(message_of<FileError>([&] { make(); }), size_message(corpus_, lines.size(), 1));
  EXPECT_EQ(folder_.file_count(), 1u) << "no index";
}

TEST_F(ChangedCorpusTest, TheProgramMakesTheIndexAgain) {
  output_of("search " + copy_.path() + " " + corpus_ + " my 2>/dev/null");
  RunningProgram program({"search", copy_.path(), corpus_, "--top", "1"});
  program.write("big feet\n");
  EXPECT_EQ(program.line(), "1\t1.000000\t2\tbig feet\n");
  folder_.write("texts", "x\n");
  program.write("x\n");
  EXPECT_EQ(program.line(), "\n");
  EXPECT_EQ(program.line(), "1\t1.000000\t1\tx\n");
  folder_.write("new", "\nbig feet\nmy\n");
  fs::rename(folder_.path("new"), corpus_);
  program.write("my\n");
  EXPECT_EQ(program.line(), "\n");
  EXPECT_EQ(program.line(), "1\t1.000000\t3\tmy\n");
}

TEST_F(ChangedCorpusTest, TheProgramNamesAnIndexThatIsCut) {
  output_of("search " + copy_.path() + " " + corpus_ + " my 2>/dev/null");
  const std::string error = folder_.path("error");
  RunningProgram program({"search", copy_.path(), corpus_, "--top", "1"}, error);
  program.write("big feet\n");
  EXPECT_EQ(program.line(), "1\t1.000000\t2\tbig feet\n");
  fs::resize_file(path_, 9);
  program.write("my\n");
  EXPECT_EQ(program.line(), "");
  EXPECT_EQ(program.wait(), 1);
  EXPECT_TRUE(read_bytes(error).starts_with("search: " + path_ + ": ")) << read_bytes(error);
}

}  // namespace changed_model_files_test
