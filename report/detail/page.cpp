#include "page.hpp"

#include <string_view>

namespace xgrad::detail {

extern const std::string_view template_text;

namespace {

constexpr std::string_view marker = "\"@XGRAD_REPORT@\"";

/// JSON that no text in it can end the element of: these characters stand in strings only.
std::string escaped(std::string_view json) {
  std::string text;
  text.reserve(json.size() + 1024);
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<') {
      text += "\\u003c";
    } else if (c == '>') {
      text += "\\u003e";
    } else if (c == '&') {
      text += "\\u0026";
    } else if (json.substr(i, 3) == "\u2028") {
      text += "\\u2028";
      i += 2;
    } else if (json.substr(i, 3) == "\u2029") {
      text += "\\u2029";
      i += 2;
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string page_with(const std::string& json) {
  const std::size_t place = template_text.find(marker);
  std::string page(template_text.substr(0, place));
  page += escaped(json);
  page += template_text.substr(place + marker.size());
  return page;
}

}  // namespace xgrad::detail
