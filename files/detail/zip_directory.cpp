#include "zip_directory.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "../../base/detail/text/json_text.hpp"
#include "../../base/error.hpp"
#include "../tensor_view.hpp"

namespace xgrad::detail {
namespace {

// The parts of an archive begin with these numbers, and have these sizes without names and comments.
constexpr std::uint32_t member_mark = 0x04034b50, entry_mark = 0x02014b50, end_mark = 0x06054b50,
                        end64_mark = 0x06064b50, locator_mark = 0x07064b50;
constexpr std::size_t member_size = 30, entry_size = 46, end_size = 22, end64_size = 56, locator_size = 20;
constexpr std::size_t longest_comment = 0xffff;
constexpr std::uint32_t in_extra_field = 0xffffffff;  // in place of a size that needs 64 bits

/// The little-endian number at a place that must be in the bytes.
template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

std::string_view text_at(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, size};
}

/// Where the record is that ends an archive, after which only its comment comes.
std::optional<std::size_t> find_end(std::span<const std::byte> file) {
  if (file.size() < end_size) return std::nullopt;
  const std::size_t last = file.size() - end_size;
  for (std::size_t comment = 0; comment <= std::min(last, longest_comment); ++comment) {
    const std::size_t at = last - comment;
    if (number_at<std::uint32_t>(file, at) == end_mark && number_at<std::uint16_t>(file, at + 20) == comment)
      return at;
  }
  return std::nullopt;
}

}  // namespace

ZipDirectory::ZipDirectory(const std::string& path, std::span<const std::byte> file)
    : path_(path), file_(file) {
  const auto refuse = [&](const char* why) {
    fail<FileError>(path_, ": must be a whole zip archive: ", why);
  };
  const std::optional<std::size_t> end = find_end(file);
  if (!end) refuse("the record at its end is missing");
  std::uint64_t count = number_at<std::uint16_t>(file, *end + 10),
                size = number_at<std::uint32_t>(file, *end + 12),
                begin = number_at<std::uint32_t>(file, *end + 16);
  std::size_t limit = *end;
  if (*end >= locator_size && number_at<std::uint32_t>(file, *end - locator_size) == locator_mark) {
    const auto at = number_at<std::uint64_t>(file, *end - locator_size + 8);
    limit = *end - locator_size;
    if (limit < end64_size || at > limit - end64_size || number_at<std::uint32_t>(file, at) != end64_mark)
      refuse("its record of 64 bits is missing");
    count = number_at<std::uint64_t>(file, at + 32);
    size = number_at<std::uint64_t>(file, at + 40);
    begin = number_at<std::uint64_t>(file, at + 48);
    limit = at;
  }
  if (begin > limit || size > limit - begin) refuse("its directory is not in the file");
  begin_ = begin;
  read_entries(file.subspan(begin, size), count);
}

void ZipDirectory::read_entries(std::span<const std::byte> entries, std::uint64_t count) {
  const auto refuse = [&] {
    fail<FileError>(path_, ": must be a whole zip archive: its directory is broken");
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    if (entries.size() < entry_size || number_at<std::uint32_t>(entries, 0) != entry_mark) refuse();
    const std::size_t name_size = number_at<std::uint16_t>(entries, 28),
                      extra_size = number_at<std::uint16_t>(entries, 30),
                      comment_size = number_at<std::uint16_t>(entries, 32);
    if (entries.size() - entry_size < name_size + extra_size + comment_size) refuse();
    Member member{number_at<std::uint16_t>(entries, 8), number_at<std::uint16_t>(entries, 10),
                  number_at<std::uint32_t>(entries, 20), number_at<std::uint32_t>(entries, 24),
                  number_at<std::uint32_t>(entries, 42)};
    const std::string_view name = text_at(entries, entry_size, name_size);
    std::span<const std::byte> extra = entries.subspan(entry_size + name_size, extra_size);
    while (extra.size() >= 4) {
      const std::size_t id = number_at<std::uint16_t>(extra, 0), length = number_at<std::uint16_t>(extra, 2);
      if (length > extra.size() - 4) refuse();
      if (id == 1) {  // the sizes of 64 bits
        std::size_t at = 4;
        for (std::uint64_t* const field : {&member.size, &member.packed, &member.header}) {
          if (*field != in_extra_field) continue;
          if (at + 8 > 4 + length) refuse();
          *field = number_at<std::uint64_t>(extra, at);
          at += 8;
        }
      }
      extra = extra.subspan(4 + length);
    }
    if (i == 0) first_name_ = name;
    if (!members_.try_emplace(name, member).second)
      fail<FileError>(path_, ": the member ", in_quotes(name), " must be unique, got it twice");
    entries = entries.subspan(entry_size + name_size + extra_size + comment_size);
  }
  if (!entries.empty()) refuse();
}

std::span<const std::byte> ZipDirectory::at(std::string_view name) const {
  const auto refuse = [&](const auto&... parts) {
    fail<FileError>(path_, ": the member ", in_quotes(name), " ", parts...);
  };
  const auto found = members_.find(name);
  if (found == members_.end()) refuse("is missing");
  const Member& member = found->second;
  if ((member.flags & 1U) != 0) refuse("must not be encrypted");
  if (member.method != 0) refuse("must be stored, got compression method ", member.method);
  const std::size_t header = member.header;
  if (member.packed != member.size || begin_ < member_size || header > begin_ - member_size ||
      number_at<std::uint32_t>(file_, header) != member_mark)
    refuse("is not where the directory says");
  const std::size_t name_size = number_at<std::uint16_t>(file_, header + 26),
                    extra_size = number_at<std::uint16_t>(file_, header + 28),
                    begin = header + member_size + name_size + extra_size;
  if (begin > begin_ || member.size > begin_ - begin ||
      text_at(file_, header + member_size, name_size) != name)
    refuse("is not where the directory says");
  return file_.subspan(begin, member.size);
}

}  // namespace xgrad::detail
