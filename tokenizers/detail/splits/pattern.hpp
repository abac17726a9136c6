#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../unicode/classes.hpp"
#include "../unicode/unicode.hpp"
#include "pattern_syntax.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// A set of characters, to be asked for many.
class CharacterSet {
 public:
  explicit CharacterSet(unicode::Ranges ranges);

  bool contains(char32_t character) const {
    if (character < 128) return (ascii_[character / 64] >> (character % 64) & 1) != 0;
    if (character / 64 < plane_.size()) return (plane_[character / 64] >> (character % 64) & 1) != 0;
    return is_in_ranges(character);
  }

  const unicode::Ranges& ranges() const { return ranges_; }

 private:
  bool is_in_ranges(char32_t character) const;

  std::array<std::uint64_t, 2> ascii_{};
  std::vector<std::uint64_t> plane_;  // bits of the first 65,536 characters, where there are many ranges
  unicode::Ranges ranges_;
};

/// A regular expression (parsed_pattern) that is matched by backtracking: of all matches the leftmost, and of
/// those there the first in the order of its choices and repetitions.
class Pattern {
 public:
  /// Throws ValueError, as parsed_pattern() does, and for an expression that is too large.
  explicit Pattern(std::string_view source);

  /// What matching a text takes: memory, and how many steps it may take in all, which grows with the text, so
  /// that no expression runs for ever.
  class Work {
   public:
    explicit Work(std::size_t text_size) : steps_(base_steps + steps_of_byte * text_size) {}

   private:
    friend class Pattern;

    static constexpr std::size_t base_steps = 10'000'000, steps_of_byte = 200;

    /// Where matching goes on when what was tried fails.
    struct Choice {
      enum class Kind : std::uint8_t { jump, shorten, lengthen, restore } kind;
      std::uint32_t target;      // the instruction, or the slot to restore
      std::size_t place, limit;  // in the text; `limit` bounds a run
    };

    std::size_t steps_;
    std::vector<Choice> choices_;
    std::vector<std::size_t> slots_;         // where iterations began
    std::vector<std::size_t> failed_until_;  // of each alternative: it begins no match before
  };

  /// Calls on_match(begin, end) for one match after another until it returns false; returns true if it never
  /// did. No match of nothing ends where the one before does. Throws ValueError when the steps are used up.
  template <class OnMatch>
  bool for_each_match(std::string_view text, Work& work, OnMatch&& on_match) const {
    begin_text(work);
    std::optional<std::size_t> last_end;
    for (std::size_t from = 0; from <= text.size();) {
      const std::optional<Match> match = find(text, from, work);
      if (!match) break;
      if (match->begin == match->end && match->end == last_end) {
        from += from < text.size() ? unicode::first_length(text.substr(from)) : 1;
        continue;
      }
      if (!on_match(match->begin, match->end)) return false;
      from = match->end;
      last_end = from;
    }
    return true;
  }

 private:
  struct Match {
    std::size_t begin, end;
  };

  enum class Op : std::uint8_t {
    accept,
    character,   // `target`
    set,         // number `target`
    run,         // of characters of the set `target`, from `least` to `most` of them
    jump,        // to `target`
    fork,        // to the next, or else to `target`
    mark,        // the slot `least` takes the place
    progress,    // an iteration since the mark that took nothing goes on at `target`
    look_ahead,  // at what follows, until an accept; then goes on at `target`
    look_behind,
    peek,    // whether the next character is in the set `target`
    atomic,  // as look_ahead, but takes what it has matched
    anchor
  };
  enum class Run : std::uint8_t { greedy, lazy, possessive };

  struct Instruction {
    Op op;
    Run run = Run::greedy;
    bool negative = false;
    PatternNode::Kind anchor = PatternNode::Kind::text_begin;
    std::uint32_t target = 0, least = 0, most = 0;
  };

  /// A choice at the top of the expression.
  struct Alternative {
    std::uint32_t begin;   // its first instruction
    bool begins_with_run;  // without an upper limit
  };

  class Compiler;

  void begin_text(Work& work) const;
  /// The first match that begins at `from` or after.
  std::optional<Match> find(std::string_view text, std::size_t from, Work& work) const;
  /// Matches instructions from `at` until they accept; with `end` only there.
  std::optional<std::size_t> match(std::uint32_t at, std::string_view text, std::size_t place, Work& work,
                                   std::optional<std::size_t> end = {}) const;
  bool looks(const Instruction& instruction, std::uint32_t at, std::string_view text, std::size_t& place,
             Work& work) const;
  bool is_at(PatternNode::Kind anchor, std::string_view text, std::size_t place) const;
  std::size_t run_end(const CharacterSet& set, std::string_view text, std::size_t place,
                      std::size_t most) const;

  std::vector<Instruction> program_;
  std::vector<CharacterSet> sets_;
  std::vector<Alternative> alternatives_;
  /// Bits of the alternatives that may begin with each byte of ASCII; the last one is for all others.
  std::array<std::uint64_t, 129> may_begin_{};
  std::uint64_t may_be_empty_ = 0;
  std::uint32_t slots_ = 0;
};

}  // namespace xgrad::tokenizers::detail
