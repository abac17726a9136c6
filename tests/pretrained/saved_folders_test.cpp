// A process that is killed while it saves a model leaves the old one or the new one.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/pretrained.hpp>
#include <xgrad/tokenizers.hpp>

#include "../../apps/pretrained/common/recipe.hpp"
#include "../killed.hpp"
#include "folder.hpp"

namespace saved_folders_test {

namespace fs = std::filesystem;
using namespace xgrad::pretrained;
using xgrad::tokenizers::Tokenizer;
using xgrad_tests::killed_at, xgrad_tests::Ending, xgrad_tests::model_folder, xgrad_tests::read_bytes;

/// Bytes by the paths of the files, without what a killed process has left.
std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    if (entry.is_regular_file() && !name.starts_with(".xgrad-"))
      files[name] = read_bytes(entry.path().string());
  }
  return files;
}

/// The folder of a model whose files are as good as the model's, but of other bytes.
void write_old(const std::string& model, const std::string& folder) {
  fs::copy(model, folder, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    fs::permissions(entry, fs::perms::owner_write, fs::perm_options::add);
    const std::string path = entry.path().string();
    if (path.ends_with(".json")) std::ofstream(path, std::ios::app) << "\n\n";
    if (!path.ends_with("model.safetensors")) continue;
    const xgrad::SafetensorsFile file(path);
    xgrad::write_safetensors(file.tensors(), path, {{"it is", "old"}});
  }
}

using Call = std::function<void(const std::string&)>;

/// Saves over an old folder, and kills the process at every `stride`-th call that may change files.
void expect_old_or_new(const std::string& model, const Call& save, const Call& load, std::size_t stride) {
  const xgrad_tests::TemporaryFolder first;  // of another process than the one that saves, as it were
  write_old(model, first.path("model"));
  const auto in_new_folder = [&](std::size_t call,
                                 const std::function<void(Ending, const std::string&)>& use) {
    const xgrad_tests::TemporaryFolder temporary;
    const std::string folder = temporary.path("model");
    fs::copy(first.path("model"), folder, fs::copy_options::recursive);
    use(killed_at(call, [&] { save(folder); }), folder);
    return temporary.file_count();
  };
  std::map<std::string, std::string> old_files, new_files;
  constexpr std::size_t never = 1'000'000;
  Ending ending = Ending::killed;
  in_new_folder(0, [&](Ending, const std::string& folder) { old_files = files_in(folder); });
  in_new_folder(never, [&](Ending how, const std::string& folder) {
    ending = how;
    new_files = files_in(folder);
  });
  if (ending == Ending::not_traced) GTEST_SKIP() << "no process may be traced here";
  ASSERT_EQ(ending, Ending::done);
  ASSERT_NE(old_files, new_files);
  std::size_t old_ones = 0, new_ones = 0;
  for (std::size_t call = 0; ending != Ending::done || call == 0; call += stride) {
    in_new_folder(call, [&](Ending how, const std::string& folder) {
      ending = how;
      EXPECT_NE(how, Ending::failed);
      load(folder);
      const auto found = files_in(folder);
      EXPECT_TRUE(found == old_files || found == new_files) << "mixed at call " << call;
      ++(found == new_files ? new_ones : old_ones);
      EXPECT_EQ(killed_at(never, [&] { save(folder); }), Ending::done);
      EXPECT_TRUE(files_in(folder) == new_files);
      for (const auto& entry : fs::directory_iterator(folder))
        EXPECT_FALSE(entry.path().filename().string().starts_with(".xgrad-")) << call;
    });
  }
  EXPECT_GT(old_ones, 3u);
  EXPECT_GT(new_ones, 1u);
}

Call loaded_as(const auto& from_folder) {
  return [=](const std::string& folder) { EXPECT_NO_THROW(from_folder(folder)); };
}

