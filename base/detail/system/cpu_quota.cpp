#include "cpu_quota.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include "../text/parse.hpp"

namespace xgrad::detail {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// The words of the first line of a file; none if it cannot be read.
std::vector<std::string> first_words(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Quota and period in microseconds as a number of processors; empty for other texts, such as "max" and "-1".
std::optional<std::size_t> processors(const std::string& quota, const std::string& period) {
  const auto microseconds = parsed<std::int64_t>(quota), of = parsed<std::int64_t>(period);
  if (!microseconds || !of || *microseconds <= 0 || *of <= 0) return std::nullopt;
  constexpr std::int64_t max_count = std::numeric_limits<std::ptrdiff_t>::max();  // of 32 bits, too
  return static_cast<std::size_t>(std::min((*microseconds - 1) / *of + 1, max_count));
}

/// The quota of one group, of either version.
std::optional<std::size_t> quota_of(const std::string& group) {
  if (const auto words = first_words(group + "/cpu.max"); words.size() == 2)
    return processors(words[0], words[1]);
  const auto quota = first_words(group + "/cpu.cfs_quota_us"),
             period = first_words(group + "/cpu.cfs_period_us");
  if (quota.size() != 1 || period.size() != 1) return std::nullopt;
  return processors(quota[0], period[0]);
}

/// A mounted hierarchy: the group that is mounted, and where.
struct Mount {
  std::string group, path;
};

/// A path of mountinfo, where a space is \040.
std::string unescaped(const std::string& text) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t j) {
      return j < text.size() && text[j] >= '0' && text[j] <= '7' ? text[j] - '0' : -1;
    };
    if (text[i] == '\\' && digit(i + 1) >= 0 && digit(i + 2) >= 0 && digit(i + 3) >= 0) {
      path += static_cast<char>(digit(i + 1) * 64 + digit(i + 2) * 8 + digit(i + 3));
      i += 3;
    } else {
      path += text[i];
    }
  }
  return path;
}

/// The mounts of version 2, or of the controller cpu of version 1.
/// https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
std::vector<Mount> mounts(const std::string& root, bool version_2) {
  std::vector<Mount> all;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (dash - words.begin() < 6 || words.end() - dash < 4) continue;
    const std::vector<std::string> options = split(dash[3], ',');
    const bool fits =
        version_2 ? dash[1] == "cgroup2"
                  : dash[1] == "cgroup" && std::find(options.begin(), options.end(), "cpu") != options.end();
    if (fits) all.push_back({unescaped(words[3]), root + unescaped(words[4])});
  }
  return all;
}

/// The part of a path below `group`; empty if the path is not there.
std::optional<std::string> below(const std::string& group, const std::string& path) {
  const std::string prefix = group == "/" ? "" : group;
  if (!path.starts_with(prefix) || (path.size() > prefix.size() && path[prefix.size()] != '/'))
    return std::nullopt;
  const std::string rest = path.substr(prefix.size());
  const std::vector<std::string> names = split(rest, '/');
  if (std::find(names.begin(), names.end(), "..") != names.end()) return std::nullopt;
  return rest == "/" ? "" : rest;
}

void take_minimum(std::optional<std::size_t>& min_quota, std::optional<std::size_t> other) {
  if (other) min_quota = std::min(min_quota.value_or(*other), *other);
}

/// The minimum of the groups from `path` up to the mounted one. A container may see its own group as the
/// mounted one, and a path outside of it: the mounted group is the innermost that can be read then.
std::optional<std::size_t> quota_in(const std::vector<Mount>& mounts, const std::string& path) {
  std::optional<std::size_t> min_quota;
  bool has_path = false;
  for (const Mount& mount : mounts) {
    std::optional<std::string> rest = below(mount.group, path);
    if (!rest) continue;
    has_path = true;
    for (; !rest->empty(); rest->erase(rest->rfind('/')))
      take_minimum(min_quota, quota_of(mount.path + *rest));
    take_minimum(min_quota, quota_of(mount.path));
  }
  if (!has_path && !mounts.empty()) take_minimum(min_quota, quota_of(mounts.back().path));
  return min_quota;
}

}  // namespace

std::optional<std::size_t> cpu_quota(const std::string& root) {
  std::optional<std::size_t> min_quota;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // HIERARCHY:CONTROLLERS:PATH, where the path may have colons
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::vector<std::string> names = split(controllers, ',');
    const bool version_2 = controllers.empty();
    if (version_2 || std::find(names.begin(), names.end(), "cpu") != names.end())
      take_minimum(min_quota, quota_in(mounts(root, version_2), line.substr(second + 1)));
  }
  return min_quota;
}

}  // namespace xgrad::detail
