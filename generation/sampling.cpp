#include "sampling.hpp"

#include <algorithm>
#include <array>
#include <mutex>

#include "detail/probabilities.hpp"

namespace xgrad::generation {

template <class T>
std::int64_t next_token(const GenerationOptions& options, std::span<const T> logits, Generator& generator) {
  if (logits.empty()) throw ValueError("generation: there must be logits, got none");
  if (!options.do_sample) {
    detail::largest_finite(logits);
    return std::max_element(logits.begin(), logits.end()) - logits.begin();
  }
  const std::vector<T> p = detail::probabilities_of(logits);
  Array<T> weights = Array<T>::from_shape({p.size()});
  std::copy(p.begin(), p.end(), weights.data());
  return multinomial(weights, 1, {}, generator)(0);
}

void skip_token(std::size_t logits, Generator& generator) {
  std::array<std::uint32_t, 1024> words;
  const std::lock_guard lock(generator.mutex());
  for (std::size_t left = 2 * logits; left > 0;) {  // a double takes two words
    const std::size_t count = std::min(left, words.size());
    generator.draw(words.data(), count);
    left -= count;
  }
}

template std::int64_t next_token(const GenerationOptions&, std::span<const float>, Generator&);
template std::int64_t next_token(const GenerationOptions&, std::span<const double>, Generator&);

}  // namespace xgrad::generation
