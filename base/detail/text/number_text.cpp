#include "number_text.hpp"

#include <algorithm>
#include <charconv>
#include <iomanip>
#include <limits>
#include <locale>
#include <sstream>

#include "parse.hpp"

namespace xgrad::detail {

std::string formatted(double number, Notation notation, int digits) {
  std::ostringstream stream;
  stream.exceptions(std::ios::badbit);  // without it, failing memory would cut the text off
  stream.imbue(std::locale::classic());
  stream << (notation == Notation::fixed ? std::fixed : std::scientific) << std::setprecision(digits)
         << number;
  return stream.str();
}

std::string shortest_text(double number) {
#ifdef __cpp_lib_to_chars
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
#else
  std::string scientific;  // what has up to 15 digits is found with 15, and zeros behind it
  for (int digits = std::numeric_limits<double>::digits10; parsed<double>(scientific) != number; ++digits)
    scientific = formatted(number, Notation::scientific, digits - 1);
  const std::size_t mark = scientific.find('e'), point = scientific.find('.');
  const std::size_t last = scientific.find_last_not_of('0', mark - 1);
  const int behind = static_cast<int>(last - point);
  const int exponent = std::stoi(scientific.substr(mark + 1));
  scientific.erase(last == point ? point : last + 1, mark - (last == point ? point : last + 1));
  const std::string fixed = formatted(number, Notation::fixed, std::max(0, behind - exponent));
  return fixed.size() <= scientific.size() ? fixed : scientific;
#endif
}

}  // namespace xgrad::detail
