#pragma once

#include <cstdint>
#include <optional>

#include "json.hpp"
#include "pipeline.hpp"

// Not installed.

namespace xgrad::tokenizers::detail {

/// The index of the token that a file names by its id. Throws FileError for an id without a token.
std::uint32_t known(const TokenTable& tokens, const Json& id);

/// The parts that come after the model: the two templates and how offsets are trimmed.
struct PostProcessor {
  Template single{text(TemplatePart::Kind::first, 0)};
  Template pair{text(TemplatePart::Kind::first, 0), text(TemplatePart::Kind::second, 1)};
  std::optional<TrimOffsets> trim_offsets;

  static TemplatePart text(TemplatePart::Kind kind, std::int64_t type_id) { return {kind, 0, type_id}; }
  static TemplatePart special(std::uint32_t token, std::int64_t type_id) {
    return {TemplatePart::Kind::special, token, type_id};
  }

  /// [CLS] A [SEP], [CLS] A [SEP] B [SEP]
  static PostProcessor bert(std::uint32_t cls, std::uint32_t sep) {
    using Kind = TemplatePart::Kind;
    PostProcessor result;
    result.single = {special(cls, 0), text(Kind::first, 0), special(sep, 0)};
    result.pair = result.single;
    result.pair.insert(result.pair.end(), {text(Kind::second, 1), special(sep, 1)});
    return result;
  }

  /// <s> A </s>, <s> A </s></s> B </s>
  static PostProcessor roberta(std::uint32_t cls, std::uint32_t sep) {
    using Kind = TemplatePart::Kind;
    PostProcessor result;
    result.single = {special(cls, 0), text(Kind::first, 0), special(sep, 0)};
    result.pair = result.single;
    result.pair.insert(result.pair.end(), {special(sep, 0), text(Kind::second, 0), special(sep, 0)});
    return result;
  }
};

/// The post_processor of a tokenizer.json. Throws FileError.
PostProcessor read_post_processor(const TokenTable& tokens, const std::optional<Json>& part);

}  // namespace xgrad::tokenizers::detail
