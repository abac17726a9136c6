#include "tokenizer_files.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "../base/detail/system/folder_files.hpp"
#include "../base/detail/text/json_text.hpp"
#include "../base/detail/text/json_tree.hpp"
#include "../base/error.hpp"
#include "../base/folder.hpp"
#include "detail/files/model_folder.hpp"
#include "detail/splits/byte_alphabet.hpp"
#include "detail/unicode/unicode.hpp"

namespace xgrad::tokenizers {
namespace {

namespace unicode = detail::unicode;
using ordered_json = xgrad::detail::OrderedJsonTree;
using xgrad::detail::fail, xgrad::detail::in_quotes, xgrad::detail::write_file;

constexpr std::array<const char*, 5> special_tokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
constexpr const char* unknown = "[UNK]";
constexpr const char* prefix = "##";

bool has_space(std::string_view text) {
  for (; !text.empty(); text.remove_prefix(unicode::first_length(text)))
    if (unicode::is(unicode::first_of(text), unicode::space)) return true;
  return false;
}

void check(std::span<const std::string> vocabulary) {
  std::unordered_set<std::string_view> seen;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& token = vocabulary[id];
    if (unicode::find_invalid_utf8(token) != token.npos)
      fail<ValueError>("write_word_piece: a token must be UTF-8, got something else for the id ", id);
    if (token.empty() || has_space(token))
      fail<ValueError>("write_word_piece: a token must have characters and no white space, got ",
                       in_quotes(token), " for the id ", id);
    if (!seen.insert(token).second)
      fail<ValueError>("write_word_piece: tokens must differ, got ", in_quotes(token), " twice");
  }
  for (const char* token : special_tokens) {
    if (!seen.contains(token))
      fail<ValueError>("write_word_piece: the vocabulary must have ", token, ", got ", vocabulary.size(),
                       " tokens without it");
  }
}

std::size_t id_of(std::span<const std::string> vocabulary, const char* token) {
  return static_cast<std::size_t>(std::distance(vocabulary.begin(), std::ranges::find(vocabulary, token)));
}

template <class Tokens>
ordered_json added_tokens(std::span<const std::string> vocabulary, const Tokens& special) {
  ordered_json all = ordered_json::array();
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (std::ranges::find(special, vocabulary[id]) == std::ranges::end(special)) continue;
    all.push_back({{"id", id},
                   {"content", vocabulary[id]},
                   {"single_word", false},
                   {"lstrip", false},
                   {"rstrip", false},
                   {"normalized", false},
                   {"special", true}});
  }
  return all;
}

/// [CLS] A [SEP], and [CLS] A [SEP] B [SEP].
ordered_json post_processor(std::span<const std::string> vocabulary) {
  const auto part = [](const char* kind, const char* id, int type_id) {
    return ordered_json{{kind, {{"id", id}, {"type_id", type_id}}}};
  };
  const ordered_json single{part("SpecialToken", "[CLS]", 0), part("Sequence", "A", 0),
                            part("SpecialToken", "[SEP]", 0)};
  ordered_json pair = single;
  pair.push_back(part("Sequence", "B", 1));
  pair.push_back(part("SpecialToken", "[SEP]", 1));
  ordered_json specials = ordered_json::object();
  for (const char* token : {"[CLS]", "[SEP]"}) {
    specials[token] = {{"id", token},
                       {"ids", ordered_json::array({id_of(vocabulary, token)})},
                       {"tokens", ordered_json::array({token})}};
  }
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", specials}};
}

ordered_json ids_of(std::span<const std::string> vocabulary) {
  ordered_json ids = ordered_json::object();
  // Looking a name up in an ordered object would take as long as all that is before it.
  auto& members = ids.get_ref<ordered_json::object_t&>();
  members.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id)
    static_cast<ordered_json::object_t::Container&>(members).emplace_back(vocabulary[id], id);
  return ids;
}

ordered_json model(std::span<const std::string> vocabulary) {
  return {{"type", "WordPiece"},
          {"unk_token", unknown},
          {"continuing_subword_prefix", prefix},
          {"max_input_chars_per_word", 100},
          {"vocab", ids_of(vocabulary)}};
}

ordered_json tokenizer(std::span<const std::string> vocabulary, bool lowercase) {
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_tokens(vocabulary, special_tokens)},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", true},
            {"strip_accents", nullptr},
            {"lowercase", lowercase}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", post_processor(vocabulary)},
          {"decoder", {{"type", "WordPiece"}, {"prefix", prefix}, {"cleanup", true}}},
          {"model", model(vocabulary)}};
}

