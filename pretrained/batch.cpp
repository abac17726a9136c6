#include "batch.hpp"

#include <algorithm>

#include "../base/detail/text/json_text.hpp"
#include "../base/error.hpp"

namespace xgrad::pretrained {

using tokenizers::EncodeOptions, tokenizers::Encoding, tokenizers::PadOptions, tokenizers::Tokenizer;

Batch encode(const Tokenizer& tokenizer, std::span<const std::string> texts, const EncodeOptions& options,
             const PadOptions& padding) {
  return pad(tokenizer, tokenizer.encode(texts, options), padding);
}

Batch encode(const Tokenizer& tokenizer, std::span<const std::string> texts,
             std::span<const std::string> seconds, const EncodeOptions& options, const PadOptions& padding) {
  return pad(tokenizer, tokenizer.encode(texts, seconds, options), padding);
}

Batch pad(const Tokenizer& tokenizer, std::vector<Encoding> encodings, const PadOptions& padding) {
  PadOptions options = padding;
  if (!options.padding_side) options.padding_side = tokenizers::Side::right;
  encodings = tokenizer.pad(std::move(encodings), options);
  const std::size_t length = encodings.empty() ? 0 : encodings.front().size();
  const Shape shape{encodings.size(), length};
  Ids ids(shape), mask(shape), types(shape);
  for (std::size_t i = 0; i < encodings.size(); ++i) {
    if (encodings[i].size() != length)
      xgrad::detail::fail<ShapeError>("pad: encodings of a batch must have one length, got ", length, " and ",
                                      encodings[i].size(), " tokens");
    const std::size_t row = i * length;
    std::ranges::copy(encodings[i].ids, ids.data() + row);
    std::ranges::copy(encodings[i].attention_mask, mask.data() + row);
    std::ranges::copy(encodings[i].type_ids, types.data() + row);
  }
  return {{std::move(ids), std::move(mask), std::move(types)}, std::move(encodings)};
}

void check_vocabulary(const Tokenizer& tokenizer, const Config& config, const std::string& folder) {
  if (tokenizer.size() == 0) return;
  const std::int64_t largest = tokenizer.largest_id();
  if (static_cast<std::size_t>(largest) >= config.vocab_size)
    xgrad::detail::fail<FileError>(folder, ": the tokenizer's ids must be below vocab_size in config.json, ",
                                   config.vocab_size, ", got ", largest, " of ",
                                   xgrad::detail::in_quotes(tokenizer.token(largest)));
}

}  // namespace xgrad::pretrained
