// Patterns that split texts: what is read matches any text within its steps
// seeds: tests/fuzz/seeds/patterns
#include "../../tokenizers/detail/splits/pattern.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include <xgrad/base/error.hpp>

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using xgrad::tokenizers::detail::Pattern;
  // The first line is the pattern, the rest a text if it is one.
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = std::min(input.find('\n'), input.size());
  std::optional<Pattern> pattern;
  if (!fuzz::accepts<xgrad::ValueError>([&] { pattern.emplace(input.substr(0, line)); })) return 0;
  const std::string_view rest = input.substr(std::min(line + 1, input.size()));
  const bool is_text = xgrad::detail::utf8::find_invalid_utf8(rest) == rest.npos;
  for (const std::string_view text : {is_text ? rest : "", std::string_view("ab1  \n\xc3\xa9'S ")}) {
    fuzz::accepts<xgrad::ValueError>([&] {
      Pattern::Work work(text.size());
      std::size_t done = 0;
      pattern->for_each_match(text, work, [&](std::size_t begin, std::size_t end) {
        fuzz::require(done <= begin && begin <= end && end <= text.size(), "matches are in order");
        done = end;
        return true;
      });
    });
  }
  return 0;
}
