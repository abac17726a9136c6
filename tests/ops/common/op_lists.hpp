#pragma once

// The ops that the sources describe, and lists of those that lack something, with reasons.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "../../files.hpp"

namespace xgrad_tests::op_lists {

using Names = std::set<std::string>;

/// What the first group of a pattern is in the texts of a folder's files, which `part` may shorten.
inline Names found(const char* folder, const char* extension, const char* pattern,
                   const std::function<std::string(std::string)>& part = {}) {
  Names names;
  const std::regex regex(pattern);
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(std::string(XGRAD_SOURCE_DIR "/") + folder)) {
    if (file.path().extension() != extension) continue;
    std::string text = xgrad_tests::read_bytes(file.path());
    if (part) text = part(text);
    for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
      names.insert((*match)[1]);
  }
  return names;
}

/// The ops that are described in headers; those in sources are made by gradients alone.
inline const Names& described() {
  static const Names all = [] {
    Names names;
    for (const char* folder : {"graph", "ops", "autograd"})
      names.merge(found(folder, ".hpp", R"(\ninline constexpr Op \w+\(\s*"(\w+)\")"));
    return names;
  }();
  return all;
}

/// Ops that lack something: why, and which.
using Reasons = std::map<std::string, Names>;

inline void expect_all_but(const Names& have, const Reasons& lacking, const char* what) {
  Names named;
  for (const auto& [reason, ops] : lacking) {
    for (const std::string& op : ops) {
      EXPECT_TRUE(named.insert(op).second) << op << " is listed twice";
      EXPECT_TRUE(described().contains(op)) << op << " is listed as without " << what << ", but is no op";
      EXPECT_FALSE(have.contains(op))
          << op << " is listed as without " << what << " (" << reason << "), but has one";
    }
  }
  for (const std::string& op : described())
    EXPECT_TRUE(have.contains(op) || named.contains(op)) << op << " has no " << what << " and is not listed";
}

}  // namespace xgrad_tests::op_lists
