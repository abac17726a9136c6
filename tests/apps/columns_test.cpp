// The tables that programs print: columns of UTF-8 texts, and attention as shades of grey.

#include "../../apps/common/columns.hpp"

#include <sstream>

#include <gtest/gtest.h>

#include "../../apps/training/heat_map.hpp"

namespace columns_test {

using namespace apps;

TEST(ColumnsTest, CharactersAreCodePoints) {
  EXPECT_EQ(width_of(""), 0u);
  EXPECT_EQ(width_of("cat"), 3u);
  EXPECT_EQ(width_of("größe"), 5u);
  EXPECT_EQ(width_of("黑猫"), 2u);
  EXPECT_EQ(width_of("a😀é"), 3u);
}

TEST(ColumnsTest, CutBetweenCharacters) {
  for (const auto& [count, first, last] : {std::tuple{0u, "", ""},
                                           {1u, "é", "z"},
                                           {2u, "é黑", "😀z"},
                                           {3u, "é黑😀", "黑😀z"},
                                           {4u, "é黑😀z", "é黑😀z"},
                                           {9u, "é黑😀z", "é黑😀z"}}) {
    EXPECT_EQ(first_characters("é黑😀z", count), first) << count;
    EXPECT_EQ(last_characters("é黑😀z", count), last) << count;
  }
  EXPECT_EQ(first_characters("", 3), "");
  EXPECT_EQ(last_characters("", 3), "");
}

TEST(ColumnsTest, FillUpWithBlanksAndNeverCut) {
  EXPECT_EQ(on_the_left("黑猫", 4), "黑猫  ");
  EXPECT_EQ(on_the_right("黑猫", 4), "  黑猫");
  EXPECT_EQ(on_the_left("größe", 5), "größe");
  EXPECT_EQ(on_the_right("größe", 3), "größe");
  EXPECT_EQ(on_the_left("", 2), "  ");
}

TEST(HeatMapTest, IsALineForEachHeadOfTheWord) {
  // Two layers of two heads over three words; only the numbers of the second query matter.
  xgrad::Array<float> first({2, 2, 3, 3}, 0.99F), second({2, 2, 3, 3}, 0.99F);
  const float rows[4][3] = {
      {0, 0.19F, 0.21F}, {0.39F, 0.41F, 0.59F}, {0.61F, 0.79F, 0.81F}, {1, 0.5F, 0.125F}};
  for (std::size_t head = 0; head < 2; ++head) {
    for (std::size_t key = 0; key < 3; ++key) {
      first(0, head, 1, key) = rows[head][key];
      second(0, head, 1, key) = rows[2 + head][key];
    }
  }
  std::ostringstream out;
  print_attention_from(out, {xgrad::Variable<float>(first), xgrad::Variable<float>(second)}, 1,
                       {"a", "extraordinary", "黑猫"});
  EXPECT_EQ(out.str(),
            "                  a        extraord 黑猫\n"
            "  layer 0 head 0 0.00     0.19     0.21 ░░\n"
            "  layer 0 head 1 0.39 ░░  0.41 ▒▒  0.59 ▒▒\n"
            "  layer 1 head 0 0.61 ▓▓  0.79 ▓▓  0.81 ██\n"
            "  layer 1 head 1 1.00 ██  0.50 ▒▒  0.12\n");
}

}  // namespace columns_test
