#include "json_lines.hpp"

#include <cmath>
#include <cstdio>

#include <xgrad/base/detail/text/json_tree.hpp>

namespace apps {
namespace {

std::string quoted(const std::string& text) {
  return xgrad::detail::JsonTree(text).dump(-1, ' ', false,
                                            xgrad::detail::JsonTree::error_handler_t::replace);
}

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

}  // namespace

std::string vector_json(const std::string& text, std::span<const float> vector) {
  std::string line = "{\"text\":" + quoted(text) + ",\"vector\":[";
  for (std::size_t i = 0; i < vector.size(); ++i) line += (i == 0 ? "" : ",") + number(double{vector[i]});
  return line + "]}";
}

std::string ranking_json(const std::string& query, std::span<const RankedText> texts) {
  std::string line = "{\"query\":" + quoted(query) + ",\"hits\":[";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    line += (i == 0 ? "" : ",") + ("{\"rank\":" + std::to_string(i + 1)) +
            ",\"score\":" + number(texts[i].score) + ",\"line\":" + std::to_string(texts[i].line) +
            ",\"text\":" + quoted(texts[i].text) + "}";
  }
  return line + "]}";
}

}  // namespace apps
