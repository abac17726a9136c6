#pragma once

// Results as JSON, an object in a line.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace apps {

/// A text and how well it answers a query.
struct RankedText {
  double score;
  std::size_t line;  ///< its number
  std::string text;
};

/// {"text":"a text","vector":[0.5,-1]}, with numbers of 9 digits, which give the same floats; null for those
/// that are not finite.
std::string vector_json(const std::string& text, std::span<const float> vector);

/// {"query":"a query","hits":[{"rank":1,"score":0.5,"line":3,"text":"a text"}]}
std::string ranking_json(const std::string& query, std::span<const RankedText> texts);

}  // namespace apps
