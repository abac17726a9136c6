#include "tokenizer.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "../base/detail/folder_files.hpp"
#include "../base/error.hpp"
#include "detail/files/model_folder.hpp"
#include "detail/files/pipeline.hpp"
#include "detail/unicode/unicode.hpp"

namespace xgrad::tokenizers {
namespace {

using detail::Passage;
using detail::Piece;
using detail::Pieces;
using detail::Pipeline;
using detail::Role;
using detail::TemplatePart;
using xgrad::detail::fail;

constexpr std::size_t most_bytes = std::numeric_limits<std::uint32_t>::max();

bool is_blank(char32_t character) {
  static const char32_t shown_blank = detail::ByteAlphabet().character(' ');
  return character == shown_blank || detail::unicode::is(character, detail::unicode::space);
}

/// The number of blanks that the text begins and ends with.
std::pair<std::uint32_t, std::uint32_t> blanks_of(std::string_view text) {
  std::uint32_t before = 0, after = 0;
  for (std::string_view rest = text; !rest.empty() && is_blank(detail::unicode::first_of(rest)); ++before)
    rest.remove_prefix(detail::unicode::first_length(rest));
  for (std::string_view rest = text; !rest.empty() && is_blank(detail::unicode::last_of(rest)); ++after)
    rest = rest.substr(0, detail::unicode::last_start(rest));
  return {before, after};
}

/// Leaves the blanks of a token out of its offsets:
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/pre_tokenizers/byte_level.rs
void trim(Piece& piece, std::string_view text, bool is_first, const detail::TrimOffsets& options) {
  auto [before, after] = blanks_of(text);
  const bool not_in_text = (is_first || piece.begin == 0) && options.add_prefix_space && before == 1;
  if (!not_in_text) piece.begin = std::min(piece.begin + before, piece.end);
  if (piece.end >= after) piece.end = std::max(piece.end - after, piece.begin);
}

/// Finds the tokens of texts.
class Reader {
 public:
  explicit Reader(const Pipeline& pipeline) : pipeline_(pipeline) {}

  /// The pieces are emptied first; their limit stays.
  void read(std::string_view text, Pieces& pieces) {
    pieces.list.clear();
    pieces.words = 0;
    std::size_t counted = 0;  // bytes of which the characters are counted
    std::uint32_t characters = 0;
    const auto character_at = [&](std::size_t byte) {
      if (byte < counted) counted = characters = 0;
      characters += static_cast<std::uint32_t>(detail::unicode::count(text.substr(counted, byte - counted)));
      counted = byte;
      return characters;
    };
    pipeline_.added.split(
        text,
        [&](std::size_t begin, std::size_t end) {
          return read_part(text.substr(begin, end - begin), character_at(begin), pieces);
        },
        [&](std::uint32_t token, std::size_t begin, std::size_t end) {
          const std::uint32_t first = character_at(begin);
          add(token, text.substr(begin, end - begin), first, character_at(end), pieces);
        });
    if (!pipeline_.trim_offsets) return;
    bool is_first = true;
    for (Piece& piece : pieces.list) {
      if (!piece.added) trim(piece, pipeline_.tokens[piece.token].text, is_first, *pipeline_.trim_offsets);
      is_first = false;
    }
  }

 private:
  /// A part of the text in which no added token was found yet.
  bool read_part(std::string_view text, std::uint32_t first, Pieces& pieces) {
    const Passage passage = pipeline_.normalizer ? (*pipeline_.normalizer)(text, first, buffer_)
                                                 : detail::unchanged(text, first, buffer_);
    if (pipeline_.added_normalized.empty()) return passage.text.empty() || run_model(passage, pieces);
    return pipeline_.added_normalized.split(
        passage.text,
        [&](std::size_t begin, std::size_t end) { return run_model(passage.part(begin, end), pieces); },
        [&](std::uint32_t token, std::size_t begin, std::size_t end) {
          add(token, passage.text.substr(begin, end - begin), passage.source(begin),
              passage.source(end - 1) + 1, pieces);
        });
  }

  bool run_model(const Passage& passage, Pieces& pieces) const {
    return std::visit([&](const auto& model) { return model(passage, pieces); }, pipeline_.model);
  }

  /// An added token, which was found as that text.
  void add(std::uint32_t token, std::string_view text, std::uint32_t begin, std::uint32_t end,
           Pieces& pieces) const {
    Piece piece{token, begin, end, pieces.words++, true};
    if (pipeline_.trim_offsets) trim(piece, text, pieces.list.empty(), *pipeline_.trim_offsets);
    pieces.list.push_back(piece);
  }

