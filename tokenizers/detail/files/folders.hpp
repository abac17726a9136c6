#pragma once

#include <string>

#include "pipeline.hpp"
#include "post_processor.hpp"
#include "tokenizer_config.hpp"

// Not installed: tokenizers by the files that a folder has. All functions throw FileError.

namespace xgrad::tokenizers::detail {

/// What a folder's files gave, with the tokens to find in texts, and with what its configuration says.
Pipeline pipeline_of(TokenTable tokens, const std::vector<Declared>& added,
                     std::optional<Normalizer> normalizer, decltype(Pipeline::model) model,
                     PostProcessor post, decltype(Pipeline::decoder) decoder,
                     const decltype(Pipeline::roles)& roles, const TokenizerConfig& config);

/// By a tokenizer.json, which errors call `path`.
Pipeline read_tokenizer_json(const std::string& path, const Json& file, const TokenizerConfig& config);

/// By vocab.txt, as transformers' BertTokenizer reads it.
Pipeline read_vocab_txt_folder(const std::string& folder, const TokenizerConfig& config);

/// By vocab.json and merges.txt, as transformers' RobertaTokenizer, BartTokenizer or GPT2Tokenizer reads
/// them.
Pipeline read_merges_folder(const std::string& folder, const TokenizerConfig& config);

/// By a model of sentencepiece at the path, as the folder's class of transformers reads it, or sentencepiece
/// itself if the folder names no class.
Pipeline read_sentence_piece_folder(const std::string& folder, const std::string& path,
                                    const TokenizerConfig& config);

/// By vocab.json with source.spm or target.spm, as transformers' MarianTokenizer reads them without
/// sacremoses.
Pipeline read_marian_folder(const std::string& folder, const TokenizerConfig& config, bool reads_target);

}  // namespace xgrad::tokenizers::detail
