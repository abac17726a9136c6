#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "../normalizers/normalizer.hpp"
#include "byte_alphabet.hpp"
#include "pattern.hpp"

// Not installed: how a normalised text is split into words before a model reads them
// (https://github.com/huggingface/tokenizers/tree/main/tokenizers/src/pre_tokenizers).

namespace xgrad::tokenizers::detail {

/// What becomes of the parts of a text that match, and of those between them.
enum class SplitBehavior : std::uint8_t {
  removed,               // the matches go
  isolated,              // each part is a word
  contiguous,            // matches side by side are one word
  merged_with_previous,  // a match belongs to the part before
  merged_with_next
};

/// Calls on_word(begin, end) for the words, of the parts of a text that are added in order, until it returns
/// false. Words of nothing are left out.
template <class OnWord>
class SplitParts {
 public:
  SplitParts(SplitBehavior behavior, OnWord& on_word) : behavior_(behavior), on_word_(on_word) {}

  bool add(std::size_t begin, std::size_t end, bool matches) {
    switch (behavior_) {
      case SplitBehavior::removed:
        return matches || put(begin, end);
      case SplitBehavior::isolated:
        return put(begin, end);
      case SplitBehavior::contiguous:
        return has_pending_ && matches == pending_matches_ ? extend(end) : replace(begin, end, matches);
      case SplitBehavior::merged_with_previous:
        if (!has_pending_ || !matches || pending_matches_) return replace(begin, end, matches);
        pending_matches_ = true;
        return extend(end);
      case SplitBehavior::merged_with_next:
        break;
    }
    if (has_pending_ && pending_matches_ && !matches) {
      pending_matches_ = false;
      return extend(end);
    }
    return replace(begin, end, matches);
  }

  bool finish() { return !has_pending_ || put(pending_begin_, pending_end_); }

 private:
  bool put(std::size_t begin, std::size_t end) { return begin == end || on_word_(begin, end); }

  bool extend(std::size_t end) {
    pending_end_ = end;
    return true;
  }

  bool replace(std::size_t begin, std::size_t end, bool matches) {
    const bool more = finish();
    has_pending_ = true;
    pending_begin_ = begin;
    pending_end_ = end;
    pending_matches_ = matches;
    return more;
  }

  SplitBehavior behavior_;
  OnWord& on_word_;
  bool has_pending_ = false, pending_matches_ = false;
  std::size_t pending_begin_ = 0, pending_end_ = 0;
};

/// Splits at a pattern.
struct PatternSplit {
  Pattern pattern;
  SplitBehavior behavior;
  bool inverts = false;  // takes what does not match for the matches
};

/// Splits at characters of a set.
struct CharacterSplit {
  CharacterSet characters;
  SplitBehavior behavior;
};

/// GPT-2's bytes, which the model reads: what comes after in a splitter reads the characters that stand for
/// them.
struct ByteLevelSplit {
  bool add_prefix_space;  // before a text that does not begin with a blank
  bool use_regex;         // splits by GPT-2's pattern
};

/// Shows blanks as another character.
struct MetaspaceSplit {
  enum class Prepend : std::uint8_t { always, first, never } prepend;
  std::string blank;  // U+2581
  bool split;         // words begin with it
};

class Splitter {
 public:
  using Step = std::variant<PatternSplit, CharacterSplit, ByteLevelSplit, MetaspaceSplit>;

  /// Without steps a text is one word. At most one of them may be a ByteLevelSplit or a MetaspaceSplit.
  explicit Splitter(std::vector<Step> steps = {}) : steps_(std::move(steps)) {
    const auto is_byte_level = [](const Step& step) { return std::holds_alternative<ByteLevelSplit>(step); };
    byte_level_ =
        static_cast<std::size_t>(std::find_if(steps_.begin(), steps_.end(), is_byte_level) - steps_.begin());
  }

  /// Whether the words are bytes, which need not be whole characters.
  bool has_bytes() const { return byte_level_ < steps_.size(); }

  /// Calls on_word(passage) for each word until it returns false; returns true if it never did.
  template <class OnWord>
  bool operator()(const Passage& passage, OnWord&& on_word) const {
    Work work{std::vector<Pattern::Work>(steps_.size(), Pattern::Work(passage.text.size())), {}};
    return apply(0, passage, work, on_word);
  }

 private:
  struct Work {
    std::vector<Pattern::Work>
        patterns;        // of each step: a later one matches between two matches of one before
    TextBuffer changed;  // of the one step that changes texts
  };

  template <class OnWord>
  bool apply(std::size_t step, const Passage& passage, Work& work, OnWord& on_word) const {
    if (step == steps_.size()) return passage.text.empty() || on_word(passage);
    const auto on_part = [&](const Passage& part) { return apply(step + 1, part, work, on_word); };
    return std::visit([&](const auto& rule) { return split(rule, step, passage, work, on_part); },
                      steps_[step]);
  }

