#include "pattern_syntax.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/detail/text/utf8.hpp"
#include "../../../base/error.hpp"

namespace xgrad::tokenizers::detail {
namespace {

namespace utf8 = xgrad::detail::utf8;
using unicode::Ranges;
using Kind = PatternNode::Kind;

constexpr char32_t last_code_point = 0x10FFFF;
constexpr std::uint32_t most_repeats = 100'000;
constexpr std::size_t deepest = 500, most_nodes = 10'000;

struct PatternOptions {
  bool ignore_case = false, dot_takes_newline = false, extended = false;
};

PatternNode set_of(Ranges ranges) { return {.kind = Kind::set, .ranges = std::move(ranges)}; }

PatternNode set_of(char32_t character) { return set_of(Ranges{{character, character}}); }

PatternNode repeated(PatternNode child, std::uint32_t least, std::uint32_t most, bool lazy = false) {
  PatternNode node{.kind = Kind::repeat, .least = least, .most = most, .lazy = lazy};
  node.children.push_back(std::move(child));
  return node;
}

PatternNode around(Kind kind, PatternNode child, bool negative = false) {
  PatternNode node{.kind = kind, .negative = negative};
  node.children.push_back(std::move(child));
  return node;
}

bool contains(const Ranges& ranges, char32_t character) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const unicode::CharacterRange& range) {
    return range.first <= character && character <= range.last;
  });
}

class PatternParser {
 public:
  explicit PatternParser(std::string_view source) : source_(source) {}

  PatternNode all() {
    if (const std::size_t place = utf8::find_invalid_utf8(source_); place != source_.npos)
      fail("must be UTF-8");
    PatternNode node = alternatives({}, 0);
    if (!at_end()) fail("must not close a group that is not open");
    return node;
  }

 private:
  /// A part of a sequence; a literal of a pattern without case may be part of a character that folds to it.
  struct Item {
    PatternNode node;
    bool may_fold = false;  // what is no set has no ranges, so it does not
  };

  [[noreturn]] void fail(const std::string& rule) const {
    xgrad::detail::fail<ValueError>("pattern ", xgrad::detail::in_quotes(source_.substr(0, 200)), " ", rule,
                                    ", at byte ", next_);
  }

  bool at_end() const { return next_ == source_.size(); }
  bool next_is(std::string_view text) const { return source_.substr(next_).starts_with(text); }

  bool take(std::string_view text) {
    if (!next_is(text)) return false;
    next_ += text.size();
    return true;
  }

  char32_t take_character() {
    if (at_end()) fail("must not end here");
    const char32_t character = utf8::first_of(source_.substr(next_));
    next_ += utf8::first_length(source_.substr(next_));
    return character;
  }

  void count_nodes(std::size_t more = 1) {
    nodes_ += more;
    if (nodes_ > most_nodes) fail("must have at most " + std::to_string(most_nodes) + " parts");
  }

  PatternNode alternatives(PatternOptions options, std::size_t depth) {
    if (depth > deepest) fail("must not have groups in more than " + std::to_string(deepest) + " others");
    PatternNode choice{.kind = Kind::choice};
    do choice.children.push_back(sequence(options, depth));
    while (take("|"));
    return choice.children.size() == 1 ? std::move(choice.children.front()) : choice;
  }

  PatternNode sequence(PatternOptions options, std::size_t depth) {
    std::vector<Item> items;
    while (!at_end() && !next_is("|") && !next_is(")")) {
      if (options.extended && skip_extended()) continue;
      if (take("(?#")) {
        const std::size_t end = source_.find(')', next_);
        if (end == source_.npos) fail("must close its comment");
        next_ = end + 1;
        continue;
      }
      count_nodes();
      Item item = atom(options, depth);
      while (options.extended && skip_extended()) {
      }
      while (repetition(item)) {
      }
      items.push_back(std::move(item));
    }
    PatternNode node;
    append_folded(items, 0, items.size(), node);
    return node;
  }

  /// Blanks and comments of a pattern with the option x.
  bool skip_extended() {
    if (take(" ") || take("\t") || take("\n") || take("\r") || take("\f") || take("\v")) return true;
    if (!take("#")) return false;
    next_ = std::min(source_.find('\n', next_), source_.size());
    return true;
  }

