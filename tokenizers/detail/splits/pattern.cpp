#include "pattern.hpp"

#include <algorithm>
#include <bitset>
#include <utility>

#include "../../../base/error.hpp"

namespace xgrad::tokenizers::detail {
namespace {

constexpr std::size_t most_instructions = 100'000, most_parts = 1'000'000, non_ascii = 128;

/// Characters that what a node matches may begin with, and whether that may be nothing.
struct Beginning {
  std::bitset<non_ascii + 1> characters;
  bool may_be_empty = false;
};

Beginning beginning_of(const PatternNode& node);

Beginning beginning_of_sequence(const PatternNode& node) {
  Beginning all{.characters = {}, .may_be_empty = true};
  for (const PatternNode& child : node.children) {
    if (!all.may_be_empty) break;
    const Beginning one = beginning_of(child);
    all.characters |= one.characters;
    all.may_be_empty = one.may_be_empty;
  }
  return all;
}

Beginning beginning_of(const PatternNode& node) {
  Beginning all;
  switch (node.kind) {
    case PatternNode::Kind::sequence:
      return beginning_of_sequence(node);
    case PatternNode::Kind::choice:
      for (const PatternNode& child : node.children) {
        const Beginning one = beginning_of(child);
        all.characters |= one.characters;
        all.may_be_empty |= one.may_be_empty;
      }
      return all;
    case PatternNode::Kind::set:
      for (const unicode::CharacterRange& range : node.ranges) {
        for (char32_t character = range.first; character <= range.last && character < non_ascii; ++character)
          all.characters.set(character);
        if (range.last >= non_ascii) all.characters.set(non_ascii);
      }
      return all;
    case PatternNode::Kind::repeat:
      all = beginning_of(node.children.front());
      all.may_be_empty |= node.least == 0;
      return all;
    case PatternNode::Kind::atomic:
      return beginning_of(node.children.front());
    default:
      return {.characters = {}, .may_be_empty = true};
  }
}

/// The least and the largest number of characters that a node matches.
struct Lengths {
  std::uint64_t least, most;
};

Lengths lengths_of(const PatternNode& node) {
  constexpr std::uint64_t limit = PatternNode::no_limit;
  const auto times = [&](std::uint64_t a, std::uint64_t b) { return std::min(a * b, limit); };
  Lengths all{0, 0};
  switch (node.kind) {
    case PatternNode::Kind::sequence:
      for (const PatternNode& child : node.children) {
        const Lengths one = lengths_of(child);
        all = {std::min(all.least + one.least, limit), std::min(all.most + one.most, limit)};
      }
      return all;
    case PatternNode::Kind::choice:
      all.least = limit;
      for (const PatternNode& child : node.children) {
        const Lengths one = lengths_of(child);
        all = {std::min(all.least, one.least), std::max(all.most, one.most)};
      }
      return all;
    case PatternNode::Kind::set:
      return {1, 1};
    case PatternNode::Kind::repeat:
      all = lengths_of(node.children.front());
      return {times(all.least, node.least), times(all.most, node.most)};
    case PatternNode::Kind::atomic:
      return lengths_of(node.children.front());
    default:
      return all;
  }
}

bool is_set(const PatternNode& node) {
  return node.kind == PatternNode::Kind::set || (node.kind == PatternNode::Kind::sequence &&
                                                 node.children.size() == 1 && is_set(node.children.front()));
}

const unicode::Ranges& ranges_of(const PatternNode& node) {
  return node.kind == PatternNode::Kind::set ? node.ranges : ranges_of(node.children.front());
}

}  // namespace

CharacterSet::CharacterSet(unicode::Ranges ranges) : ranges_(std::move(ranges)) {
  constexpr std::size_t few = 4;
  constexpr char32_t plane_end = 0x10000;
  if (ranges_.size() > few) plane_.resize(plane_end / 64);
  for (const unicode::CharacterRange& range : ranges_) {
    const char32_t end = std::min<char32_t>(range.last + 1, plane_.empty() ? 128 : plane_end);
    for (char32_t character = range.first; character < end; ++character) {
      if (character < 128) ascii_[character / 64] |= std::uint64_t{1} << (character % 64);
      if (!plane_.empty()) plane_[character / 64] |= std::uint64_t{1} << (character % 64);
    }
  }
}

bool CharacterSet::is_in_ranges(char32_t character) const {
  const auto place = std::lower_bound(
      ranges_.begin(), ranges_.end(), character,
      [](const unicode::CharacterRange& range, char32_t wanted) { return range.last < wanted; });
  return place != ranges_.end() && place->first <= character;
}

class Pattern::Compiler {
 public:
  explicit Compiler(Pattern& pattern) : pattern_(pattern) {}