  const Pipeline& pipeline_;
  detail::TextBuffer buffer_;
};

/// What stands for a text in an error: "the text", "texts[3]".
std::string name_of(const char* name, std::optional<std::size_t> index) {
  return index ? std::string(name) + "[" + std::to_string(*index) + "]" : "the " + std::string(name);
}

void check_text(std::string_view text, const char* name, std::optional<std::size_t> index) {
  if (text.size() > most_bytes)
    fail<ValueError>("Tokenizer: ", name_of(name, index), " must have at most ", most_bytes, " bytes, got ",
                     text.size());
  if (const std::size_t place = detail::unicode::find_invalid_utf8(text); place != text.npos)
    fail<ValueError>("Tokenizer: ", name_of(name, index), " must be UTF-8, got an invalid byte at ", place);
}

/// How many tokens of each text stay when there is room for so many:
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/utils/truncation.rs
std::pair<std::size_t, std::size_t> lengths_within(std::size_t room, std::size_t first, std::size_t second,
                                                   bool is_pair, const EncodeOptions& options) {
  if (room == 0) return {0, 0};
  const std::size_t most = *options.max_length;
  if (options.truncation == Truncation::none)
    fail<ValueError>("Tokenizer: without truncation there must be at most ", most, " tokens, got ",
                     first + second + most - room);
  if (options.truncation == Truncation::longest_first) {
    if (!is_pair) return {room, 0};
    std::size_t shorter = std::min(first, second), longer = room - std::min(shorter, room);
    if (shorter > longer) {
      shorter = room / 2;
      longer = room - shorter;
    }
    return first > second ? std::pair(longer, shorter) : std::pair(shorter, longer);
  }
  if (options.truncation == Truncation::only_second && !is_pair)
    fail<ValueError>("Tokenizer: truncation only_second needs a second text, got one text of ", first,
                     " tokens for a max_length of ", most);
  const bool cut_first = options.truncation == Truncation::only_first;
  const std::size_t cut = cut_first ? first : second, kept = cut_first ? second : first;
  if (kept >= room)
    fail<ValueError>("Tokenizer: truncation ", cut_first ? "only_first" : "only_second",
                     " must leave a token of its text within max_length ", most, ", got ", kept,
                     " tokens of the other text", most == room ? "" : " beside the special ones");
  return cut_first ? std::pair(std::min(cut, room - kept), kept)
                   : std::pair(kept, std::min(cut, room - kept));
}

/// Encodes one text, or one pair, after another.
class TextEncoder {
 public:
  TextEncoder(const Pipeline& pipeline, const EncodeOptions& options, bool is_pair)
      : pipeline_(pipeline),
        options_(options),
        is_pair_(is_pair),
        template_(is_pair ? pipeline.pair : pipeline.single),
        reader_(pipeline) {
    if (options.add_special_tokens)
      special_ = static_cast<std::size_t>(
          std::ranges::count(template_, TemplatePart::Kind::special, &TemplatePart::kind));
    if (!options.max_length) return;
    if (*options.max_length < special_)
      fail<ValueError>("Tokenizer: max_length must be at least ", special_, " for ",
                       is_pair ? "a pair" : "a text", " with special tokens, got ", *options.max_length);
    // Which of two texts is the longer one shows only when both are read to their ends.
    if (!is_pair && options.truncation != Truncation::none && options.truncation != Truncation::only_second)
      first_.limit = *options.max_length;
  }

  /// The texts must have been checked. Without a pair, the second is not read.
  Encoding operator()(std::string_view text, std::string_view second) {
    reader_.read(text, first_);
    if (is_pair_) reader_.read(second, second_);
    std::size_t first_length = first_.list.size(), second_length = second_.list.size();
    if (options_.max_length) {
      const std::size_t room = *options_.max_length - special_;
      if (first_length + second_length > room)
        std::tie(first_length, second_length) =
            lengths_within(room, first_length, second_length, is_pair_, options_);
    }
    reserve(first_length + second_length + special_);
    for (const TemplatePart& part : template_) {
      if (part.kind == TemplatePart::Kind::special) {
        if (options_.add_special_tokens) add_special(part);
      } else {
        const bool is_first = part.kind == TemplatePart::Kind::first;
        add_text(is_first ? first_ : second_, is_first ? first_length : second_length, part.type_id,
                 is_first ? 0 : 1);
      }
    }
    return std::move(encoding_);
  }

