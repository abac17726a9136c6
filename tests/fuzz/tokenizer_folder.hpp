#pragma once

// Tokenizers of folders: what is read splits any text and puts it together again.

#include <optional>
#include <string_view>

#include <xgrad/base/detail/text/utf8.hpp>
#include <xgrad/tokenizers/decode_stream.hpp>
#include <xgrad/tokenizers/tokenizer.hpp>

#include "model_folder.hpp"

namespace fuzz {

inline void read_and_split(const ModelFolder& folder, std::string_view text, std::string_view second) {
  std::optional<xgrad::tokenizers::Tokenizer> tokenizer;
  if (!accepts<xgrad::FileError>(
          [&] { tokenizer = xgrad::tokenizers::Tokenizer::from_folder(folder.path()); }))
    return;
  accepts<xgrad::ValueError>([&] {
    const auto encoding =
        tokenizer->encode(text, second, {.max_length = 12, .return_overflowing_tokens = true});
    require(encoding.size() <= 12, "an encoding is not longer than max_length");
    tokenizer->decode(encoding.ids);
    tokenizer->decode(encoding.ids, false);
    xgrad::tokenizers::DecodeStream stream(*tokenizer, false);
    for (const std::int64_t id : encoding.ids)
      require(xgrad::detail::utf8::find_invalid_utf8(stream.step(id)) == std::string::npos,
              "a stream gives whole characters");
  });
}

}  // namespace fuzz