  /// Appends items; where literals fold to one character, that is a choice, too.
  void append_folded(const std::vector<Item>& items, std::size_t begin, std::size_t end, PatternNode& to) {
    for (std::size_t i = begin; i < end; ++i) {
      std::vector<std::pair<std::size_t, char32_t>> folds;
      for (const unicode::Fold& fold : unicode::folded_texts())
        if (folds_at(items, i, end, fold)) folds.emplace_back(fold.text.size(), fold.character);
      count_nodes();
      if (folds.empty()) {
        to.children.push_back(items[i].node);
        continue;
      }
      PatternNode choice{.kind = Kind::choice};
      PatternNode plain;
      plain.children.push_back(items[i].node);
      append_folded(items, i + 1, end, plain);
      choice.children.push_back(std::move(plain));
      for (const auto& [length, character] : folds) {
        PatternNode folded;
        folded.children.push_back(set_of(character));
        append_folded(items, i + length, end, folded);
        choice.children.push_back(std::move(folded));
      }
      to.children.push_back(std::move(choice));
      return;
    }
  }

  static bool folds_at(const std::vector<Item>& items, std::size_t begin, std::size_t end,
                       const unicode::Fold& fold) {
    if (!items[begin].may_fold || fold.text.size() > end - begin) return false;
    for (std::size_t i = 0; i < fold.text.size(); ++i) {
      const Item& item = items[begin + i];
      if (!item.may_fold || !contains(item.node.ranges, fold.text[i])) return false;
    }
    return true;
  }

  PatternNode literal(char32_t character, const PatternOptions& options) {
    return options.ignore_case ? folded(Ranges{{character, character}}, false) : set_of(character);
  }

  /// A set without case, with the texts that its characters fold to.
  PatternNode folded(const Ranges& ranges, bool negative) {
    Ranges all = unicode::with_other_cases(ranges);
    if (negative) return set_of(unicode::complement(all));
    PatternNode choice{.kind = Kind::choice};
    for (const unicode::Fold& fold : unicode::folded_texts()) {
      if (!contains(ranges, fold.character)) continue;
      PatternNode text;
      for (const char32_t part : fold.text)
        text.children.push_back(set_of(unicode::with_other_cases({{part, part}})));
      count_nodes(fold.text.size());
      choice.children.push_back(std::move(text));
    }
    if (choice.children.empty()) return set_of(std::move(all));
    choice.children.insert(choice.children.begin(), set_of(std::move(all)));
    return choice;
  }

  Item literal_item(char32_t character, const PatternOptions& options) {
    return {literal(character, options), options.ignore_case};
  }

  Item atom(PatternOptions& options, std::size_t depth) {
    std::uint32_t least = 0, most = 0;
    if (next_is("?") || next_is("*") || next_is("+") || interval(least, most))
      fail("must have what is repeated");
    if (take("(")) return {group(options, depth)};
    if (take("[")) return {character_class(options)};
    if (take(".")) {
      return {set_of(options.dot_takes_newline ? Ranges{{0, last_code_point}}
                                               : unicode::complement({{'\n', '\n'}}))};
    }
    if (take("^")) return {{.kind = Kind::line_begin}};
    if (take("$")) return {{.kind = Kind::line_end}};
    if (take("\\")) return escape(options);
    return literal_item(take_character(), options);
  }

  /// Repeats the item if the pattern says so.
  bool repetition(Item& item) {
    std::uint32_t least = 0, most = PatternNode::no_limit;
    bool is_interval = false;
    if (take("?")) {
      most = 1;
    } else if (take("+")) {
      least = 1;
    } else if (!take("*")) {
      is_interval = interval(least, most);
      if (!is_interval) return false;
    }
    if (is_interval && least == most && take("?")) {  // no lazy one in Ruby
      item.node = repeated(repeated(std::move(item.node), least, most), 0, 1);
    } else if (take("?")) {
      item.node = repeated(std::move(item.node), least, most, true);
    } else {
      item.node = repeated(std::move(item.node), least, most);
      if (!is_interval && take("+")) item.node = around(Kind::atomic, std::move(item.node));
    }
    count_nodes();
    return true;
  }

  /// {n}, {n,}, {n,m} or {,m}; other braces are literals.
  bool interval(std::uint32_t& least, std::uint32_t& most) {
    const std::size_t begin = next_;
    if (!take("{")) return false;
    const auto low = digits();
    const bool has_comma = take(",");
    const auto high = has_comma ? digits() : low;
    if ((!low && !high) || !take("}")) {
      next_ = begin;
      return false;
    }
    least = low.value_or(0);
    most = high.value_or(has_comma ? PatternNode::no_limit : least);
    if (least > most) fail("must not repeat at least more often than at most");
    return true;
  }

