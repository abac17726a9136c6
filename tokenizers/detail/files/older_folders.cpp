#include <utility>

#include "folders.hpp"
#include "post_processor.hpp"
#include "vocabulary_files.hpp"

namespace xgrad::tokenizers::detail {

Pipeline read_vocab_txt_folder(const std::string& folder, const TokenizerConfig& config) {
  const std::string path = in_folder(folder, "vocab.txt");
  constexpr std::size_t most_characters = 100;
  constexpr std::string_view prefix = "##";
  config.check_class({"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"});
  if (const auto basic = config.find("do_basic_tokenize"); basic && !basic->boolean()) basic->refuse("true");
  BertNormalizer::Options options;
  options.handle_chinese_chars = config.flag("tokenize_chinese_chars", true);
  options.lowercase = config.flag("do_lower_case", true);
  options.strip_accents = config.flag("strip_accents", options.lowercase);
  TokenIds vocab = read_vocab_txt(path);
  std::vector<Declared> added = config.tokens(vocab, bert_texts);
  const TokenIds new_ids = new_tokens(vocab, added);
  TokenTable tokens(path, std::move(vocab), new_ids);
  const auto roles = config.roles(tokens, bert_texts);
  const std::uint32_t cls = required(roles, Role::cls, path, bert_texts);
  const std::uint32_t sep = required(roles, Role::sep, path, bert_texts);
  const std::uint32_t unk = required(roles, Role::unk, path, bert_texts);
  PostProcessor post = PostProcessor::bert(cls, sep);
  WordPiece model(tokens, prefix, unk, most_characters);
  return pipeline_of(std::move(tokens), added, BertNormalizer(options), std::move(model), std::move(post),
                     WordPieceDecoder{std::string(prefix), true}, roles, config);
}

Pipeline read_merges_folder(const std::string& folder, const TokenizerConfig& config) {
  const std::string path = in_folder(folder, "vocab.json"), merges = in_folder(folder, "merges.txt");
  config.check_class({"RobertaTokenizer"});
  const bool add_prefix_space = config.flag("add_prefix_space", false);
  TokenIds vocab = read_vocab(path, Json::read(path));
  std::vector<Declared> added = config.tokens(vocab, roberta_texts);
  const auto mask = config.token(Role::mask);
  for (Declared& token : added) {
    // Unless it is declared by an object, the mask takes the blank before it.
    if (token.text == (mask ? mask->text : roberta_texts[static_cast<std::size_t>(Role::mask)]) &&
        (!token.place || token.place->is_string()))
      token.lstrip = true;
  }
  const TokenIds new_ids = new_tokens(vocab, added);
  TokenTable tokens(path, std::move(vocab), new_ids);
  const auto roles = config.roles(tokens, roberta_texts);
  const std::uint32_t cls = required(roles, Role::cls, path, roberta_texts);
  const std::uint32_t sep = required(roles, Role::sep, path, roberta_texts);
  PostProcessor post = PostProcessor::roberta(cls, sep);
  BytePairs model(tokens, read_merges_txt(merges), {.add_prefix_space = add_prefix_space}, merges);
  post.trim_offsets = TrimOffsets{add_prefix_space};
  return pipeline_of(std::move(tokens), added, std::nullopt, std::move(model), std::move(post),
                     ByteLevelDecoder{}, roles, config);
}

}  // namespace xgrad::tokenizers::detail
