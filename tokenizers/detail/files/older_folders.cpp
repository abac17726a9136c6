#include <utility>

#include "folders.hpp"
#include "post_processor.hpp"
#include "vocabulary_files.hpp"

namespace xgrad::tokenizers::detail {
namespace {

constexpr RoleTexts gpt2_texts{"", "", "", "<|endoftext|>", ""};

/// By the class, or without one by the type of the model.
bool is_gpt2_folder(const std::string& folder, const TokenizerConfig& config) {
  if (const std::string name = config.class_name(); !name.empty()) return name == "GPT2Tokenizer";
  const std::string path = in_folder(folder, "config.json");
  const auto type = is_file(path) ? Json::read(path).find("model_type") : std::nullopt;
  return type && type->text() == "gpt2";
}

}  // namespace

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
                     DecoderSteps{WordPieceDecoder{std::string(prefix), true}}, roles, config);
}

Pipeline read_merges_folder(const std::string& folder, const TokenizerConfig& config) {
  const std::string path = in_folder(folder, "vocab.json"), merges = in_folder(folder, "merges.txt");
  config.check_class({"RobertaTokenizer", "BartTokenizer", "GPT2Tokenizer"});
  const bool is_gpt2 = is_gpt2_folder(folder, config);
  const RoleTexts& texts = is_gpt2 ? gpt2_texts : roberta_texts;
  const bool add_prefix_space = config.flag("add_prefix_space", false);
  TokenIds vocab = read_vocab(path, Json::read(path));
  std::vector<Declared> added = config.tokens(vocab, texts);
  const auto mask = config.token(Role::mask);
  for (Declared& token : added) {
    // Unless it is declared by an object, the mask takes the blank before it.
    if (token.text == (mask ? mask->text : texts[static_cast<std::size_t>(Role::mask)]) &&
        (!token.place || token.place->is_string()))
      token.lstrip = true;
  }
  const TokenIds new_ids = new_tokens(vocab, added);
  TokenTable tokens(path, std::move(vocab), new_ids);
  const auto roles = config.roles(tokens, texts);
  PostProcessor post;
  if (!is_gpt2) {
    const std::uint32_t cls = required(roles, Role::cls, path, texts);
    const std::uint32_t sep = required(roles, Role::sep, path, texts);
    post = PostProcessor::roberta(cls, sep);
    post.trim_offsets = TrimOffsets{add_prefix_space};
  }
  BytePairs model(
      tokens, read_merges_txt(merges),
      {.splitter = Splitter({ByteLevelSplit{.add_prefix_space = add_prefix_space, .use_regex = true}})},
      merges);
  return pipeline_of(std::move(tokens), added, std::nullopt, std::move(model), std::move(post),
                     DecoderSteps{ByteLevelDecoder{}}, roles, config);
}

}  // namespace xgrad::tokenizers::detail
