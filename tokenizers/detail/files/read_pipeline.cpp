#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include "../../../base/detail/json_text.hpp"
#include "../../../base/error.hpp"
#include "../../../base/file.hpp"
#include "../unicode/unicode.hpp"
#include "json.hpp"
#include "pipeline.hpp"

namespace xgrad::tokenizers::detail {
namespace {

using xgrad::detail::fail;
using xgrad::detail::in_quotes;

/// A token as a file declares it.
struct Declared {
  std::optional<Json> place;  // nothing for a token that no file names
  std::string text;
  std::optional<std::int64_t> id = {};
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = true;
};

using Merges = std::vector<std::pair<std::string, std::string>>;

std::string in_folder(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

bool flag(const Json& object, const char* name, bool otherwise) {
  const std::optional<Json> value = object.find(name);
  return value ? value->boolean() : otherwise;
}

/// Collects the model's tokens within the limits.
class TokenCollector {
 public:
  explicit TokenCollector(std::string path) : path_(std::move(path)) {}

  /// A text that comes again takes the last id.
  void add(std::string_view text, std::int64_t id) {
    if (text.size() > longest_token)
      fail<FileError>(path_, ": a token must have at most ", longest_token, " bytes, got ", text.size(),
                      " for the id ", id);
    bytes_ += text.size();
    if (bytes_ > most_token_bytes || ids_.size() >= most_tokens)
      fail<FileError>(path_, ": must have at most ", most_tokens, " tokens of ", most_token_bytes,
                      " bytes in all");
    ids_.insert_or_assign(std::string(text), id);
  }

  TokenIds take() {
    if (ids_.empty()) fail<FileError>(path_, ": must have tokens, got none");
    return std::move(ids_);
  }

 private:
  std::string path_;
  TokenIds ids_;
  std::size_t bytes_ = 0;
};

/// Calls on_line for each line, without its end ("\n" or "\r\n") and with its number from 0.
template <class OnLine>
void read_lines(const std::string& path, OnLine&& on_line) {
  const MappedFile file(path);
  std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (const std::size_t place = unicode::find_invalid_utf8(text); place != text.npos)
    fail<FileError>(path, ": must be UTF-8, got an invalid byte at ", place);
  for (std::int64_t number = 0; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (end < text.size() && line.ends_with('\r')) line.remove_suffix(1);
    on_line(line, number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

TokenIds read_vocab_txt(const std::string& path) {
  TokenCollector collector(path);
  read_lines(path, [&](std::string_view line, std::int64_t number) {
    collector.add(unicode::without_spaces_at_the_end(line), number);
  });
  return collector.take();
}

/// The tokens of [["<s>", 0], ["▁the", -3.5], ...], whose ids are their places, and their scores.
TokenIds read_scored_vocab(const std::string& path, const Json& vocab, std::vector<double>& scores) {
  TokenCollector collector(path);
  for (const Json& item : vocab.items()) {
    const std::vector<Json> pair = item.items();
    if (pair.size() != 2) item.refuse("a token and its score");
    collector.add(pair[0].text(), static_cast<std::int64_t>(scores.size()));
    scores.push_back(pair[1].number(-1e300, 1e300));
  }
  return collector.take();
}

TokenIds read_vocab(const std::string& path, const Json& vocab) {
  TokenCollector collector(path);
  for (const auto& [text, id] : vocab.members()) collector.add(text, id.integer(0, largest_id));
  return collector.take();
}

/// "a b"
std::optional<std::pair<std::string, std::string>> merge_of(std::string_view line) {
  const std::size_t blank = line.find(' ');
  if (blank == line.npos || line.find(' ', blank + 1) != line.npos) return std::nullopt;
  return std::pair(std::string(line.substr(0, blank)), std::string(line.substr(blank + 1)));
}

constexpr std::string_view merges_header = "#version";

Merges read_merges_txt(const std::string& path) {
  Merges merges;
  read_lines(path, [&](std::string_view line, std::int64_t number) {
    if (line.starts_with(merges_header)) return;
    auto merge = merge_of(line);
    if (!merge)
      fail<FileError>(path, ": line ", number + 1, " must be two tokens separated by a blank, got ",
                      in_quotes(line.substr(0, longest_token)));
    if (merges.size() >= most_tokens) fail<FileError>(path, ": must have at most ", most_tokens, " merges");
    merges.push_back(std::move(*merge));
  });
  return merges;
}

Merges read_merges(const Json& list) {
  Merges merges;
  for (const Json& item : list.items()) {
    if (merges.size() >= most_tokens) list.refuse("at most " + std::to_string(most_tokens) + " merges");
    if (item.is_array()) {
      const std::vector<Json> parts = item.items();
      if (parts.size() != 2) item.refuse("two tokens");
      merges.emplace_back(parts[0].text(), parts[1].text());
    } else if (!item.text().starts_with(merges_header)) {
      auto merge = merge_of(item.text());
      if (!merge) item.refuse("two tokens separated by a blank");
      merges.push_back(std::move(*merge));
    }
  }
  return merges;
}

/// The type of a part of tokenizer.json.
const std::string& type_of(const Json& part) { return part.at("type").text(); }

/// A step of a normalizer that is not BERT's.
TextSteps::Step read_step(const Json& part) {
  const std::string& type = type_of(part);
  if (type == "Precompiled") {
    const Json map = part.at("precompiled_charsmap");
    return Charsmap(decoded_base64(map), map.place());
  }
  if (type == "Strip") return Strip{part.at("strip_left").boolean(), part.at("strip_right").boolean()};
  if (type == "StripAccents") return StripAccents{};
  if (type == "Lowercase") return Lowercase{};
  if (type == "NFD" || type == "NFC" || type == "NFKD" || type == "NFKC")
    return NormalForm{.compatibility = type[2] == 'K', .composes = type.back() == 'C'};
  if (type != "Replace")
    part.at("type").refuse(
        "NFC, NFD, NFKC, NFKD, Lowercase, Precompiled, Replace, Strip or StripAccents, or BertNormalizer "
        "alone");
  const Json pattern = part.at("pattern");
  const auto text = pattern.find("String");
  if (!text && pattern.at("Regex").text() != " {2,}")
    pattern.at("Regex").refuse("\" {2,}\", as other patterns are not supported");
  if (text && text->text().empty()) text->refuse("a text that is not empty");
  return Replace(text ? text->text() : "", part.at("content").text());
}

std::uint32_t known(const TokenTable& tokens, const Json& id) {
  const auto token = tokens.index(id.integer(0, largest_id));
  if (!token) id.refuse("the id of a token");
  return *token;
}

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

/// The only member of {"Sequence": {...}} or {"SpecialToken": {...}}.
std::pair<std::string, Json> only_member(const Json& part) {
  const auto members = part.members();
  if (members.size() != 1 || (members[0].first != "Sequence" && members[0].first != "SpecialToken"))
    part.fail("must have one member, Sequence or SpecialToken");
  return members[0];
}

Template read_template(const TokenTable& tokens, const Json& list, const Json& specials, bool is_pair) {
  constexpr std::size_t most_parts = 1000;
  Template result;
  bool first = false, second = false;
  for (const Json& part : list.items()) {
    const auto [kind, value] = only_member(part);
    const std::int64_t type_id = value.at("type_id").integer(0, largest_id);
    const std::string& id = value.at("id").text();
    if (kind == "Sequence") {
      if (id != "A" && id != "B") value.at("id").refuse("A or B");
      bool& seen = id == "A" ? first : second;
      if (seen) list.fail("must have the sequence " + id + " once");
      seen = true;
      result.push_back(
          PostProcessor::text(id == "A" ? TemplatePart::Kind::first : TemplatePart::Kind::second, type_id));
    } else {
      for (const Json& token : specials.at(id).at("ids").items())
        result.push_back(PostProcessor::special(known(tokens, token), type_id));
    }
    if (result.size() > most_parts) list.fail("must have at most " + std::to_string(most_parts) + " tokens");
  }
  if (!first || second != is_pair)
    list.fail(is_pair ? "must have the sequences A and B" : "must have the sequence A and no other");
  return result;
}

/// The id of ["[SEP]", 102].
std::uint32_t read_token_and_id(const TokenTable& tokens, const Json& pair) {
  const std::vector<Json> parts = pair.items();
  if (parts.size() != 2) pair.refuse("a token and its id");
  return known(tokens, parts[1]);
}

std::optional<TrimOffsets> read_trim_offsets(const Json& part) {
  const bool trim = part.at("trim_offsets").boolean(), prefix = part.at("add_prefix_space").boolean();
  return trim ? std::optional(TrimOffsets{prefix}) : std::nullopt;
}

PostProcessor read_post_processor(const TokenTable& tokens, const std::optional<Json>& part) {
  PostProcessor result;
  if (!part) return result;
  const std::string& type = type_of(*part);
  if (type == "TemplateProcessing") {
    const Json specials = part->at("special_tokens");
    result.single = read_template(tokens, part->at("single"), specials, false);
    result.pair = read_template(tokens, part->at("pair"), specials, true);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const std::uint32_t cls = read_token_and_id(tokens, part->at("cls"));
    const std::uint32_t sep = read_token_and_id(tokens, part->at("sep"));
    if (type == "BertProcessing") return PostProcessor::bert(cls, sep);
    result = PostProcessor::roberta(cls, sep);
    result.trim_offsets = read_trim_offsets(*part);
  } else if (type == "ByteLevel") {
    result.trim_offsets = read_trim_offsets(*part);
  } else {
    part->at("type").refuse(
        "TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel, or no post_processor");
  }
  return result;
}

/// In its old and its new spelling.
Metaspace read_metaspace(const Json& part) {
  if (type_of(part) != "Metaspace") part.at("type").refuse("Metaspace for a Unigram model");
  Metaspace result{.prepend = flag(part, "add_prefix_space", true) ? Metaspace::Prepend::always
                                                                   : Metaspace::Prepend::never,
                   .blank = part.at("replacement").text(),
                   .split = flag(part, "split", true)};
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
                                   .use_regex = flag(pre_tokenizer, "use_regex", true)};
  return {tokens, read_merges(model.at("merges")), options, path + ": model"};
}

Unigram read_unigram(const TokenTable& tokens, const Json& model, const std::vector<double>& scores,
                     const Json& pre_tokenizer) {
  std::vector<double> of_tokens(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].in_model) of_tokens[i] = scores[static_cast<std::size_t>(tokens[i].id)];
  if (model.is_null("unk_id")) model.fail("unk_id must be the id of a token, got null");
  const Json id = model.at("unk_id");
  const std::uint32_t unknown = known(tokens, id);
  if (!tokens[unknown].in_model) id.refuse("the id of a token of model.vocab");
  constexpr double penalty = 10;  // of an unknown character, below the rarest token
  return {tokens,
          std::move(of_tokens),
          unknown,
          std::ranges::min(scores) - penalty,
          flag(model, "byte_fallback", false),
          read_metaspaces(pre_tokenizer)};
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

/// A token that is declared by an object with its content and how it is found.
Declared declared(const Json& object, bool special_otherwise) {
  return {.place = object,
          .text = object.at("content").text(),
          .id = {},
          .single_word = flag(object, "single_word", false),
          .lstrip = flag(object, "lstrip", false),
          .rstrip = flag(object, "rstrip", false),
          .normalized = flag(object, "normalized", false),
          .special = flag(object, "special", special_otherwise)};
}

/// The added_tokens of tokenizer.json.
std::vector<Declared> read_added_tokens(const std::optional<Json>& list) {
  std::vector<Declared> result;
  if (!list) return result;
  for (const Json& item : list->items()) {
    result.push_back(declared(item, false));
    result.back().id = item.at("id").integer(0, largest_id);
  }
  return result;
}

/// The added tokens that the model does not have, with the next ids. They must have these in the file, too.
TokenIds new_tokens(const TokenIds& model, std::vector<Declared>& tokens) {
  std::erase_if(tokens, [](const Declared& token) { return token.text.empty(); });
  TokenIds added;
  std::unordered_set<std::string_view> seen;
  for (const Declared& token : tokens) {
    if (!seen.insert(token.text).second)
      token.place->fail("a token must be declared once, got " + in_quotes(token.text) + " twice");
    if (token.text.size() > longest_token || seen.size() > most_tokens)
      token.place->fail("there must be at most " + std::to_string(most_tokens) + " tokens of " +
                        std::to_string(longest_token) + " bytes");
    const auto found = model.find(token.text);
    const std::int64_t id =
        found != model.end() ? found->second : static_cast<std::int64_t>(model.size() + added.size());
    if (token.id.value_or(id) != id)
      token.place->fail(
          "the id of " + in_quotes(token.text) + " must be " + std::to_string(id) +
          (found != model.end() ? ", as in the vocabulary" : ", the first after the vocabulary") + ", got " +
          std::to_string(*token.id));
    if (found != model.end()) continue;
    if (!token.id) token.place->fail("must be a token of the vocabulary, got " + in_quotes(token.text));
    added.emplace(token.text, id);
  }
  return added;
}

/// The text of a token as a normalizer makes it.
std::string normalized_text(const Declared& token, const std::optional<Normalizer>& normalizer) {
  if (!normalizer) return token.text;
  try {
    return (*normalizer)(token.text);
  } catch (const ValueError& error) {
    if (token.place) token.place->fail(error.what());
    throw;
  }
}

/// The tokens to find in the text, or those to find in the normalised one, which are normalised themselves.
AddedTokens matcher(TokenTable& tokens, const std::vector<Declared>& all, bool normalized,
                    const std::optional<Normalizer>& normalizer) {
  std::vector<AddedToken> result;
  std::unordered_set<std::string> seen;
  for (const Declared& token : all) {
    const std::uint32_t index = *tokens.index(token.text);
    if (token.special) tokens[index].special = true;
    if (token.normalized != normalized) continue;
    const std::string text = normalized ? normalized_text(token, normalizer) : token.text;
    if (text.empty())
      token.place->fail("a token must not be empty after normalisation, got " + in_quotes(token.text));
    if (!seen.insert(text).second)
      token.place->fail("normalised tokens must differ, got " + in_quotes(text) + " twice");
    result.push_back({text, index, token.single_word, token.lstrip, token.rstrip});
  }
  return AddedTokens(std::move(result));
}

/// As in the library, a token that is normalised has its normalised text, and is special if a special token
/// has that text.
void rename_normalized(TokenTable& tokens, const std::vector<Declared>& all,
                       const std::optional<Normalizer>& normalizer) {
  if (!normalizer) return;
  std::unordered_set<std::string_view> specials;
  for (const Declared& token : all) {
    if (token.special) specials.insert(token.text);
  }
  for (const Declared& token : all) {
    if (!token.normalized) continue;
    TokenTable::Token& entry = tokens[*tokens.index(token.text)];
    entry.text = normalized_text(token, normalizer);
    entry.special = specials.contains(entry.text);
  }
}

/// tokenizer_config.json, if it is there.
class TokenizerConfig {
 public:
  TokenizerConfig(const std::string& folder, bool lowers) : lowers_(lowers) {
    const std::string path = in_folder(folder, "tokenizer_config.json");
    if (is_file(path)) file_ = Json::read(path);
  }

  /// The normalizer, of texts in lower case where that was asked for.
  std::optional<Normalizer> adapted(std::optional<Normalizer> normalizer) const {
    if (!lowers_) return normalizer;
    return normalizer ? normalizer->lowercased() : TextSteps({Lowercase{}});
  }

  std::optional<Json> find(const std::string& name) const { return file_ ? file_->find(name) : std::nullopt; }

  bool flag(const char* name, bool otherwise) const {
    return file_ ? detail::flag(*file_, name, otherwise) : otherwise;
  }

  /// None for the huge number that stands for it.
  std::optional<std::size_t> max_length() const {
    constexpr double none_from = 1e9;
    const auto value = find("model_max_length");
    if (!value) return std::nullopt;
    const double length = value->number(1, 1e300);  // Python also writes 512.0
    if (length >= none_from) return std::nullopt;
    if (length != std::floor(length)) value->refuse("a whole number");
    return static_cast<std::size_t>(length);
  }

  std::optional<Declared> token(Role role) const {
    const auto value = find(std::string(role_names[static_cast<std::size_t>(role)]) + "_token");
    if (!value) return std::nullopt;
    if (value->is_object()) return declared(*value, true);
    return Declared{.place = *value, .text = value->text()};
  }

  /// Throws FileError for a class whose rules are not those of the files without tokenizer.json.
  void check_class(const std::vector<std::string_view>& known) const {
    const auto value = find("tokenizer_class");
    if (!value) return;
    std::string_view name = value->text();
    if (name.ends_with("Fast")) name.remove_suffix(4);
    if (std::ranges::find(known, name) != known.end()) return;
    std::string names;
    for (const std::string_view one : known) names += (names.empty() ? "" : ", ") + std::string(one);
    value->refuse("one of " + names + " without a tokenizer.json");
  }

  /// Tokens beside those with a role.
  std::vector<Declared> other_tokens() const {
    std::vector<Declared> result;
    if (const auto decoder = find("added_tokens_decoder")) {
      for (const auto& [text, object] : decoder->members()) {
        std::int64_t id = -1;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
        if (error != std::errc() || end != text.data() + text.size() || id < 0 || id > largest_id)
          object.fail("the name must be an id");
        result.push_back(declared(object, false));
        result.back().id = id;
      }
      std::ranges::sort(result, {}, [](const Declared& token) { return *token.id; });
    }
    if (const auto list = find("additional_special_tokens")) {
      for (const Json& item : list->items())
        result.push_back(item.is_object() ? declared(item, true)
                                          : Declared{.place = item, .text = item.text()});
    }
    return result;
  }

 private:
  std::optional<Json> file_;
  bool lowers_;
};

using RoleTexts = std::array<std::string_view, role_names.size()>;
constexpr RoleTexts bert_texts{"[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"};
constexpr RoleTexts roberta_texts{"<s>", "</s>", "<pad>", "<unk>", "<mask>"};

/// The special tokens that the configuration names, or else those with the usual texts.
decltype(Pipeline::roles) read_roles(const TokenizerConfig& config, const TokenTable& tokens,
                                     const RoleTexts& usual) {
  decltype(Pipeline::roles) roles;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const auto token = config.token(static_cast<Role>(i));
    roles[i] = tokens.index(token ? std::string_view(token->text) : usual[i]);
    if (token && !roles[i])
      token->place->fail("must be a token of the vocabulary, got " + in_quotes(token->text));
  }
  return roles;
}

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
  const std::optional<Normalizer> normalizer = config.adapted(read_normalizer(file.find("normalizer")));
  AddedTokens raw = matcher(tokens, added, false, normalizer);
  AddedTokens normalized = matcher(tokens, added, true, normalizer);
  PostProcessor post = read_post_processor(tokens, file.find("post_processor"));
  const bool has_bert_texts = type == "WordPiece" || tokens.index(bert_texts.front());
  auto roles = read_roles(config, tokens, has_bert_texts ? bert_texts : roberta_texts);
  rename_normalized(tokens, added, normalizer);
  return {.tokens = std::move(tokens),
          .added = std::move(raw),
          .added_normalized = std::move(normalized),
          .normalizer = normalizer,
          .model = std::move(reads),
          .single = std::move(post.single),
          .pair = std::move(post.pair),
          .trim_offsets = post.trim_offsets,
          .decoder = read_decoder(file.find("decoder")),
          .roles = roles,
          .max_length = config.max_length()};
}

/// What the files without tokenizer.json declare: the tokens with a role, those of the usual texts if the
/// vocabulary has them, and the others of the configuration.
std::vector<Declared> declared_tokens(const TokenizerConfig& config, const TokenIds& vocab,
                                      const RoleTexts& usual) {
  std::vector<Declared> all = config.other_tokens(), result;
  for (std::size_t i = 0; i < usual.size(); ++i) {
    if (auto token = config.token(static_cast<Role>(i))) {
      all.push_back(std::move(*token));
    } else if (vocab.contains(usual[i])) {
      all.push_back({.place = {}, .text = std::string(usual[i])});
    }
  }
  std::unordered_set<std::string> seen;
  for (Declared& token : all) {
    if (seen.insert(token.text).second) result.push_back(std::move(token));
  }
  return result;
}

/// The index of a special token without which there is no encoding.
std::uint32_t required(const decltype(Pipeline::roles)& roles, Role role, const std::string& path,
                       const RoleTexts& usual) {
  const auto i = static_cast<std::size_t>(role);
  if (!roles[i])
    fail<FileError>(path, ": the vocabulary must have the ", role_names[i], " token, got no ",
                    in_quotes(usual[i]));
  return *roles[i];
}

/// What only added_tokens.json names could be found in several ways.
void check_added_tokens_json(const std::string& folder, const TokenTable& tokens) {
  const std::string path = in_folder(folder, "added_tokens.json");
  if (!is_file(path)) return;
  for (const auto& [text, id] : Json::read(path).members()) {
    if (tokens.id(text) != id.integer(0, largest_id))
      id.fail(
          "must repeat an id of the vocabulary, or come with a tokenizer.json, which defines how to find " +
          in_quotes(text));
  }
}

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
  const std::optional<Normalizer> normalizer = config.adapted(BertNormalizer(options));
  TokenIds vocab = read_vocab_txt(path);
  std::vector<Declared> added = declared_tokens(config, vocab, bert_texts);
  const TokenIds new_ids = new_tokens(vocab, added);
  TokenTable tokens(path, std::move(vocab), new_ids);
  auto roles = read_roles(config, tokens, bert_texts);
  const std::uint32_t cls = required(roles, Role::cls, path, bert_texts);
  const std::uint32_t sep = required(roles, Role::sep, path, bert_texts);
  const std::uint32_t unk = required(roles, Role::unk, path, bert_texts);
  PostProcessor post = PostProcessor::bert(cls, sep);
  WordPiece model(tokens, prefix, unk, most_characters);
  AddedTokens raw = matcher(tokens, added, false, normalizer);
  AddedTokens normalized = matcher(tokens, added, true, normalizer);
  rename_normalized(tokens, added, normalizer);
  return {.tokens = std::move(tokens),
          .added = std::move(raw),
          .added_normalized = std::move(normalized),
          .normalizer = normalizer,
          .model = std::move(model),
          .single = std::move(post.single),
          .pair = std::move(post.pair),
          .trim_offsets = {},
          .decoder = WordPieceDecoder{std::string(prefix), true},
          .roles = roles,
          .max_length = config.max_length()};
}

Pipeline read_merges_folder(const std::string& folder, const TokenizerConfig& config) {
  const std::string path = in_folder(folder, "vocab.json"), merges = in_folder(folder, "merges.txt");
  config.check_class({"RobertaTokenizer"});
  const bool add_prefix_space = config.flag("add_prefix_space", false);
  TokenIds vocab = read_vocab(path, Json::read(path));
  std::vector<Declared> added = declared_tokens(config, vocab, roberta_texts);
  const auto mask = config.token(Role::mask);
  for (Declared& token : added) {
    // Unless it is declared by an object, the mask takes the blank before it.
    if (token.text == (mask ? mask->text : roberta_texts[static_cast<std::size_t>(Role::mask)]) &&
        (!token.place || token.place->is_string()))
      token.lstrip = true;
  }
  const TokenIds new_ids = new_tokens(vocab, added);
  TokenTable tokens(path, std::move(vocab), new_ids);
  auto roles = read_roles(config, tokens, roberta_texts);
  const std::uint32_t cls = required(roles, Role::cls, path, roberta_texts);
  const std::uint32_t sep = required(roles, Role::sep, path, roberta_texts);
  PostProcessor post = PostProcessor::roberta(cls, sep);
  BytePairs model(tokens, read_merges_txt(merges), {.add_prefix_space = add_prefix_space}, merges);
  const std::optional<Normalizer> normalizer = config.adapted(std::nullopt);
  AddedTokens raw = matcher(tokens, added, false, normalizer);
  AddedTokens normalized = matcher(tokens, added, true, normalizer);
  rename_normalized(tokens, added, normalizer);
  return {.tokens = std::move(tokens),
          .added = std::move(raw),
          .added_normalized = std::move(normalized),
          .normalizer = normalizer,
          .model = std::move(model),
          .single = std::move(post.single),
          .pair = std::move(post.pair),
          .trim_offsets = TrimOffsets{add_prefix_space},
          .decoder = ByteLevelDecoder{},
          .roles = roles,
          .max_length = config.max_length()};
}

}  // namespace

std::optional<Normalizer> read_normalizer(const std::optional<Json>& part) {
  if (!part) return std::nullopt;
  const std::string& type = type_of(*part);
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
  options.strip_accents = flag(*part, "strip_accents", options.lowercase);
  return BertNormalizer(options);
}

Pipeline read_pipeline(const std::string& folder, bool lowers) {
  const TokenizerConfig config(folder, lowers);
  const std::string json = in_folder(folder, "tokenizer.json");
  if (is_file(json)) return read_tokenizer_json(json, config);
  const auto checked = [&](Pipeline pipeline) {
    check_added_tokens_json(folder, pipeline.tokens);
    return pipeline;
  };
  if (is_file(in_folder(folder, "vocab.txt"))) return checked(read_vocab_txt_folder(folder, config));
  if (is_file(in_folder(folder, "vocab.json")) && is_file(in_folder(folder, "merges.txt")))
    return checked(read_merges_folder(folder, config));
  fail<FileError>(folder,
                  ": must be a folder with a tokenizer.json, with a vocab.txt, or with a vocab.json and a ",
                  "merges.txt");
}

}  // namespace xgrad::tokenizers::detail
