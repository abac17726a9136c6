#include "merges.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"
#include "../large_pages.hpp"

namespace xgrad::tokenizers::detail {
namespace {

constexpr std::uint32_t no_place = ~std::uint32_t{0};

std::uint64_t pair_of_tokens(std::uint32_t left, std::uint32_t right) {
  return std::uint64_t{left} << 32 | right;
}

}  // namespace

Merges::Merges(const TokenTable& tokens, const MergeTexts& merges, const std::string& where)
    : merges_(std::bit_ceil(2 * merges.size() + 1)) {
  using xgrad::detail::in_quotes;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string &left = merges[rank].first, &right = merges[rank].second;
    const auto known = [&](const std::string& text) {
      const auto token = tokens.model_index(text);
      if (!token)
        xgrad::detail::fail<FileError>(where, ": merge ", rank, " of ", in_quotes(left), " and ",
                                       in_quotes(right), " must join two tokens into a token, got no token ",
                                       in_quotes(text));
      return *token;
    };
    const std::uint64_t pair = pair_of_tokens(known(left), known(right));
    merges_[slot_of(pair)] = {pair, static_cast<std::uint32_t>(rank), known(left + right)};
  }
}

std::size_t Merges::slot_of(std::uint64_t pair) const {
  const std::size_t mask = merges_.size() - 1;
  std::size_t slot = (pair * 0x9E3779B97F4A7C15) >> 32 & mask;
  while (merges_[slot].pair != no_pair && merges_[slot].pair != pair) slot = (slot + 1) & mask;
  return slot;
}

const Merges::Merge* Merges::find(std::uint32_t left, std::uint32_t right) const {
  const Merge& merge = merges_[slot_of(pair_of_tokens(left, right))];
  return merge.pair == no_pair ? nullptr : &merge;
}

void Merges::Work::add(std::uint32_t token, std::uint32_t length) {
  const auto place = static_cast<std::uint32_t>(symbols.size());
  if (place > 0) symbols.back().next = place;
  symbols.push_back({token, length, place - 1, no_place});
}

void Merges::join(Work& work) const {
  auto& symbols = work.symbols;
  auto& candidates = work.candidates_;
  const auto push = [&](std::uint32_t place) {
    if (place == no_place || symbols[place].next == no_place) return;
    const Merge* const merge = find(symbols[place].token, symbols[symbols[place].next].token);
    if (merge == nullptr) return;
    candidates.push_back({merge->rank, place, merge->token});
    std::ranges::push_heap(candidates, std::greater<>());
  };
  candidates.clear();
  reserve_large(candidates, symbols.size());
  for (std::uint32_t place = 0; place < symbols.size(); ++place) push(place);
  while (!candidates.empty()) {
    std::ranges::pop_heap(candidates, std::greater<>());
    const Work::Candidate best = candidates.back();
    candidates.pop_back();
    Symbol& left = symbols[best.place];
    if (left.length == 0 || left.next == no_place) continue;
    Symbol& right = symbols[left.next];
    // One of the two may have become longer since.
    const Merge* const merge = find(left.token, right.token);
    if (merge == nullptr || merge->token != best.token) continue;
    left.token = best.token;
    left.length += right.length;
    left.next = right.next;
    right.length = 0;
    if (left.next != no_place) symbols[left.next].previous = best.place;
    push(left.previous);
    push(best.place);
  }
}

}  // namespace xgrad::tokenizers::detail
