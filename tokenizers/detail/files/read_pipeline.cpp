#include <utility>

#include "../../../base/error.hpp"
#include "folders.hpp"

namespace xgrad::tokenizers::detail {

Pipeline pipeline_of(TokenTable tokens, const std::vector<Declared>& added,
                     std::optional<Normalizer> normalizer, decltype(Pipeline::model) model,
                     PostProcessor post, decltype(Pipeline::decoder) decoder,
                     const decltype(Pipeline::roles)& roles, const TokenizerConfig& config) {
  normalizer = config.adapted(std::move(normalizer));
  AddedMatchers matchers = add_matchers(tokens, added, normalizer);
  return {.tokens = std::move(tokens),
          .added = std::move(matchers.raw),
          .added_normalized = std::move(matchers.normalized),
          .normalizer = std::move(normalizer),
          .model = std::move(model),
          .single = std::move(post.single),
          .pair = std::move(post.pair),
          .trim_offsets = post.trim_offsets,
          .decoder = std::move(decoder),
          .roles = roles,
          .max_length = config.max_length(),
          .truncation_side = config.side("truncation_side"),
          .padding_side = config.side("padding_side")};
}

Pipeline read_pipeline(const std::string& folder, bool lowers, bool reads_target) {
  const TokenizerConfig config(folder, lowers);
  const std::string json = in_folder(folder, "tokenizer.json");
  if (is_file(json)) return read_tokenizer_json(json, Json::read(json), config);
  if (is_file(in_folder(folder, "vocab.txt"))) return read_vocab_txt_folder(folder, config);
  if (is_file(in_folder(folder, "source.spm")) && is_file(in_folder(folder, "target.spm")))
    return read_marian_folder(folder, config, reads_target);
  if (is_file(in_folder(folder, "vocab.json")) && is_file(in_folder(folder, "merges.txt")))
    return read_merges_folder(folder, config);
  for (const char* name : {"sentencepiece.bpe.model", "spiece.model", "spm.model", "tokenizer.model"}) {
    const std::string path = in_folder(folder, name);
    if (is_file(path)) return read_sentence_piece_folder(folder, path, config);
  }
  xgrad::detail::fail<FileError>(
      folder, ": must be a folder with a tokenizer.json, with a vocab.txt, with a vocab.json and a ",
      "merges.txt, with a vocab.json, a source.spm and a target.spm, or with a model of sentencepiece, such "
      "as "
      "spm.model");
}

Pipeline read_pipeline_of_json(const std::string& path, std::string_view text, bool lowers) {
  return read_tokenizer_json(path, Json::parse(path, text), TokenizerConfig(lowers));
}

}  // namespace xgrad::tokenizers::detail
