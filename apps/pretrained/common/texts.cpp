#include "texts.hpp"

#include <iostream>

namespace apps {

void for_each_text(const std::vector<std::string>& given, std::size_t at_once,
                   const std::function<void(std::span<const std::string>)>& use) {
  if (!given.empty()) {
    use(given);
    return;
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
    if (lines.size() < at_once) continue;
    use(lines);
    lines.clear();
  }
  if (!lines.empty()) use(lines);
}

}  // namespace apps
