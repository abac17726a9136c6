#include "json_text.hpp"

#include <algorithm>

#include "utf8.hpp"

namespace xgrad::detail {
namespace {

/// As JSON's grammar demands: https://www.rfc-editor.org/rfc/rfc8259 (section 7)
void append_escaped(std::string& text, char byte) {
  constexpr std::string_view named = "\"\\\b\f\n\r\t", names = "\"\\bfnrt", digits = "0123456789abcdef";
  if (const std::size_t place = named.find(byte); place != named.npos) {
    text += '\\';
    text += names[place];
  } else if (const auto code = static_cast<unsigned char>(byte); code < 0x20) {
    text += "\\u00";
    text += digits[code / 16];
    text += digits[code % 16];
  } else {
    text += byte;
  }
}

}  // namespace

std::string in_quotes(std::string_view text) { return '"' + escaped(text) + '"'; }

std::string escaped(std::string_view text) {
  constexpr std::size_t longest = 200;
  std::string shown;
  for (const char byte : utf8::to_valid(text.substr(0, longest))) append_escaped(shown, byte);
  return shown + (text.size() > longest ? "..." : "");
}

std::string json_error(std::string_view what) {
  constexpr std::size_t longest = 300;
  // "[...] parse error at line 1, column 2: syntax error ...; last read: '...'"
  std::string reason(what);
  reason.erase(std::min({reason.find("; last read"), reason.size(), longest}));
  reason.erase(0, reason.find("] ") + 2);
  return reason;
}

}  // namespace xgrad::detail
