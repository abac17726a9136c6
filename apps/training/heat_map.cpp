#include "heat_map.hpp"

#include <cstdio>

#include "../common/columns.hpp"

namespace apps {

void print_attention_from(std::ostream& out, const std::vector<xgrad::Variable<float>>& weights,
                          std::size_t query, const std::vector<std::string>& words) {
  static constexpr const char* shades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
  char text[64];
  std::string line(17, ' ');
  const auto print_line = [&] {
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  };
  for (const std::string& word : words) line += " " + on_the_left(first_characters(word, 8), 8);
  print_line();
  for (std::size_t layer = 0; layer < weights.size(); ++layer) {
    for (std::size_t head = 0; head < weights[layer].shape(1); ++head) {
      std::snprintf(text, sizeof text, "  layer %zu head %zu", layer, head);
      line = text;
      for (std::size_t key = 0; key < words.size(); ++key) {
        const float weight = weights[layer].value()(0, head, query, key);
        std::snprintf(text, sizeof text, " %.2f %s ", static_cast<double>(weight),
                      shades[static_cast<int>(weight * 4.99F)]);
        line += text;
      }
      print_line();
    }
  }
}

}  // namespace apps
