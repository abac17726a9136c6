#include "texts.hpp"

#include <iostream>
#include <string_view>

namespace apps {

void for_each_text(const std::vector<std::string>& given, std::size_t at_once,
                   const std::function<void(std::span<const std::string>)>& use) {
  if (!given.empty()) {
    use(given);
    return;
  }
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  std::vector<std::string> lines;
  bool is_first = true;
  for (std::string line; std::getline(std::cin, line); is_first = false) {
    if (is_first && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
    if (lines.size() < at_once) continue;
    use(lines);
    lines.clear();
  }
  if (!lines.empty()) use(lines);
}

}  // namespace apps