TEST(SavedFolders, OfASentenceEmbedder) {
  const std::string model = model_folder("st_dense_identity");
  const auto embedder = SentenceEmbedder<float>::from_folder(model);
  expect_old_or_new(
      model, [&](const std::string& folder) { embedder.save(folder); },
      loaded_as([](const std::string& folder) { return SentenceEmbedder<float>::from_folder(folder); }), 4);
}

TEST(SavedFolders, OfACrossEncoder) {
  const std::string model = model_folder("bert_classifier");
  const auto encoder = CrossEncoder<float>::from_folder(model);
  expect_old_or_new(
      model, [&](const std::string& folder) { encoder.save(folder); },
      loaded_as([](const std::string& folder) { return CrossEncoder<float>::from_folder(folder); }), 7);
}

TEST(SavedFolders, OfAModelAlone) {
  const std::string model = model_folder("bert_classifier");
  const auto classifier = SequenceClassifier<float>::from_folder(model);
  expect_old_or_new(
      model, [&](const std::string& folder) { save_folder(classifier, folder); },
      loaded_as([](const std::string& folder) { return SequenceClassifier<float>::from_folder(folder); }), 2);
}

TEST(SavedFolders, OfADecoder) {
  const std::string model = XGRAD_PRETRAINED_DIR "/../decoders/llama_text";
  const auto decoder = CausalLM<float>::from_folder(model);
  expect_old_or_new(
      model, [&](const std::string& folder) { save_folder(decoder, folder); },
      loaded_as([](const std::string& folder) { return CausalLM<float>::from_folder(folder); }), 5);
}

TEST(SavedFolders, OfAModelAndItsTokenizer) {
  const std::string model = model_folder("bert_classifier");
  const auto classifier = SequenceClassifier<float>::from_folder(model);
  const auto tokenizer = Tokenizer::from_folder(model);
  expect_old_or_new(
      model,
      [&](const std::string& folder) {
        apps::save_with_tokenizer([&](const std::string& other) { save_folder(classifier, other); },
                                  tokenizer, folder);
      },
      loaded_as([](const std::string& folder) { return SequenceClassifier<float>::from_folder(folder); }), 5);
}

TEST(SavedFolders, OfATokenizer) {
  const std::string model = model_folder("bert_classifier");
  const auto tokenizer = Tokenizer::from_folder(model);
  expect_old_or_new(
      model, [&](const std::string& folder) { tokenizer.save(folder); },
      loaded_as([](const std::string& folder) { return Tokenizer::from_folder(folder); }), 4);
}

TEST(SavedFolders, OfATrainedTokenizer) {
  const xgrad_tests::TemporaryFolder temporary;
  const std::string old_word_piece = temporary.path("word_piece"), old_bpe = temporary.path("bpe");
  using namespace xgrad::tokenizers;
  write_word_piece(old_word_piece,
                   std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"});
  write_byte_level_bpe(old_bpe, train_byte_level_bpe(std::vector<std::string>{"a"}, {.vocab_size = 256}));
  const auto load = loaded_as([](const std::string& folder) { return Tokenizer::from_folder(folder); });
  const std::vector<std::string> texts{"a word", "a word and words"};
  const std::vector<std::string> vocabulary = train_word_piece(texts, {.vocab_size = 30});
  const ByteLevelBpe trained = train_byte_level_bpe(texts, {.vocab_size = 260});
  expect_old_or_new(
      old_word_piece, [&](const std::string& folder) { write_word_piece(folder, vocabulary); }, load, 4);
  expect_old_or_new(
      old_bpe, [&](const std::string& folder) { write_byte_level_bpe(folder, trained); }, load, 4);
}

TEST(SavedFolders, OfAProgram) {
  const std::string model = model_folder("bert_classifier"), program = XGRAD_PROGRAMS_DIR "/quantize";
  expect_old_or_new(
      model,
      [&](const std::string& folder) {
        ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // LeakSanitizer ends a program that is traced
        ::execl(program.c_str(), "quantize", model.c_str(), folder.c_str(), nullptr);
      },
      loaded_as([](const std::string& folder) { return SequenceClassifier<float>::from_folder(folder); }), 9);
}

}  // namespace saved_folders_test