  void add_alternative(const PatternNode& node) {
    const std::uint64_t bit = std::uint64_t{1} << pattern_.alternatives_.size();
    const Beginning beginning = beginning_of(node);
    for (std::size_t i = 0; i < pattern_.may_begin_.size(); ++i)
      if (beginning.characters[i]) pattern_.may_begin_[i] |= bit;
    if (beginning.may_be_empty) pattern_.may_be_empty_ |= bit;
    const std::uint32_t begin = here();
    add(node);
    emit({.op = Op::accept});
    const Instruction& first = pattern_.program_[begin];
    pattern_.alternatives_.push_back({begin, first.op == Op::run && first.most == PatternNode::no_limit});
  }

 private:
  [[noreturn]] static void refuse_size() {
    throw ValueError("pattern must not be so large: its repetitions make too many parts");
  }

  std::uint32_t here() const { return static_cast<std::uint32_t>(pattern_.program_.size()); }

  std::uint32_t emit(const Instruction& instruction) {
    if (here() == most_instructions) refuse_size();
    pattern_.program_.push_back(instruction);
    return here() - 1;
  }

  std::uint32_t set_number(const unicode::Ranges& ranges) {
    const auto same = [&](const CharacterSet& set) {
      return std::equal(ranges.begin(), ranges.end(), set.ranges().begin(), set.ranges().end(),
                        [](const unicode::CharacterRange& a, const unicode::CharacterRange& b) {
                          return a.first == b.first && a.last == b.last;
                        });
    };
    const auto found = std::find_if(pattern_.sets_.begin(), pattern_.sets_.end(), same);
    const auto number = static_cast<std::uint32_t>(found - pattern_.sets_.begin());
    if (found == pattern_.sets_.end()) pattern_.sets_.emplace_back(ranges);
    return number;
  }

  void add(const PatternNode& node) {
    if (++parts_ == most_parts) refuse_size();
    switch (node.kind) {
      case PatternNode::Kind::sequence:
        for (const PatternNode& child : node.children) add(child);
        return;
      case PatternNode::Kind::choice:
        add_choice(node);
        return;
      case PatternNode::Kind::set:
        add_set(node.ranges);
        return;
      case PatternNode::Kind::repeat:
        add_repeat(node, Run::greedy);
        return;
      case PatternNode::Kind::atomic: {
        const PatternNode& child = node.children.front();
        if (child.kind == PatternNode::Kind::repeat && !child.lazy && is_set(child.children.front())) {
          add_repeat(child, Run::possessive);
        } else {
          add_inner({.op = Op::atomic}, child);
        }
        return;
      }
      case PatternNode::Kind::look_ahead: {
        const PatternNode& child = node.children.front();
        if (is_set(child)) {
          emit({.op = Op::peek, .negative = node.negative, .target = set_number(ranges_of(child))});
        } else {
          add_inner({.op = Op::look_ahead, .negative = node.negative}, child);
        }
        return;
      }
      case PatternNode::Kind::look_behind: {
        const Lengths lengths = lengths_of(node.children.front());
        add_inner({.op = Op::look_behind,
                   .negative = node.negative,
                   .least = static_cast<std::uint32_t>(lengths.least),
                   .most = static_cast<std::uint32_t>(lengths.most)},
                  node.children.front());
        return;
      }
      default:
        emit({.op = Op::anchor, .anchor = node.kind});
    }
  }

  void add_set(const unicode::Ranges& ranges) {
    if (ranges.size() == 1 && ranges.front().first == ranges.front().last) {
      emit({.op = Op::character, .target = static_cast<std::uint32_t>(ranges.front().first)});
    } else {
      emit({.op = Op::set, .target = set_number(ranges)});
    }
  }

  void add_choice(const PatternNode& node) {
    std::vector<std::uint32_t> jumps;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const bool is_last = i + 1 == node.children.size();
      const std::uint32_t fork = is_last ? 0 : emit({.op = Op::fork});
      add(node.children[i]);
      if (is_last) break;
      jumps.push_back(emit({.op = Op::jump}));
      pattern_.program_[fork].target = here();
    }
    for (const std::uint32_t jump : jumps) pattern_.program_[jump].target = here();
  }

  void add_inner(const Instruction& instruction, const PatternNode& node) {
    const std::uint32_t begin = emit(instruction);
    add(node);
    emit({.op = Op::accept});
    pattern_.program_[begin].target = here();
  }

