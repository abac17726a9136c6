#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

// Not installed: where the members of a zip archive lie.

namespace xgrad::detail {

/// The directory of a zip archive in memory, also of one above 4 GB. libzip can only copy a member; here a
/// stored member is a view. Checksums are not compared: torch may write files without them.
/// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
class ZipDirectory {
 public:
  /// `path` begins errors; both arguments must outlive this. Throws FileError for a broken directory, and for
  /// two members of one name.
  ZipDirectory(const std::string& path, std::span<const std::byte> file);

  /// The name of the first member; empty if there are none.
  std::string_view first_name() const { return first_name_; }

  bool contains(std::string_view name) const { return members_.contains(name); }

  /// The bytes of a member. Throws FileError if it is missing, compressed, encrypted, or not in the file.
  std::span<const std::byte> at(std::string_view name) const;

 private:
  struct Member {
    unsigned flags, method;
    std::uint64_t packed, size, header;
  };

  void read_entries(std::span<const std::byte> entries, std::uint64_t count);

  const std::string& path_;
  std::span<const std::byte> file_;
  std::size_t begin_ = 0;  // of the directory, the end of the members
  std::string_view first_name_;
  std::unordered_map<std::string_view, Member> members_;
};

}  // namespace xgrad::detail
