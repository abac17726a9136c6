#include <utility>

#include "../unicode/unicode.hpp"
#include "folders.hpp"
#include "post_processor.hpp"
#include "vocabulary_files.hpp"

namespace xgrad::tokenizers::detail {
namespace {

/// The type of a part of tokenizer.json.
const std::string& type_of(const Json& part) { return part.at("type").text(); }

/// In its old and its new spelling.
Metaspace read_metaspace(const Json& part) {
  if (type_of(part) != "Metaspace") part.at("type").refuse("Metaspace for a Unigram model");
  Metaspace result{
      .prepend = part.flag("add_prefix_space", true) ? Metaspace::Prepend::always : Metaspace::Prepend::never,
      .blank = part.at("replacement").text(),
      .split = part.flag("split", true)};
  if (unicode::count(result.blank) != 1) part.at("replacement").refuse("one character");
  if (const auto shown = part.find("str_rep"); shown && shown->text() != result.blank)
    shown->refuse("the replacement");
  const auto scheme = part.find("prepend_scheme");
  if (!scheme) return result;
  if (scheme->text() == "always") {
    result.prepend = Metaspace::Prepend::always;
  } else if (scheme->text() == "first") {
    result.prepend = Metaspace::Prepend::first;
  } else if (scheme->text() == "never") {
    result.prepend = Metaspace::Prepend::never;
  } else {
    scheme->refuse("always, first or never");
  }
  return result;
}

/// A Metaspace, which may come in a sequence, after a split at white space.
Metaspace read_metaspaces(const Json& pre_tokenizer) {
  if (type_of(pre_tokenizer) != "Sequence") return read_metaspace(pre_tokenizer);
  const Json list = pre_tokenizer.at("pretokenizers");
  std::vector<Json> parts = list.items();
  const bool splits_first = !parts.empty() && type_of(parts.front()) == "WhitespaceSplit";
  if (parts.size() != (splits_first ? 2U : 1U)) list.refuse("Metaspace, or WhitespaceSplit and Metaspace");
  Metaspace result = read_metaspace(parts.back());
  result.splits_spaces_first = splits_first;
  return result;
}

decltype(Pipeline::decoder) read_decoder(const std::optional<Json>& part) {
  if (!part) return {};
  if (type_of(*part) == "ByteLevel") return ByteLevelDecoder{};
  if (type_of(*part) == "Metaspace") {
    const Metaspace metaspace = read_metaspace(*part);
    return MetaspaceDecoder{metaspace.blank, metaspace.prepend != Metaspace::Prepend::never};
  }
  if (type_of(*part) != "WordPiece")
    part->at("type").refuse("WordPiece, ByteLevel or Metaspace, or no decoder");
  return WordPieceDecoder{part->at("prefix").text(), part->at("cleanup").boolean()};
}

/// Older files do not name the type.
std::string model_type(const Json& model) {
  if (const auto type = model.find("type")) {
    if (type->text() != "WordPiece" && type->text() != "BPE" && type->text() != "Unigram")
      type->refuse("WordPiece, Unigram, or BPE of bytes: other models are not supported");
    return type->text();
  }
  return model.find("merges") ? "BPE" : "WordPiece";
}

void refuse_unless_empty(const Json& model, const char* name) {
  const auto value = model.find(name);
  if (value && !value->text().empty()) value->refuse("empty: other values are not supported");
}

void refuse_if_true(const Json& model, const char* name) {
  const auto value = model.find(name);
  if (value && value->boolean()) value->refuse("false: other values are not supported");
}

BytePairs read_byte_pairs(const std::string& path, const TokenTable& tokens, const Json& model,
                          const Json& pre_tokenizer) {
  if (type_of(pre_tokenizer) != "ByteLevel") pre_tokenizer.at("type").refuse("ByteLevel for a BPE model");
  if (const auto dropout = model.find("dropout")) dropout->number(0, 0);
  refuse_unless_empty(model, "continuing_subword_prefix");
  refuse_unless_empty(model, "end_of_word_suffix");
  refuse_if_true(model, "fuse_unk");
  refuse_if_true(model, "byte_fallback");
  refuse_if_true(model, "ignore_merges");
  const BytePairs::Options options{.add_prefix_space = pre_tokenizer.at("add_prefix_space").boolean(),
                                   .use_regex = pre_tokenizer.flag("use_regex", true)};
  return {tokens, read_merges(model.at("merges")), options, path + ": model"};
}

Unigram read_unigram(const TokenTable& tokens, const Json& model, const std::vector<double>& scores,
                     const Json& pre_tokenizer) {
  if (model.is_null("unk_id")) model.fail("unk_id must be the id of a token, got null");
  const Json id = model.at("unk_id");
  const std::uint32_t unknown = known(tokens, id);
  if (!tokens[unknown].in_model) id.refuse("the id of a token of model.vocab");
  return {tokens, scores, unknown, model.flag("byte_fallback", false), read_metaspaces(pre_tokenizer)};
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

Pipeline read_tokenizer_json(const std::string& path, const TokenizerConfig& config) {
  const Json file = Json::read(path);
  if (const auto version = file.find("version"); version && version->text() != "1.0") version->refuse("1.0");
  const Json model = file.at("model"), pre_tokenizer = file.at("pre_tokenizer");
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
    return read_word_piece(tokens, model, pre_tokenizer);
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
