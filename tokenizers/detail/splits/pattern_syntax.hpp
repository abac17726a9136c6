#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "../unicode/classes.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// A part of a regular expression.
struct PatternNode {
  enum class Kind : std::uint8_t {
    sequence,         // of the children, also of none
    choice,           // the first child that leads to a match
    set,              // one character of `ranges`
    repeat,           // of the child
    atomic,           // the child's first match alone
    look_ahead,       // the child matches here, or with `negative` does not
    look_behind,      // the child matches what ends here
    line_begin,       // ^
    line_end,         // $
    text_begin,       // \A
    text_end,         // \z
    last_line_end,    // \Z
    word_boundary,    // \b
    no_word_boundary  // \B
  };
  static constexpr std::uint32_t no_limit = std::numeric_limits<std::uint32_t>::max();

  Kind kind = Kind::sequence;
  std::vector<PatternNode> children = {};
  unicode::Ranges ranges = {};
  std::uint32_t least = 0, most = no_limit;
  bool lazy = false, negative = false;
};

/// Reads a regular expression as Oniguruma does with Ruby's syntax, in which Hugging Face's library reads
/// them (https://github.com/kkos/oniguruma/blob/master/doc/RE): literals, escapes, classes with properties
/// and &&, groups, options i, m and x, repetitions, look-around, atomic groups, anchors. Throws ValueError
/// for an expression that is none, and for what it does not support: references to groups, calls,
/// conditions, absent groups, \G, \K, \X, \y and repetitions of more than 100000.
PatternNode parsed_pattern(std::string_view source);

}  // namespace xgrad::tokenizers::detail
