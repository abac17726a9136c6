// Which outputs would overwrite which inputs.

#include "../../apps/common/paths.hpp"

#include <filesystem>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "files.hpp"

namespace paths_test {

namespace fs = std::filesystem;
using apps::PathUse;

class PathsTest : public testing::Test {
 protected:
  PathsTest() {
    for (const char* name : {"model", "model/1_Pooling", "inside", "data"})
      fs::create_directory(folder_.path(name));
    for (const char* name : {"model/config.json", "model/model.safetensors", "model/1_Pooling/config.json",
                             "model/notes.txt", "data/text", "text"})
      folder_.write(name, "some text");
    fs::create_directory_symlink("model", folder_.path("link"));
    fs::create_directory_symlink(".", folder_.path("here"));
  }

  bool refuses(const std::string& in, const std::string& out, PathUse in_use = PathUse::input,
               PathUse out_use = PathUse::output) const {
    try {
      apps::check_paths({{"IN", folder_.path(in), in_use}, {"OUT", folder_.path(out), out_use}});
      return false;
    } catch (const std::invalid_argument&) {
      return true;
    }
  }

  xgrad_tests::TemporaryFolder folder_;
};

TEST_F(PathsTest, AModelIsNotSavedInTheFolderThatItComesFrom) {
  for (const char* out : {"model", "./model", "model/", "model/.", "model/1_Pooling/..", "link", "link/",
                          "here/model", "here/here/link/"}) {
    EXPECT_TRUE(refuses("model", out)) << out;
    EXPECT_TRUE(refuses(out, "model")) << out;
  }
  for (const char* out : {"new", "model/new", "inside", "."}) EXPECT_FALSE(refuses("model", out)) << out;
}

TEST_F(PathsTest, AFolderWithLinksToTheModelIsNotWritten) {
  fs::create_directory(folder_.path("symbolic"));
  fs::create_symlink("../model/model.safetensors", folder_.path("symbolic/model.safetensors"));
  fs::create_directory(folder_.path("hard"));
  fs::create_hard_link(folder_.path("model/config.json"), folder_.path("hard/config.json"));
  fs::create_directory(folder_.path("module"));
  fs::create_directory_symlink("../model/1_Pooling", folder_.path("module/1_Pooling"));
  for (const char* out : {"symbolic", "hard", "module"}) EXPECT_TRUE(refuses("model", out)) << out;
}

TEST_F(PathsTest, AFileOfTheModelIsNotWritten) {
  fs::create_symlink("model/config.json", folder_.path("symbolic"));
  fs::create_hard_link(folder_.path("model/model.safetensors"), folder_.path("hard"));
  for (const char* out : {"model/config.json", "here/link/config.json", "symbolic", "hard",
                          "model/1_Pooling/config.json", "model/vocab.txt"})
    EXPECT_TRUE(refuses("model", out)) << out;
  for (const char* out : {"model/notes.txt", "model/run.log", "config.json"})
    EXPECT_FALSE(refuses("model", out)) << out;
  // A cache of models has links to its files, which are elsewhere.
  fs::create_directory(folder_.path("snapshot"));
  folder_.write("blob", "some text");
  fs::create_symlink("../blob", folder_.path("snapshot/model.safetensors"));
  EXPECT_TRUE(refuses("snapshot", "blob"));
  EXPECT_TRUE(refuses("data", "data/text", PathUse::input_folder));
  EXPECT_FALSE(refuses("data", "data/new", PathUse::input_folder));
}

TEST_F(PathsTest, TwoOutputsAreNotOneFile) {
  fs::create_symlink("missing", folder_.path("dangling"));
  const auto both = PathUse::output;
  EXPECT_TRUE(refuses("missing", "dangling", both));
  EXPECT_TRUE(refuses("new", "here/new/", both));
  EXPECT_TRUE(refuses("new/config.json", "new", both)) << "a file of the model that is saved there";
  EXPECT_FALSE(refuses("new/run.log", "new", both));
}

TEST_F(PathsTest, AFolderMayGetFilesBesideThoseThatItHas) {
  EXPECT_FALSE(refuses("model", "here/model", PathUse::input, PathUse::addition));
  EXPECT_TRUE(refuses("text", "here/text", PathUse::input, PathUse::addition));
}

}  // namespace paths_test