  void add_repeat(const PatternNode& node, Run run) {
    const PatternNode& child = node.children.front();
    if (is_set(child)) {
      emit({.op = Op::run,
            .run = node.lazy ? Run::lazy : run,
            .target = set_number(ranges_of(child)),
            .least = node.least,
            .most = node.most});
      return;
    }
    for (std::uint32_t i = 0; i < node.least; ++i) add(child);
    if (node.most == PatternNode::no_limit) {
      add_loop(child, node.lazy);
      return;
    }
    std::vector<std::uint32_t> forks;
    for (std::uint32_t i = node.least; i < node.most; ++i) {
      forks.push_back(emit_fork(node.lazy));
      add(child);
    }
    for (const std::uint32_t fork : forks) pattern_.program_[fork].target = here();
  }

  void add_loop(const PatternNode& child, bool lazy) {
    const bool may_be_empty = beginning_of(child).may_be_empty;
    const std::uint32_t begin = here(), exit = emit_fork(lazy);
    const std::uint32_t slot = may_be_empty ? pattern_.slots_++ : 0;
    std::uint32_t progress = exit;
    if (may_be_empty) emit({.op = Op::mark, .least = slot});
    add(child);
    if (may_be_empty) progress = emit({.op = Op::progress, .least = slot});
    emit({.op = Op::jump, .target = begin});
    pattern_.program_[exit].target = pattern_.program_[progress].target = here();
  }

  /// Tries what follows first, or with `lazy` what comes behind it. Returns the instruction whose target
  /// that is.
  std::uint32_t emit_fork(bool lazy) {
    const std::uint32_t fork = emit({.op = Op::fork});
    if (lazy) {
      pattern_.program_[fork].target = here() + 1;
      return emit({.op = Op::jump});
    }
    return fork;
  }

  Pattern& pattern_;
  std::size_t parts_ = 0;  // also of those that make no instruction
};

Pattern::Pattern(std::string_view source) {
  PatternNode node = parsed_pattern(source);
  while (node.kind == PatternNode::Kind::sequence && node.children.size() == 1) {
    PatternNode child = std::move(node.children.front());
    node = std::move(child);
  }
  Compiler compiler(*this);
  constexpr std::size_t most_alternatives = 64;
  if (node.kind == PatternNode::Kind::choice && node.children.size() <= most_alternatives) {
    for (const PatternNode& child : node.children) compiler.add_alternative(child);
  } else {
    compiler.add_alternative(node);
  }
}

void Pattern::begin_text(Work& work) const {
  work.choices_.clear();
  work.slots_.resize(slots_);
  work.failed_until_.assign(alternatives_.size(), 0);
}

bool Pattern::is_at(PatternNode::Kind anchor, std::string_view text, std::size_t place) const {
  const bool is_end = place == text.size();
  switch (anchor) {
    case PatternNode::Kind::line_begin:
      return place == 0 || (text[place - 1] == '\n' && !is_end);
    case PatternNode::Kind::line_end:
      return is_end || text[place] == '\n';
    case PatternNode::Kind::text_begin:
      return place == 0;
    case PatternNode::Kind::text_end:
      return is_end;
    case PatternNode::Kind::last_line_end:
      return is_end || (place + 1 == text.size() && text[place] == '\n');
    default:
      break;
  }
  static const CharacterSet words(unicode::word_characters());
  const bool before = place > 0 && words.contains(unicode::last_of(text.substr(0, place)));
  const bool after = !is_end && words.contains(unicode::first_of(text.substr(place)));
  return (before != after) == (anchor == PatternNode::Kind::word_boundary);
}

std::size_t Pattern::run_end(const CharacterSet& set, std::string_view text, std::size_t place,
                             std::size_t most) const {
  for (; most > 0 && place < text.size(); --most) {
    const std::string_view rest = text.substr(place);
    if (!set.contains(unicode::first_of(rest))) break;
    place += unicode::first_length(rest);
  }
  return place;
}

bool Pattern::looks(const Instruction& instruction, std::uint32_t at, std::string_view text,
                    std::size_t& place, Work& work) const {
  if (instruction.op != Op::look_behind) {
    const auto end = match(at + 1, text, place, work);
    if (end && instruction.op == Op::atomic) place = *end;
    return end.has_value() != instruction.negative;
  }
  std::size_t begin = place;
  for (std::uint32_t length = 0;; ++length) {
    if (length >= instruction.least && match(at + 1, text, begin, work, place)) return !instruction.negative;
    if (begin == 0 || length == instruction.most) return instruction.negative;
    begin = unicode::last_start(text.substr(0, begin));
  }
}

