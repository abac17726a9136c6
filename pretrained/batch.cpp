#include "batch.hpp"

#include <algorithm>

namespace xgrad::pretrained {

using tokenizers::EncodeOptions, tokenizers::Encoding, tokenizers::Tokenizer;

Batch encode(const Tokenizer& tokenizer, std::span<const std::string> texts, const EncodeOptions& options) {
  return pad(tokenizer, tokenizer.encode(texts, options));
}

Batch encode(const Tokenizer& tokenizer, std::span<const std::string> texts,
             std::span<const std::string> seconds, const EncodeOptions& options) {
  return pad(tokenizer, tokenizer.encode(texts, seconds, options));
}

Batch pad(const Tokenizer& tokenizer, std::vector<Encoding> encodings) {
  encodings = tokenizer.pad(std::move(encodings));
  const std::size_t length = encodings.empty() ? 0 : encodings.front().size();
  const Shape shape{encodings.size(), length};
  Ids ids(shape), mask(shape), types(shape);
  for (std::size_t i = 0; i < encodings.size(); ++i) {
    const std::size_t row = i * length;
    std::ranges::copy(encodings[i].ids, ids.data() + row);
    std::ranges::copy(encodings[i].attention_mask, mask.data() + row);
    std::ranges::copy(encodings[i].type_ids, types.data() + row);
  }
  return {{std::move(ids), std::move(mask), std::move(types)}, std::move(encodings)};
}

}  // namespace xgrad::pretrained
