#include <utility>

#include "../unicode/unicode.hpp"
#include "folders.hpp"
#include "post_processor.hpp"
#include "read_splits.hpp"
#include "vocabulary_files.hpp"

namespace xgrad::tokenizers::detail {
namespace {

/// The type of a part of tokenizer.json.
const std::string& type_of(const Json& part) { return part.at("type").text(); }

DecoderStep read_decoder_step(const Json& part) {
  const std::string& type = type_of(part);
  if (type == "ByteLevel") return ByteLevelDecoder{};
  if (type == "Metaspace") {
    const MetaspaceSplit metaspace = read_metaspace(part);
    return MetaspaceDecoder{metaspace.blank, metaspace.prepend != MetaspaceSplit::Prepend::never};
  }
  if (type == "WordPiece") return WordPieceDecoder{part.at("prefix").text(), part.at("cleanup").boolean()};
  if (type == "ByteFallback") return ByteFallbackDecoder{};
  if (type == "Fuse") return FuseDecoder{};
  if (type == "Replace") return read_replace(part);
  if (type == "Strip") {
    const Json content = part.at("content");
    if (unicode::count(content.text()) != 1) content.refuse("one character");
    const auto count = [&](const char* name) {
      return static_cast<std::size_t>(part.at(name).integer(0, largest_id));
    };
    return StripDecoder{unicode::first_of(content.text()), count("start"), count("stop")};
  }
  part.at("type").refuse(
      "ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Strip or WordPiece, a Sequence of these, or no "
      "decoder");
}

DecoderSteps read_decoder(const std::optional<Json>& part) {
  if (!part) return {};
  if (type_of(*part) != "Sequence") return {read_decoder_step(*part)};
  DecoderSteps steps;
  for (const Json& one : part->at("decoders").items()) steps.push_back(read_decoder_step(one));
  if (steps.empty()) part->at("decoders").refuse("decoders");
  return steps;
}

/// Older files do not name the type.
std::string model_type(const Json& model) {
  if (const auto type = model.find("type")) {
    if (type->text() != "WordPiece" && type->text() != "BPE" && type->text() != "Unigram")
      type->refuse("WordPiece, Unigram or BPE: other models are not supported");
    return type->text();
  }
  return model.find("merges") ? "BPE" : "WordPiece";
}

void refuse_unless_empty(const Json& model, const char* name) {
  const auto value = model.find(name);
  if (value && !value->text().empty()) value->refuse("empty: other values are not supported");
}

/// Of bytes if the pre-tokenizer makes bytes of texts, or else of characters.
decltype(Pipeline::model) read_byte_pairs(const std::string& path, const TokenTable& tokens,
                                          const Json& model, const std::optional<Json>& pre_tokenizer) {
  if (const auto dropout = model.find("dropout")) dropout->number(0, 0);
  refuse_unless_empty(model, "continuing_subword_prefix");
  refuse_unless_empty(model, "end_of_word_suffix");
  Splitter splitter = read_splitter(pre_tokenizer);
  const MergeTexts merges = read_merges(model.at("merges"));
  const std::string where = path + ": model";
  const auto unknown_text = model.find("unk_token");
  const auto unknown = unknown_text ? tokens.model_index(unknown_text->text()) : std::nullopt;
  const bool fuse_unknown = model.flag("fuse_unk", false), byte_fallback = model.flag("byte_fallback", false),
             ignore_merges = model.flag("ignore_merges", false);
  const auto check_unknown = [&] {
    if (unknown_text && !unknown) unknown_text->refuse("a token of model.vocab");
  };
  if (splitter.has_bytes()) {
    BytePairs pairs(tokens, merges,
                    {.splitter = std::move(splitter),
                     .unknown = unknown,
                     .fuse_unknown = fuse_unknown,
                     .ignore_merges = ignore_merges},
                    where);
    if (!pairs.lacks_bytes()) return pairs;
    check_unknown();
    if (byte_fallback)
      model.at("byte_fallback").refuse("false for a model of bytes, of which some have no token");
    return pairs;
  }
  check_unknown();
  CharacterPairs::Options options{.splitter = std::move(splitter),
                                  .unknown = unknown,
                                  .fuse_unknown = fuse_unknown,
                                  .byte_fallback = byte_fallback,
                                  .ignore_merges = ignore_merges};
  return CharacterPairs(tokens, merges, std::move(options), where);
}

Unigram read_unigram(const TokenTable& tokens, const Json& model, const std::vector<double>& scores,
                     const std::optional<Json>& pre_tokenizer) {
  if (model.is_null("unk_id")) model.fail("unk_id must be the id of a token, got null");
  const Json id = model.at("unk_id");
  const std::uint32_t unknown = known(tokens, id);
  if (!tokens[unknown].in_model) id.refuse("the id of a token of model.vocab");
  Splitter splitter = read_splitter(pre_tokenizer);
  if (splitter.has_bytes()) pre_tokenizer->fail("must have no ByteLevel for a Unigram model");
  return {tokens, scores, unknown, model.flag("byte_fallback", false), std::move(splitter)};
}

WordPiece read_word_piece(const TokenTable& tokens, const Json& model, const Json& pre_tokenizer) {
  if (type_of(pre_tokenizer) != "BertPreTokenizer")
    pre_tokenizer.at("type").refuse("BertPreTokenizer for a WordPiece model");
  const Json unknown = model.at("unk_token");
  const auto token = tokens.model_index(unknown.text());
  if (!token) unknown.refuse("a token of model.vocab");
  const std::int64_t most = model.at("max_input_chars_per_word").integer(0, largest_id);
  return {tokens, model.at("continuing_subword_prefix").text(), *token, static_cast<std::size_t>(most)};
}

}  // namespace

Pipeline read_tokenizer_json(const std::string& path, const Json& file, const TokenizerConfig& config) {
  if (const auto version = file.find("version"); version && version->text() != "1.0") version->refuse("1.0");
  const Json model = file.at("model");
  const auto pre_tokenizer = file.find("pre_tokenizer");
  const std::string type = model_type(model);
  std::vector<double> scores;
  TokenIds vocab = type == "Unigram" ? read_scored_vocab(path, model.at("vocab"), scores)
                                     : read_vocab(path, model.at("vocab"));
  std::vector<Declared> added = read_added_tokens(file.find("added_tokens"));
  const TokenIds new_ids = new_tokens(vocab, added);
  TokenTable tokens(path, std::move(vocab), new_ids);
  const auto read_model = [&]() -> decltype(Pipeline::model) {
    if (type == "BPE") return read_byte_pairs(path, tokens, model, pre_tokenizer);
    if (type == "Unigram") return read_unigram(tokens, model, scores, pre_tokenizer);
    return read_word_piece(tokens, model, file.at("pre_tokenizer"));
  };
  decltype(Pipeline::model) reads = read_model();
  PostProcessor post = read_post_processor(tokens, file.find("post_processor"));
  const bool has_bert_texts = type == "WordPiece" || tokens.index(bert_texts.front());
  const auto roles = config.roles(tokens, has_bert_texts ? bert_texts : roberta_texts);
  std::vector<std::string> notes = config.contradictions(file, tokens);
  Pipeline pipeline =
      pipeline_of(std::move(tokens), added, read_normalizer(file.find("normalizer")), std::move(reads),
                  std::move(post), read_decoder(file.find("decoder")), roles, config);
  pipeline.notes = std::move(notes);
  return pipeline;
}

}  // namespace xgrad::tokenizers::detail
