#include "../failing_memory.hpp"

#include <cstddef>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/tokenizers/tokenizer.hpp>

#include "../../base/detail/text/json.hpp"

namespace failing_allocations_test {

using xgrad::detail::Json;
using xgrad::detail::JsonTree, xgrad::detail::OrderedJsonTree;
using xgrad::tokenizers::Tokenizer;

/// Calls f with each allocation failing that is `stride` after another, alone or with all after it, until f
/// ends without an error. Returns the number of failures, each of which must be std::bad_alloc.
template <class F>
std::size_t fail_each(bool all, std::size_t stride, const F& f) {
  for (std::size_t i = 0;; ++i) {
    const xgrad_tests::FailingMemory memory(i * stride, all);
    try {
      f();
      EXPECT_FALSE(memory.failed()) << "an error was lost";
      return i;
    } catch (const std::bad_alloc&) {
    }
  }
}

TEST(FailingAllocationsTest, JsonIsDestroyedWithoutMemory) {
  const std::string text =
      R"({"a": [[1, 2, {"b": ["a text that is not kept in the string itself", null]}], {}, []],
                               "c": {"d": {"e": {"f": [true, 2.5, "x"]}}, "g": [[], [[]], {"h": {}}]}})";
  for (const bool all : {false, true})
    EXPECT_GT(fail_each(all, 1, [&] { Json::parse("f", text).at("c").at("g").items(); }), 30U);
}

/// All the ways to a value: lists of braces, copies, texts, and members of nothing, which become an object.
template <class Tree>
std::string built_text() {
  Tree all{{"a", {{"b", {1, 2, {{"c", "a text that is not kept in the string itself"}}}}, {"d", {}}}},
           {"e", Tree::parse(R"([[{"f": [1.5, null, {}]}], "x"])")}};
  const Tree copy = all;
  all["g"]["h"].push_back(copy);
  all.update({{"i", {{"j", copy.at("a")}}}});
  return all.dump();
}

TEST(FailingAllocationsTest, TreesOfAllKindsNeedNoMemoryToEnd) {
  const std::string expected = built_text<JsonTree>();
  EXPECT_EQ(JsonTree::parse(expected)["g"]["h"][0]["e"][0][0]["f"].dump(), "[1.5,null,{}]");
  EXPECT_EQ(JsonTree::parse(built_text<OrderedJsonTree>()), JsonTree::parse(expected));
  for (const bool all : {false, true}) {
    EXPECT_GT(fail_each(all, 1, [&] { EXPECT_EQ(built_text<JsonTree>(), expected); }), 100U);
    EXPECT_GT(fail_each(all, 1, [] { static_cast<void>(built_text<OrderedJsonTree>()); }), 100U);
  }
}

TEST(FailingAllocationsTest, AVocabularyThatDoesNotFitIsBadAlloc) {
  const std::string folder = XGRAD_PRETRAINED_DIR "/roberta_mlm";
  const Tokenizer before = Tokenizer::from_folder(folder);
  for (const bool all : {false, true})
    EXPECT_GT(fail_each(all, 17, [&] { Tokenizer::from_folder(folder); }), 30U);
  EXPECT_EQ(Tokenizer::from_folder(folder).encode("the old house").ids, before.encode("the old house").ids);
}

}  // namespace failing_allocations_test
