#include "charsmap.hpp"

#include <vector>

#include "../../../base/detail/text/utf8.hpp"
#include "../../../base/error.hpp"
#include "../unicode/grapheme.hpp"
#include "changes.hpp"

namespace xgrad::tokenizers::detail {
namespace {

using namespace xgrad::detail::utf8;

/// `now` instead of `before`. As in the library, characters that go count with the last one written.
void replace(std::vector<Change>& changes, std::string_view before, std::string_view now) {
  const auto more = static_cast<std::int32_t>(count(now)) - static_cast<std::int32_t>(count(before));
  for (; !now.empty(); now.remove_prefix(first_length(now))) changes.push_back({first_of(now), 0});
  if (more > 0) {
    for (auto change = changes.end() - more; change != changes.end(); ++change) change->change = 1;
  } else if (more < 0 && !changes.empty()) {
    changes.back().change += more;
  }
}

/// Of a unit of the double array, as https://github.com/s-yata/darts-clone lays it out: the byte that leads
/// to it, and how far away its children are.
std::uint32_t label_of(std::uint32_t unit) { return unit & (1U << 31 | 0xFF); }
std::size_t offset_of(std::uint32_t unit) { return unit >> 10 << ((unit & 1U << 9) >> 6); }

constexpr std::string_view base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string decoded_base64(const Json& text) {
  std::string_view digits = text.text();
  if (digits.size() % 4 != 0) text.fail("must be base64, a multiple of four digits");
  for (int i = 0; i < 2 && digits.ends_with('='); ++i) digits.remove_suffix(1);
  std::array<int, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < base64_digits.size(); ++i)
    values[static_cast<unsigned char>(base64_digits[i])] = static_cast<int>(i);
  std::string bytes;
  std::uint32_t waiting = 0;
  int bits = 0;
  for (const char digit : digits) {
    const int value = values[static_cast<unsigned char>(digit)];
    if (value < 0) text.fail("must be base64");
    waiting = waiting << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(waiting >> bits & 0xFF));
  }
  return bytes;
}

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  const auto unit = [&](std::size_t i) {
    std::uint32_t value = 0;
    for (std::size_t byte = 4; byte-- > 0;)
      value = value << 8 | static_cast<unsigned char>(bytes[4 * i + byte]);
    return value;
  };
  const std::size_t size = bytes.size() < 4 ? 0 : unit(0);
  if (size == 0 || size % 4 != 0 || size > bytes.size() - 4)
    xgrad::detail::fail<FileError>(where, ": must begin with the size of its double array, got ", size,
                                   " in ", bytes.size(), " bytes");
  for (std::size_t i = 1; i <= size / 4; ++i) units_.push_back(unit(i));
  texts_ = bytes.substr(4 + size);
  if (find_invalid_utf8(texts_) != std::string_view::npos)
    xgrad::detail::fail<FileError>(where, ": the texts behind its double array must be UTF-8");
  for (std::size_t byte = 1; byte < begins_.size(); ++byte) {
    const std::size_t node = offset_of(units_[0]) ^ byte;
    begins_[byte] = node < units_.size() && label_of(units_[node]) == byte;
  }
}

template <class F>
void Charsmap::for_each_entry(std::string_view text, F&& f) const {
  std::size_t node = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label_of(units_[node]) != byte) break;
    const std::uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if ((unit >> 8 & 1) == 0) continue;
    const std::size_t begin = node < units_.size() ? units_[node] & ~(1U << 31) : texts_.size();
    if (begin >= texts_.size() || (static_cast<unsigned char>(texts_[begin]) & 0xC0) == 0x80) break;
    const std::string_view rest = std::string_view(texts_).substr(begin);
    if (!f(Entry{rest.substr(0, rest.find('\0')), i + 1})) break;
  }
}

std::optional<Charsmap::Entry> Charsmap::longest(std::string_view text) const {
  std::optional<Entry> found;
  if (begins_[static_cast<unsigned char>(text.front())])
    for_each_entry(text, [&](const Entry& entry) {
      found = entry;
      return true;
    });
  return found;
}

void Charsmap::operator()(const TextBuffer& from, TextBuffer& to) const {
  constexpr std::size_t looked_up_whole = 6;  // clusters of fewer bytes
  std::vector<Change> changes;
  changes.reserve(from.text.size());
  const std::string_view text = from.text;
  const auto put = [&](std::string_view part) {
    bool found = false;
    if (begins_[static_cast<unsigned char>(part.front())])
      for_each_entry(part, [&](const Entry& entry) {
        replace(changes, part, entry.text);
        found = true;
        return false;
      });
    return found;
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view cluster = text.substr(i, unicode::first_grapheme(text.substr(i)));
    i += cluster.size();
    const bool whole = cluster.size() < looked_up_whole && put(cluster);
    for (std::string_view rest = whole ? "" : cluster; !rest.empty(); rest.remove_prefix(first_length(rest)))
      if (!put(rest.substr(0, first_length(rest)))) changes.push_back({first_of(rest), 0});
    to.check(changes.size());
  }
  transform(from, changes, to);
}

}  // namespace xgrad::tokenizers::detail