 private:
  void reserve(std::size_t size) {
    encoding_ = {};
    encoding_.ids.reserve(size);
    encoding_.type_ids.reserve(size);
    encoding_.special.reserve(size);
    encoding_.attention_mask.reserve(size);
    encoding_.offsets.reserve(size);
    encoding_.words.reserve(size);
    encoding_.sequences.reserve(size);
  }

  void add_special(const TemplatePart& part) {
    encoding_.ids.push_back(pipeline_.tokens[part.token].id);
    encoding_.type_ids.push_back(part.type_id);
    encoding_.special.push_back(1);
    encoding_.attention_mask.push_back(1);
    encoding_.offsets.emplace_back(0, 0);
    encoding_.words.emplace_back();
    encoding_.sequences.emplace_back();
  }

  void add_text(const Pieces& pieces, std::size_t length, std::int64_t type_id, std::size_t sequence) {
    for (std::size_t i = 0; i < length; ++i) {
      const Piece& piece = pieces.list[i];
      encoding_.ids.push_back(pipeline_.tokens[piece.token].id);
      encoding_.offsets.emplace_back(piece.begin, piece.end);
      encoding_.words.emplace_back(piece.word);
    }
    const std::size_t size = encoding_.ids.size();
    encoding_.type_ids.resize(size, type_id);
    encoding_.special.resize(size, 0);
    encoding_.attention_mask.resize(size, 1);
    encoding_.sequences.resize(size, sequence);
  }

  const Pipeline& pipeline_;
  const EncodeOptions& options_;
  const bool is_pair_;
  const detail::Template& template_;
  std::size_t special_ = 0;
  Reader reader_;
  Pieces first_, second_;
  Encoding encoding_;
};

/// As the library's decoder does to each token:
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/decoders/wordpiece.rs
void clean_up(std::string& token) {
  constexpr std::pair<std::string_view, std::string_view> replacements[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : replacements) {
    for (std::size_t i = 0; (i = token.find(from, i)) != token.npos; i += to.size())
      token.replace(i, from.size(), to);
  }
}

std::string decoded(const std::vector<std::string_view>& tokens, const detail::WordPieceDecoder& decoder) {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    std::string piece;
    if (i == 0) {
      piece = token;
    } else if (token.starts_with(decoder.prefix)) {
      piece = token.substr(decoder.prefix.size());
    } else {
      piece = ' ' + std::string(token);
    }
    if (decoder.cleanup) clean_up(piece);
    text += piece;
  }
  return text;
}

std::string decoded(const std::vector<std::string_view>& tokens, const detail::ByteLevelDecoder&) {
  const detail::ByteAlphabet alphabet;
  std::string bytes;
  for (const std::string_view token : tokens) alphabet.decode(token, bytes);
  return detail::unicode::to_valid(bytes);
}

std::string decoded(const std::vector<std::string_view>& tokens, const detail::MetaspaceDecoder& decoder) {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string_view rest = tokens[i];
    for (std::size_t blank; (blank = rest.find(decoder.blank)) != rest.npos;) {
      text += rest.substr(0, blank);
      if (i > 0 || !decoder.drops_first) text += ' ';
      rest.remove_prefix(blank + decoder.blank.size());
    }
    text += rest;
  }
  return text;
}

std::string decoded(const std::vector<std::string_view>& tokens, std::monostate) {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += ' ';
    text += tokens[i];
  }
  return text;
}

}  // namespace

struct Tokenizer::Impl {
  Pipeline pipeline;
  xgrad::detail::CopiedFiles files;

  std::int64_t id_of(Role role) const {
    const auto i = static_cast<std::size_t>(role);
    if (!pipeline.roles[i])
      fail<ValueError>("Tokenizer: the vocabulary must have a ", detail::role_names[i], " token, got none");
    return pipeline.tokens[*pipeline.roles[i]].id;
  }
};

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Tokenizer Tokenizer::from_folder(const std::string& folder, const TokenizerOptions& options) {
  static const std::vector<std::string> names{
      "tokenizer.json", "tokenizer_config.json",   "vocab.txt",        "vocab.json",
      "merges.txt",     "special_tokens_map.json", "added_tokens.json"};
  detail::check_folder(folder);
  Pipeline pipeline = detail::read_pipeline(folder, options.lowercase);
  return Tokenizer(std::make_shared<const Impl>(Impl{std::move(pipeline), {folder, names}}));
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  check_text(text, "text", {});
  return TextEncoder(impl_->pipeline, options, false)(text, {});
}

