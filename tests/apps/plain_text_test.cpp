// Texts without labels.

#include "../../apps/corpora/plain_text.hpp"

#include <zlib.h>

#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "files.hpp"

namespace plain_text_test {

using xgrad_tests::message_of;

TEST(PlainTextTest, IsReadAsTextsAndAsAWhole) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string path = folder.write("text", "\nmy cat\r\nsat\n \t\n\n黑猫");
  EXPECT_EQ(apps::texts_of(path), (std::vector<std::string>{"my cat\nsat\n", "黑猫\n"}));
  EXPECT_EQ(apps::whole_text_of(path), "\nmy cat\nsat\n \t\n\n黑猫\n");
  EXPECT_EQ(apps::exact_text_of(path), "\nmy cat\r\nsat\n \t\n\n黑猫");
  for (const std::string text : {"a\n", "a\r", "a\r\n\r\n", "a"})
    EXPECT_EQ(apps::exact_text_of(folder.write("exact", text)), text);
  EXPECT_EQ(apps::exact_text_of(folder.write("marked",
                                             "\xEF\xBB\xBF"
                                             "a\n")),
            "a\n");
  const std::string compressed = folder.path("text.gz");
  const gzFile file = gzopen(compressed.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, "a\n\nb\n", 5), 5);
  ASSERT_EQ(gzclose(file), Z_OK);
  EXPECT_EQ(apps::whole_text_of(compressed), "a\n\nb\n");
}

TEST(PlainTextTest, RefusesWhatIsNone) {
  const xgrad_tests::TemporaryFolder folder;
  for (const auto& [bytes, error] : {std::pair{"", ": must hold text, got blank lines or none"},
                                     {"\n \t\n", ": must hold text, got blank lines or none"},
                                     {"a\ncaf\xE9\n", ":2: a line must be valid UTF-8, got \"caf\\xE9\""}}) {
    const std::string path = folder.write("text", bytes);
    EXPECT_EQ(message_of([&] { apps::texts_of(path); }), path + error);
    EXPECT_EQ(message_of([&] { apps::whole_text_of(path); }), path + error);
    EXPECT_EQ(message_of([&] { apps::exact_text_of(path); }), path + error);
  }
  const std::string nowhere = folder.path("missing");
  EXPECT_EQ(message_of([&] { apps::whole_text_of(nowhere); }),
            nowhere + ": cannot open: No such file or directory");
}

}  // namespace plain_text_test