ordered_json tokenizer_config(const WordPieceFileOptions& options) {
  return {{"do_lower_case", options.lowercase},
          {"strip_accents", nullptr},
          {"tokenize_chinese_chars", true},
          {"cls_token", "[CLS]"},
          {"mask_token", "[MASK]"},
          {"pad_token", "[PAD]"},
          {"sep_token", "[SEP]"},
          {"unk_token", unknown},
          {"tokenizer_class", "BertTokenizer"},
          {"model_max_length", options.max_length}};
}

void check(const ByteLevelBpe& trained, const ByteLevelBpeFileOptions& options) {
  std::unordered_set<std::string_view> tokens;
  for (const std::string& token : trained.vocabulary) {
    if (token.empty() || unicode::find_invalid_utf8(token) != token.npos || !tokens.insert(token).second)
      fail<ValueError>("write_byte_level_bpe: tokens must be UTF-8, differ and not be empty, got ",
                       in_quotes(token));
  }
  const auto check_token = [&](const std::string& token, const char* what) {
    if (!tokens.contains(token))
      fail<ValueError>("write_byte_level_bpe: the vocabulary must have ", what, ", got none for ",
                       in_quotes(token));
  };
  const detail::ByteAlphabet alphabet;
  for (int byte = 0; byte < 256; ++byte) {
    std::string token;
    unicode::append(token, alphabet.character(static_cast<unsigned char>(byte)));
    check_token(token, "all bytes");
  }
  for (const std::string& token : options.special_tokens) check_token(token, "the special tokens");
  if (!options.end_token.empty() &&
      std::ranges::find(options.special_tokens, options.end_token) == options.special_tokens.end())
    fail<ValueError>("write_byte_level_bpe: end_token must be one of special_tokens, got ",
                     in_quotes(options.end_token));
  for (const auto& [left, right] : trained.merges) {
    check_token(left, "what is merged");
    check_token(right, "what is merged");
    check_token(left + right, "what merges make");
  }
}

ordered_json tokenizer(const ByteLevelBpe& trained, const ByteLevelBpeFileOptions& options) {
  const auto byte_level = [](bool add_prefix_space) {
    return ordered_json{{"type", "ByteLevel"},
                        {"add_prefix_space", add_prefix_space},
                        {"trim_offsets", false},
                        {"use_regex", true}};
  };
  ordered_json merges = ordered_json::array();
  for (const auto& [left, right] : trained.merges) merges.push_back(ordered_json::array({left, right}));
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_tokens(trained.vocabulary, options.special_tokens)},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level(options.add_prefix_space)},
          {"post_processor", byte_level(false)},
          {"decoder", byte_level(false)},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", ids_of(trained.vocabulary)},
            {"merges", merges}}}};
}

ordered_json tokenizer_config(const ByteLevelBpeFileOptions& options) {
  ordered_json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                      {"add_prefix_space", options.add_prefix_space},
                      {"model_max_length", options.max_length}};
  if (!options.end_token.empty()) config["bos_token"] = config["eos_token"] = options.end_token;
  return config;
}

using NamedTexts = std::initializer_list<std::pair<const char*, std::string>>;

/// Writes the files of a tokenizer into a folder that has no others of one.
void write_texts(const std::string& folder, const NamedTexts& files) {
  std::vector<std::string> others = detail::tokenizer_files();
  std::erase_if(others, [&](const std::string& name) {
    return std::ranges::any_of(files, [&](const auto& file) { return name == file.first; });
  });
  xgrad::detail::refuse_leftovers(folder, others);
  write_folder(folder, [&](const std::string& other) {
    for (const auto& [name, text] : files) write_file(xgrad::detail::join({other, "/", name}), text);
  });
}

}  // namespace

void write_word_piece(const std::string& folder, std::span<const std::string> vocabulary,
                      const WordPieceFileOptions& options) {
  check(vocabulary);
  std::string lines;
  for (const std::string& token : vocabulary) lines += token + '\n';
  write_texts(folder, {{"vocab.txt", lines},
                       {"tokenizer_config.json", tokenizer_config(options).dump(2) + '\n'},
                       {"tokenizer.json", tokenizer(vocabulary, options.lowercase).dump(2) + '\n'}});
}

void write_byte_level_bpe(const std::string& folder, const ByteLevelBpe& trained,
                          const ByteLevelBpeFileOptions& options) {
  check(trained, options);
  write_texts(folder, {{"tokenizer_config.json", tokenizer_config(options).dump(2) + '\n'},
                       {"tokenizer.json", tokenizer(trained, options).dump(2) + '\n'}});
}

}  // namespace xgrad::tokenizers