Encoding Tokenizer::encode(std::string_view text, std::string_view second,
                           const EncodeOptions& options) const {
  check_text(text, "text", {});
  check_text(second, "second text", {});
  return TextEncoder(impl_->pipeline, options, true)(text, second);
}

std::vector<Encoding> Tokenizer::encode(std::span<const std::string> texts,
                                        const EncodeOptions& options) const {
  TextEncoder encoder(impl_->pipeline, options, false);
  std::vector<Encoding> encodings;
  encodings.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    check_text(texts[i], "texts", i);
    encodings.push_back(encoder(texts[i], {}));
  }
  return encodings;
}

std::vector<Encoding> Tokenizer::encode(std::span<const std::string> texts,
                                        std::span<const std::string> seconds,
                                        const EncodeOptions& options) const {
  if (texts.size() != seconds.size())
    fail<ValueError>("Tokenizer: there must be as many second texts as texts, got ", seconds.size(), " for ",
                     texts.size());
  TextEncoder encoder(impl_->pipeline, options, true);
  std::vector<Encoding> encodings;
  encodings.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    check_text(texts[i], "texts", i);
    check_text(seconds[i], "seconds", i);
    encodings.push_back(encoder(texts[i], seconds[i]));
  }
  return encodings;
}

std::vector<Encoding> Tokenizer::encode(std::initializer_list<std::string> texts,
                                        const EncodeOptions& options) const {
  return encode(std::span(texts), options);
}

std::vector<Encoding> Tokenizer::encode(std::initializer_list<std::string> texts,
                                        std::initializer_list<std::string> seconds,
                                        const EncodeOptions& options) const {
  return encode(std::span(texts), std::span(seconds), options);
}

std::vector<Encoding> Tokenizer::pad(std::vector<Encoding> encodings) const {
  std::size_t length = 0;
  for (const Encoding& encoding : encodings) length = std::max(length, encoding.size());
  for (Encoding& encoding : encodings) {
    if (encoding.size() == length) continue;
    encoding.ids.resize(length, pad_id());
    encoding.type_ids.resize(length, 0);
    encoding.special.resize(length, 1);
    encoding.attention_mask.resize(length, 0);
    encoding.offsets.resize(length);
    encoding.words.resize(length);
    encoding.sequences.resize(length);
  }
  return encodings;
}

std::string Tokenizer::decode(std::span<const std::int64_t> ids, bool skip_special_tokens) const {
  std::vector<std::string_view> tokens;
  for (const std::int64_t id : ids) {
    const auto index = impl_->pipeline.tokens.index(id);
    if (!index || (skip_special_tokens && impl_->pipeline.tokens[*index].special)) continue;
    tokens.emplace_back(impl_->pipeline.tokens[*index].text);
  }
  return std::visit([&](const auto& decoder) { return decoded(tokens, decoder); }, impl_->pipeline.decoder);
}

std::optional<std::int64_t> Tokenizer::token_to_id(std::string_view token) const {
  return impl_->pipeline.tokens.id(token);
}

bool Tokenizer::contains(std::int64_t id) const { return impl_->pipeline.tokens.index(id).has_value(); }

std::string Tokenizer::token(std::int64_t id) const {
  const auto index = impl_->pipeline.tokens.index(id);
  if (!index) fail<IndexError>("Tokenizer: the id must be that of a token, got ", id);
  return impl_->pipeline.tokens[*index].text;
}

std::size_t Tokenizer::size() const { return impl_->pipeline.tokens.size(); }

std::int64_t Tokenizer::cls_id() const { return impl_->id_of(Role::cls); }
std::int64_t Tokenizer::sep_id() const { return impl_->id_of(Role::sep); }
std::int64_t Tokenizer::pad_id() const { return impl_->id_of(Role::pad); }
std::int64_t Tokenizer::unk_id() const { return impl_->id_of(Role::unk); }
std::int64_t Tokenizer::mask_id() const { return impl_->id_of(Role::mask); }

void Tokenizer::save(const std::string& folder) const { impl_->files.write(folder); }

std::optional<std::size_t> Tokenizer::max_length() const { return impl_->pipeline.max_length; }

}  // namespace xgrad::tokenizers
