#include <string>
#include <vector>

#include "../unicode/unicode.hpp"
#include "pipeline.hpp"
#include "read_splits.hpp"

namespace xgrad::tokenizers::detail {
namespace {

/// A step of a normalizer that is not BERT's.
TextSteps::Step read_step(const Json& part) {
  const std::string& type = part.at("type").text();
  if (type == "Precompiled") {
    const Json map = part.at("precompiled_charsmap");
    return Charsmap(decoded_base64(map), map.place());
  }
  if (type == "Strip") return Strip{part.at("strip_left").boolean(), part.at("strip_right").boolean()};
  if (type == "StripAccents") return StripAccents{};
  if (type == "Lowercase") return Lowercase{};
  if (type == "NFD" || type == "NFC" || type == "NFKD" || type == "NFKC")
    return NormalForm{.compatibility = type[2] == 'K', .composes = type.back() == 'C'};
  if (type == "Nmt") return Nmt{};
  if (type == "Prepend") return Prepend{part.at("prepend").text()};
  if (type != "Replace")
    part.at("type").refuse(
        "NFC, NFD, NFKC, NFKD, Lowercase, Nmt, Precompiled, Prepend, Replace, Strip or StripAccents, or "
        "BertNormalizer alone");
  return read_replace(part);
}

}  // namespace

std::optional<Normalizer> read_normalizer(const std::optional<Json>& part) {
  if (!part) return std::nullopt;
  const std::string& type = part->at("type").text();
  if (type != "BertNormalizer") {
    std::vector<TextSteps::Step> steps;
    const std::vector<Json> parts =
        type == "Sequence" ? part->at("normalizers").items() : std::vector<Json>{*part};
    for (const Json& one : parts) steps.push_back(read_step(one));
    return TextSteps(std::move(steps));
  }
  BertNormalizer::Options options;
  options.clean_text = part->at("clean_text").boolean();
  options.handle_chinese_chars = part->at("handle_chinese_chars").boolean();
  options.lowercase = part->at("lowercase").boolean();
  options.strip_accents = part->flag("strip_accents", options.lowercase);
  return BertNormalizer(options);
}

}  // namespace xgrad::tokenizers::detail