  std::optional<std::uint32_t> digits() {
    std::optional<std::uint32_t> number;
    for (; !at_end() && source_[next_] >= '0' && source_[next_] <= '9'; ++next_) {
      number = 10 * number.value_or(0) + static_cast<std::uint32_t>(source_[next_] - '0');
      if (*number > most_repeats) fail("must not repeat more often than " + std::to_string(most_repeats));
    }
    return number;
  }

  PatternNode closed(PatternNode node) {
    if (!take(")")) fail("must close its group");
    return node;
  }

  PatternNode inner(const PatternOptions& options, std::size_t depth) {
    return closed(alternatives(options, depth + 1));
  }

  PatternNode group(PatternOptions& options, std::size_t depth) {
    if (!take("?")) return inner(options, depth);
    if (take(":")) return inner(options, depth);
    if (take("=")) return around(Kind::look_ahead, inner(options, depth));
    if (take("!")) return around(Kind::look_ahead, inner(options, depth), true);
    if (take("<=")) return around(Kind::look_behind, inner(options, depth));
    if (take("<!")) return around(Kind::look_behind, inner(options, depth), true);
    if (take(">")) return around(Kind::atomic, inner(options, depth));
    if (take("<") || take("'")) {
      const char end = source_[next_ - 1] == '<' ? '>' : '\'';
      const std::size_t length = source_.substr(next_).find(end);
      if (length == source_.npos || length == 0) fail("must name its group");
      next_ += length + 1;
      return inner(options, depth);
    }
    PatternOptions changed = options;
    for (bool on = true; !take(":");) {
      if (take("-")) {
        on = false;
      } else if (take("i")) {
        changed.ignore_case = on;
      } else if (take("m")) {
        changed.dot_takes_newline = on;
      } else if (take("x")) {
        changed.extended = on;
      } else if (take(")")) {  // for what follows in the group around it, its alternatives included
        return alternatives(changed, depth + 1);
      } else {
        fail("must have groups of a known kind");
      }
    }
    return inner(changed, depth);
  }