std::optional<std::size_t> Pattern::match(std::uint32_t at, std::string_view text, std::size_t place,
                                          Work& work, std::optional<std::size_t> end) const {
  using Choice = Work::Choice;
  std::vector<Choice>& choices = work.choices_;
  const std::size_t base = choices.size();
  const auto spend = [&](std::size_t steps) {
    if (work.steps_ < steps)
      throw ValueError("Tokenizer: the pattern that splits texts takes too many steps for this one");
    work.steps_ -= steps;
  };
  for (;;) {
    spend(1);
    const Instruction& instruction = program_[at];
    bool matches = true;
    switch (instruction.op) {
      case Op::accept:
        if (end && *end != place) {
          matches = false;
          break;
        }
        choices.resize(base);
        return place;
      case Op::character:
      case Op::set: {
        const std::string_view rest = text.substr(place);
        matches = !rest.empty() && (instruction.op == Op::character
                                        ? unicode::first_of(rest) == instruction.target
                                        : sets_[instruction.target].contains(unicode::first_of(rest)));
        if (matches) place += unicode::first_length(rest);
        ++at;
        break;
      }
      case Op::run: {
        const CharacterSet& set = sets_[instruction.target];
        const std::size_t begin = place;
        for (std::uint32_t i = 0; i < instruction.least && matches; ++i) {
          const std::size_t next = run_end(set, text, place, 1);
          matches = next != place;
          place = next;
        }
        if (matches) {
          const std::size_t least_end = place, more = instruction.most - instruction.least;
          if (instruction.run == Run::lazy) {
            if (more > 0) choices.push_back({Choice::Kind::lengthen, at, place, more});
          } else {
            place = run_end(set, text, place, instruction.most == PatternNode::no_limit ? text.size() : more);
            if (place > least_end && instruction.run == Run::greedy)
              choices.push_back({Choice::Kind::shorten, at, place, least_end});
          }
        }
        constexpr std::size_t characters_a_step = 8;
        spend((place - begin) / characters_a_step);
        ++at;
        break;
      }
      case Op::jump:
        at = instruction.target;
        break;
      case Op::fork:
        choices.push_back({Choice::Kind::jump, instruction.target, place, 0});
        ++at;
        break;
      case Op::mark:
        choices.push_back({Choice::Kind::restore, instruction.least, work.slots_[instruction.least], 0});
        work.slots_[instruction.least] = place;
        ++at;
        break;
      case Op::progress:
        at = work.slots_[instruction.least] == place ? instruction.target : at + 1;
        break;
      case Op::peek: {
        const bool is_there =
            place < text.size() && sets_[instruction.target].contains(unicode::first_of(text.substr(place)));
        matches = is_there != instruction.negative;
        ++at;
        break;
      }
      case Op::look_ahead:
      case Op::look_behind:
      case Op::atomic:
        matches = looks(instruction, at, text, place, work);
        at = instruction.target;
        break;
      case Op::anchor:
        matches = is_at(instruction.anchor, text, place);
        ++at;
        break;
    }
    while (!matches) {
      if (choices.size() == base) return std::nullopt;
      Choice& choice = choices.back();
      place = choice.place;
      at = choice.target + 1;
      matches = true;
      switch (choice.kind) {
        case Choice::Kind::jump:
          at = choice.target;
          choices.pop_back();
          break;
        case Choice::Kind::shorten:
          place = unicode::last_start(text.substr(0, place));
          if (place > choice.limit) {
            choice.place = place;
          } else {
            choices.pop_back();
          }
          break;
        case Choice::Kind::lengthen: {
          const std::size_t next = run_end(sets_[program_[choice.target].target], text, place, 1);
          matches = next != place;
          if (matches && choice.limit > 1) {
            choice.place = next;
            if (program_[choice.target].most != PatternNode::no_limit) --choice.limit;
          } else {
            choices.pop_back();
          }
          place = next;
          break;
        }
        case Choice::Kind::restore:
          work.slots_[choice.target] = place;
          choices.pop_back();
          matches = false;
          break;
      }
    }
  }
}

std::optional<Pattern::Match> Pattern::find(std::string_view text, std::size_t from, Work& work) const {
  for (std::size_t begin = from;;) {
    std::uint64_t open = may_be_empty_;
    if (begin < text.size()) {
      const auto byte = static_cast<unsigned char>(text[begin]);
      open |= may_begin_[std::min<std::size_t>(byte, non_ascii)];
    }
    for (std::size_t i = 0; open != 0; ++i, open >>= 1) {
      if ((open & 1) == 0 || begin < work.failed_until_[i]) continue;
      const Alternative& alternative = alternatives_[i];
      if (const auto end = match(alternative.begin, text, begin, work)) return Match{begin, *end};
      // A run from a later place in it can only end where this one tried to end.
      if (alternative.begins_with_run)
        work.failed_until_[i] = run_end(sets_[program_[alternative.begin].target], text, begin, text.size());
    }
    if (begin == text.size()) return std::nullopt;
    begin += unicode::first_length(text.substr(begin));
  }
}

}  // namespace xgrad::tokenizers::detail
