// Models in the cache of Hugging Face's library, and paths that are no folders of models.

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/pretrained.hpp>

#include "../expect_error.hpp"
#include "../program.hpp"
#include "folder.hpp"

namespace find_model_test {

using xgrad::FileError, xgrad::tokenizers::Tokenizer;
using namespace xgrad::pretrained;
using xgrad_tests::message_of, xgrad_tests::model_folder;

/// A cache with one model, and an environment without variables that name another one.
class FindModelTest : public testing::Test {
 protected:
  static constexpr const char* variables[] = {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"};

  FindModelTest() {
    for (const char* name : variables) {
      const char* const value = std::getenv(name);
      before_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      ::unsetenv(name);
    }
  }
  ~FindModelTest() override {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }

  /// Puts a model into the cache `below` the temporary folder, as the library does: with links to blobs.
  std::string add_model(const std::string& below, const std::string& folder) const {
    const std::string model = folder_.path(below + "/" + folder), snapshot = model + "/snapshots/0a1b2c";
    std::filesystem::create_directories(model + "/refs");
    std::filesystem::create_directories(snapshot);
    folder_.write(below + "/" + folder + "/refs/main", "0a1b2c");
    for (const auto& file : std::filesystem::recursive_directory_iterator(model_folder("bert_sentence"))) {
      const auto target = snapshot / std::filesystem::relative(file.path(), model_folder("bert_sentence"));
      if (file.is_directory()) {
        std::filesystem::create_directories(target);
      } else {
        std::filesystem::create_symlink(file.path(), target);
      }
    }
    return snapshot;
  }

  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

  xgrad_tests::TemporaryFolder folder_;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(FindModelTest, LooksIntoTheCacheThatTheEnvironmentNames) {
  const std::string name = "sentence-transformers/all-MiniLM",
                    folder = "models--sentence-transformers--all-MiniLM";
  set("HOME", folder_.path("home"));
  const std::string at_home = add_model("home/.cache/huggingface/hub", folder);
  EXPECT_EQ(find_model(name), at_home);
  set("XDG_CACHE_HOME", folder_.path("caches"));
  const std::string in_caches = add_model("caches/huggingface/hub", folder);
  EXPECT_EQ(find_model(name), in_caches);
  set("HF_HOME", "~/hf");
  const std::string in_hf = add_model("home/hf/hub", folder);
  EXPECT_EQ(find_model(name), in_hf);
  set("HF_HUB_CACHE", folder_.path("hub"));
  const std::string in_hub = add_model("hub", folder);
  EXPECT_EQ(find_model(name), in_hub);
  EXPECT_EQ(find_model(in_hub), in_hub);

  const std::string vectors = xgrad_tests::output_of("embed " + name + " 'my feet'");
  EXPECT_EQ(vectors, xgrad_tests::output_of("embed " + model_folder("bert_sentence") + " 'my feet'"));
  const std::string plain = add_model("hub", "models--bert-tiny");
  EXPECT_EQ(find_model("bert-tiny"), plain);
}

TEST_F(FindModelTest, AFolderIsFoundBeforeTheCache) {
  set("HF_HUB_CACHE", folder_.path("hub"));
  add_model("hub", "models--org--model");
  std::filesystem::create_directories(folder_.path("org/model"));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path(""));
  EXPECT_EQ(find_model("org/model"), "org/model");
  std::filesystem::current_path(before);
}

TEST_F(FindModelTest, TellsWhereItLooked) {
  const std::string hub = folder_.path("hub");
  set("HF_HUB_CACHE", hub);
  const auto refusal = [](const std::string& name) {
    return message_of<FileError>([&] { find_model(name); });
  };
  EXPECT_EQ(refusal("org/model"),
            "org/model: must be the folder of a model or the name of one in the hub's cache, got neither " +
                std::filesystem::current_path().string() + "/org/model nor " + hub + "/models--org--model");
  for (const std::string name : {"/no/such", "a/b/c", "../x", "", "org/", "org/..", "-x"})
    EXPECT_EQ(refusal(name), name + ": must be the folder of a model, got no such path");
  add_model("hub", "models--org--model");
  folder_.write("hub/models--org--model/refs/main", "../../..");
  EXPECT_EQ(refusal("org/model"),
            hub + "/models--org--model/refs/main: must name a snapshot, got \"../../..\"");
  folder_.write("hub/models--org--model/refs/main", "ffff\n");
  EXPECT_EQ(refusal("org/model"), "org/model: is not complete in the hub's cache, as there is no " + hub +
                                      "/models--org--model/snapshots/ffff");
  std::filesystem::remove(hub + "/models--org--model/refs/main");
  EXPECT_EQ(refusal("org/model"), "org/model: is not complete in the hub's cache, as there is no " + hub +
                                      "/models--org--model/refs/main");
}

TEST_F(FindModelTest, RefusesFilesAndAdapters) {
  const std::string file = folder_.write("model.pt", "PK");
  const std::string message =
      file +
      ": must be a folder with config.json, model.safetensors and the files of a tokenizer, "
      "got a file; save one from Python with model.save_pretrained(folder) and "
      "tokenizer.save_pretrained(folder)";
  EXPECT_EQ(message_of<FileError>([&] { Encoder<float>::from_folder(file); }), message);
  EXPECT_EQ(message_of<FileError>([&] { Tokenizer::from_folder(file); }), message);
  EXPECT_EQ(message_of<FileError>([&] { SentenceEmbedder<float>::from_folder(file); }), message);

  std::filesystem::create_directory(folder_.path("adapter"));
  folder_.write("adapter/adapter_config.json",
                R"({"base_model_name_or_path": "org/base", "peft_type": "LORA"})");
  const std::string adapter = folder_.path("adapter");
  EXPECT_EQ(
      message_of<FileError>([&] { Encoder<float>::from_folder(adapter); }),
      adapter +
          ": must be a whole model, got an adapter of \"org/base\", which is not supported; save both as one "
          "from Python with model.merge_and_unload()");
  folder_.write("adapter/config.json", "{}");
  EXPECT_TRUE(message_of<FileError>([&] {
                Encoder<float>::from_folder(adapter);
              }).starts_with(adapter + ": must be a whole model, got an adapter"))
      << "beside a model whose numbers it changes";
}

}  // namespace find_model_test
