#include "communicator.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "../base/error.hpp"

namespace xgrad::mpi {
namespace {

/// What each rank gives, in their order; they may give different numbers of bytes.
std::vector<std::string> all_texts(Communicator& ranks, const std::string& mine) {
  const std::uint64_t length = mine.size();
  const std::vector<std::uint64_t> lengths = all_gather_numbers(ranks, {&length, 1});
  std::vector<std::string> texts(ranks.size());
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    texts[rank].resize(lengths[rank]);
    if (rank == ranks.rank()) continue;
    out.push_back({rank, std::as_bytes(std::span(mine))});
    in.push_back({rank, std::as_writable_bytes(std::span(texts[rank]))});
  }
  ranks.exchange(out, in);
  texts[ranks.rank()] = mine;
  return texts;
}

/// Names and values, each with a zero behind it.
std::string packed(const Agreement& agreement) {
  std::string text;
  for (const auto& [name, value] : agreement) text.append(name).append(1, '\0').append(value).append(1, '\0');
  return text;
}

Agreement unpacked(const std::string& text) {
  Agreement agreement;
  auto next = [&, at = std::size_t{0}]() mutable {
    const std::size_t end = text.find('\0', at);
    const std::size_t begin = std::exchange(at, end + 1);
    return text.substr(begin, end - begin);
  };
  for (auto left = std::count(text.begin(), text.end(), '\0'); left > 0; left -= 2) {
    const std::string name = next();
    agreement[name] = next();
  }
  return agreement;
}

std::string differences(const Agreement& mine, const Agreement& theirs) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  for (const auto& [name, value] : theirs) {
    const auto found = mine.find(name);
    if (found == mine.end()) {
      add(name + " is missing");
    } else if (found->second != value) {
      add(detail::join({name, " is '", found->second, "', not '", value, "'"}));
    }
  }
  for (const auto& [name, value] : mine) {
    if (!theirs.contains(name)) add(detail::join({name, " is '", value, "', and is missing there"}));
  }
  return text;
}

}  // namespace

void Communicator::exchange(std::span<const Outgoing> out, std::span<const Incoming> in) {
  if (out.empty() && in.empty()) return;
  const std::unique_ptr<Transfer> transfer = start(0, out, in);
  wait_until([&] { return transfer->done(); });
}

// Bruck, Ho, Kipnis, Upfal and Weathersby 1997: in round k each rank has 2^k blocks, of itself and of those
// that follow it, and gets as many from the rank that follows these.
std::vector<std::byte> all_gather(Communicator& ranks, std::span<const std::byte> mine) {
  const std::size_t count = ranks.size(), me = ranks.rank(), length = mine.size();
  std::vector<std::byte> all(count * length);
  std::copy(mine.begin(), mine.end(), all.begin());
  for (std::size_t have = 1; have < count; have *= 2) {
    const std::size_t bytes = std::min(have, count - have) * length;
    const Communicator::Outgoing out[] = {{(me + count - have) % count, std::span(all).first(bytes)}};
    const Communicator::Incoming in[] = {{(me + have) % count, std::span(all).subspan(have * length, bytes)}};
    ranks.exchange(out, in);
  }
  std::rotate(all.begin(), all.end() - static_cast<std::ptrdiff_t>(me * length), all.end());
  return all;
}

// A binomial tree: rank r has the bytes from r without its highest bit, and hands them on to r + 2^k for all
// 2^k above r.
std::vector<std::byte> broadcast(Communicator& ranks, std::vector<std::byte> bytes) {
  std::uint64_t length = bytes.size();
  const auto send = [&](std::span<std::byte> part) {
    const std::size_t me = ranks.rank();
    if (me > 0) {
      const Communicator::Incoming in[] = {{me - std::bit_floor(me), part}};
      ranks.exchange({}, in);
    }
    std::vector<Communicator::Outgoing> out;
    for (std::size_t step = me == 0 ? 1 : 2 * std::bit_floor(me); me + step < ranks.size(); step *= 2)
      out.push_back({me + step, part});
    ranks.exchange(out, {});
  };
  send(std::as_writable_bytes(std::span(&length, 1)));
  bytes.resize(length);
  send(bytes);
  return bytes;
}

std::vector<std::uint64_t> all_sum(Communicator& ranks, const std::vector<std::uint64_t>& mine) {
  const std::vector<std::uint64_t> numbers = all_gather_numbers(ranks, mine);
  std::vector<std::uint64_t> sums(mine.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) sums[i % mine.size()] += numbers[i];
  return sums;
}

std::string disagreement(Communicator& ranks, const Agreement& mine) {
  const std::vector<std::string> texts = all_texts(ranks, packed(mine));
  const Agreement first = unpacked(texts[0]);
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    return detail::join(
        {"rank ", std::to_string(rank), " differs from rank 0: ", differences(unpacked(texts[rank]), first)});
  }
  return "";
}

void check_agreement(Communicator& ranks, const Agreement& mine) {
  const std::string text = disagreement(ranks, mine);
  if (!text.empty()) throw ValueError(text);
}

std::vector<std::uint64_t> all_gather_numbers(Communicator& ranks, std::span<const std::uint64_t> mine) {
  const std::vector<std::byte> bytes = all_gather(ranks, std::as_bytes(mine));
  std::vector<std::uint64_t> all(ranks.size() * mine.size());
  std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(all)).begin());
  return all;
}

}  // namespace xgrad::mpi
