#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/tokenizers/tokenizer.hpp>

#include "../../tokenizers/detail/files/json.hpp"

namespace failing_allocations_test {

/// Which allocations of this thread fail: those after `left` more, or of these the first alone.
struct Failing {
  bool active = false, all = false;
  std::size_t left = 0;
};
thread_local Failing failing;

void* allocate(std::size_t size, std::size_t alignment) {
  if (failing.active) {
    if (failing.left == 0) {
      failing.active = failing.all;
      throw std::bad_alloc();
    }
    --failing.left;
  }
  void* const memory = alignment == 0
                           ? std::malloc(size == 0 ? 1 : size)
                           : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace failing_allocations_test

void* operator new(std::size_t size) { return failing_allocations_test::allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return failing_allocations_test::allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace failing_allocations_test {

using xgrad::tokenizers::Tokenizer;
using xgrad::tokenizers::detail::Json;

/// Calls f with each allocation failing that is `stride` after another, alone or with all after it, until f
/// ends without an error. Returns the number of failures, each of which must be std::bad_alloc.
template <class F>
std::size_t fail_each(bool all, std::size_t stride, const F& f) {
  for (std::size_t i = 0;; ++i) {
    failing = {.active = true, .all = all, .left = i * stride};
    try {
      f();
      const bool was_reached = !failing.active;
      failing = {};
      EXPECT_FALSE(was_reached) << "an error was lost";
      return i;
    } catch (const std::bad_alloc&) {
      failing = {};
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

TEST(FailingAllocationsTest, AVocabularyThatDoesNotFitIsBadAlloc) {
  const std::string folder = XGRAD_PRETRAINED_DIR "/roberta_mlm";
  const Tokenizer before = Tokenizer::from_folder(folder);
  for (const bool all : {false, true})
    EXPECT_GT(fail_each(all, 17, [&] { Tokenizer::from_folder(folder); }), 30U);
  EXPECT_EQ(Tokenizer::from_folder(folder).encode("the old house").ids, before.encode("the old house").ids);
}

}  // namespace failing_allocations_test