  Item escape(const PatternOptions& options) {
    if (const auto ranges = escaped_class()) return {set_of(*ranges)};
    if (take("A")) return {{.kind = Kind::text_begin}};
    if (take("z")) return {{.kind = Kind::text_end}};
    if (take("Z")) return {{.kind = Kind::last_line_end}};
    if (take("b")) return {{.kind = Kind::word_boundary}};
    if (take("B")) return {{.kind = Kind::no_word_boundary}};
    if (take("R")) {
      PatternNode both, choice{.kind = Kind::choice};
      both.children = {set_of('\r'), set_of('\n')};
      choice.children = {std::move(both), set_of(Ranges{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}})};
      return {around(Kind::atomic, std::move(choice))};
    }
    return literal_item(escaped_character(), options);
  }

  /// The set of \d and the like, after the backslash.
  std::optional<Ranges> escaped_class() {
    const auto negated = [](const Ranges& ranges, bool negative) {
      return negative ? unicode::complement(ranges) : ranges;
    };
    if (at_end()) fail("must not end with a backslash");
    const char letter = source_[next_];
    if (letter == 'p' || letter == 'P') {
      ++next_;
      if (!take("{")) fail("must have the name of a property in braces");
      const bool negative = take("^") != (letter == 'P');
      const std::size_t length = source_.substr(next_).find('}');
      if (length == source_.npos) fail("must close the name of a property");
      const auto ranges = unicode::property(source_.substr(next_, length));
      if (!ranges) fail("must have known properties only");
      next_ += length + 1;
      return negated(*ranges, negative);
    }
    std::optional<Ranges> ranges;
    if (letter == 'd' || letter == 'D') ranges = unicode::property("Nd");
    if (letter == 's' || letter == 'S') ranges = unicode::property("White_Space");
    if (letter == 'w' || letter == 'W') ranges = unicode::word_characters();
    if (letter == 'h' || letter == 'H') ranges = unicode::posix_class("xdigit");
    if (!ranges) return std::nullopt;
    ++next_;
    return negated(*ranges, letter < 'a');
  }

  char32_t escaped_character() {
    constexpr std::string_view names = "tnrfvae", values = "\t\n\r\f\v\a\x1B";
    const char32_t character = take_character();
    if (character < 0x80) {
      const std::size_t place = names.find(static_cast<char>(character));
      if (place != names.npos) return static_cast<char32_t>(values[place]);
    }
    if (character == 'x' && take("{")) {
      const char32_t value = number(16, 1, 8);
      if (!take("}")) fail("must close a character's number");
      return value;
    }
    if (character == 'x') return number(16, 1, 2);
    if (character == 'u') return number(16, 4, 4);
    if (character == '0') return number(8, 0, 2);
    const bool is_letter = (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
    if (is_letter || (character >= '1' && character <= '9')) fail("must have known escapes only");
    return character;
  }

  char32_t number(std::uint32_t base, std::size_t least, std::size_t most) {
    constexpr std::string_view all_digits = "0123456789abcdef";
    std::uint64_t value = 0;
    std::size_t count = 0;
    for (; count < most && !at_end(); ++count, ++next_) {
      const char digit = source_[next_];
      const std::size_t place =
          all_digits.find(digit >= 'A' && digit <= 'F' ? static_cast<char>(digit + 32) : digit);
      if (place >= base) break;
      value = base * value + place;
    }
    if (count < least) fail("must have a number of " + std::to_string(least) + " digits or more");
    if (value > last_code_point || (value >= 0xD800 && value <= 0xDFFF))
      fail("must have characters of Unicode");
    return static_cast<char32_t>(value);
  }

  PatternNode character_class(const PatternOptions& options) {
    bool negative = false;
    Ranges ranges = class_ranges(0, negative);
    if (options.ignore_case) return folded(ranges, negative);
    return set_of(negative ? unicode::complement(ranges) : std::move(ranges));
  }

  /// What is in a class before its negation.
  Ranges class_ranges(std::size_t depth, bool& negative) {
    if (depth > deepest) fail("must not have classes in more than " + std::to_string(deepest) + " others");
    count_nodes();
    negative = take("^");
    Ranges current;
    std::optional<Ranges> before;  // of &&
    const auto flush = [&] {
      current = unicode::sorted_ranges(std::move(current));
      before = before ? unicode::intersection(*before, current) : std::move(current);
      current.clear();
    };
    bool is_empty = true;
    for (bool is_first = true;; is_first = false) {
      if (at_end()) fail("must close its class");
      if (next_is("]") && !(is_first && source_.substr(next_ + 1).find(']') != source_.npos)) break;
      if (take("&&")) {
        flush();
        is_empty = false;
        continue;
      }
      is_empty = false;
      count_nodes();
      std::optional<char32_t> single;
      if (const auto set = class_item(depth, single)) {
        current.insert(current.end(), set->begin(), set->end());
        continue;
      }
      char32_t last = *single;
      const std::size_t dash = next_;
      if (!next_is("-]") && !next_is("-&&") && take("-")) {
        std::optional<char32_t> end;
        if (next_is("[") || class_item(depth, end)) {  // then the dash is one
          next_ = dash;
        } else {
          last = *end;
        }
      }
      if (last < *single) fail("must have ranges of characters in their order");
      current.push_back({*single, last});
    }
    if (is_empty) fail("must have no empty class");
    take("]");
    flush();
    return *before;
  }

  /// A set in a class, or nothing and a single character.
  std::optional<Ranges> class_item(std::size_t depth, std::optional<char32_t>& single) {
    if (take("[:")) {
      const bool is_negated = take("^");
      const std::size_t length = source_.substr(next_).find(":]");
      if (length == source_.npos) fail("must close the name of a class");
      const auto ranges = unicode::posix_class(source_.substr(next_, length));
      if (!ranges) fail("must have known classes only");
      next_ += length + 2;
      return is_negated ? unicode::complement(*ranges) : *ranges;
    }
    if (take("[")) {
      bool is_negated = false;
      Ranges ranges = class_ranges(depth + 1, is_negated);
      return is_negated ? unicode::complement(ranges) : std::move(ranges);
    }
    if (!take("\\")) {
      single = take_character();
      return std::nullopt;
    }
    if (const auto ranges = escaped_class()) return ranges;
    single = take("b") ? U'\b' : escaped_character();
    return std::nullopt;
  }

  std::string_view source_;
  std::size_t next_ = 0, nodes_ = 0;
};

}  // namespace

PatternNode parsed_pattern(std::string_view source) { return PatternParser(source).all(); }

}  // namespace xgrad::tokenizers::detail
