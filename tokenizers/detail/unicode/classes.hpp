#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

// Not installed: sets of characters for split patterns, with the Unicode of Hugging Face's library.

namespace xgrad::tokenizers::detail::unicode {

struct CharacterRange {
  char32_t first, last;
};

/// Sorted, without overlaps and neighbours.
using Ranges = std::vector<CharacterRange>;

Ranges sorted_ranges(Ranges ranges);
Ranges complement(const Ranges& ranges);
Ranges intersection(const Ranges& a, const Ranges& b);

/// The characters of \p{name}: a category or a group of categories ("Lu", "L", "Letter"), a script ("Han"),
/// or a property ("Alphabetic"). Case, blanks, "_" and "-" do not count. Empty for an unknown name.
std::optional<Ranges> property(std::string_view name);

/// The characters of [[:name:]]; empty for an unknown name.
std::optional<Ranges> posix_class(std::string_view name);

/// Those of \w, and of Rust's char::is_numeric.
Ranges word_characters();
Ranges numeric_characters();

/// With the characters that differ from one of them in case only.
Ranges with_other_cases(const Ranges& ranges);

/// Several characters for which a pattern without case takes one.
struct Fold {
  char32_t character;
  std::vector<char32_t> text;
};

/// All of them.
std::span<const Fold> folded_texts();

}  // namespace xgrad::tokenizers::detail::unicode