  template <class OnPart>
  bool split(const PatternSplit& rule, std::size_t step, const Passage& passage, Work& work,
             const OnPart& on_part) const {
    return split_parts(step, passage, rule.behavior, on_part, [&](std::string_view text, auto&& add) {
      std::size_t done = 0;
      const bool more =
          rule.pattern.for_each_match(text, work.patterns[step], [&](std::size_t begin, std::size_t end) {
            const bool goes_on = done == begin || add(done, begin, rule.inverts);
            done = end;
            return goes_on && add(begin, end, !rule.inverts);
          });
      return more && add(done, text.size(), rule.inverts);
    });
  }

  template <class OnPart>
  bool split(const CharacterSplit& rule, std::size_t step, const Passage& passage, Work&,
             const OnPart& on_part) const {
    return split_parts(step, passage, rule.behavior, on_part, [&](std::string_view text, auto&& add) {
      std::size_t done = 0;
      for (std::size_t i = 0, next = 0; i < text.size(); i = next) {
        next = i + unicode::first_length(text.substr(i));
        if (!rule.characters.contains(unicode::first_of(text.substr(i)))) continue;
        if ((done < i && !add(done, i, false)) || !add(i, next, true)) return false;
        done = next;
      }
      return add(done, text.size(), false);
    });
  }

  template <class OnPart>
  bool split(const ByteLevelSplit& rule, std::size_t, const Passage& passage, Work& work,
             const OnPart& on_part) const {
    if (!rule.add_prefix_space || passage.text.starts_with(' ')) return split_bytes(rule, passage, on_part);
    add_blank(passage, work.changed);
    return split_bytes(rule, {work.changed.text, work.changed.sources.data()}, on_part);
  }

  template <class OnPart>
  bool split_bytes(const ByteLevelSplit& rule, const Passage& passage, const OnPart& on_part) const {
    if (!rule.use_regex) return on_part(passage);
    for (std::size_t i = 0; i < passage.text.size();) {
      const std::size_t end = i + first_word(passage.text.substr(i));
      if (!on_part(passage.part(i, end))) return false;
      i = end;
    }
    return true;
  }

  template <class OnPart>
  bool split(const MetaspaceSplit& rule, std::size_t, const Passage& passage, Work& work,
             const OnPart& on_part) const {
    TextBuffer& shown = work.changed;
    show_blanks(rule, passage, shown);
    const Passage all{shown.text, shown.sources.data()};
    for (std::size_t begin = 0; begin < shown.text.size();) {
      const std::string_view rest = std::string_view(shown.text).substr(begin);
      const std::size_t after_blank = rest.starts_with(rule.blank) ? rule.blank.size() : 0;
      const std::size_t length = rule.split ? rest.find(rule.blank, after_blank) : rest.size();
      const std::size_t end = begin + std::min(length, rest.size());
      if (!on_part(all.part(begin, end))) return false;
      begin = end;
    }
    return true;
  }

  /// Splits by what find_parts(text, add) adds of the text, which are characters that stand for bytes behind
  /// a ByteLevelSplit.
  template <class OnPart, class FindParts>
  bool split_parts(std::size_t step, const Passage& passage, SplitBehavior behavior, const OnPart& on_part,
                   FindParts&& find_parts) const {
    const auto split = [&](std::string_view text, auto&& on_word) {
      SplitParts parts(behavior, on_word);
      const auto add = [&](std::size_t begin, std::size_t end, bool matches) {
        return parts.add(begin, end, matches);
      };
      return find_parts(text, add) && parts.finish();
    };
    if (step < byte_level_) {
      const auto on_word = [&](std::size_t begin, std::size_t end) {
        return on_part(passage.part(begin, end));
      };
      return split(passage.text, on_word);
    }
    std::vector<std::uint32_t> bytes;
    const std::string shown = shown_bytes(passage.text, bytes);
    const auto on_word = [&](std::size_t begin, std::size_t end) {
      return on_part(passage.part(bytes[begin], bytes[end]));
    };
    return split(std::string_view(shown), on_word);
  }

  /// The text with a blank before it, which has the source of its first character.
  static void add_blank(const Passage& passage, TextBuffer& to);
  static void show_blanks(const MetaspaceSplit& rule, const Passage& passage, TextBuffer& shown);
  /// Bytes as characters, and of each place in these the byte.
  static std::string shown_bytes(std::string_view text, std::vector<std::uint32_t>& bytes);

  std::vector<Step> steps_;
  std::size_t byte_level_;  // the place of that step, or the number of steps
};

}  // namespace xgrad::tokenizers::detail
