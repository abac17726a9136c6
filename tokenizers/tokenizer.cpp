#include "tokenizer.hpp"

#include <algorithm>
#include <limits>

#include "../base/detail/system/folder_files.hpp"
#include "../base/detail/tell.hpp"
#include "../base/error.hpp"
#include "detail/decoders.hpp"
#include "detail/files/model_folder.hpp"
#include "detail/files/pipeline.hpp"
#include "detail/large_pages.hpp"
#include "detail/unicode/unicode.hpp"

namespace xgrad::tokenizers {
namespace {

using detail::Passage;
using detail::Piece;
using detail::Pieces;
using detail::Pipeline;
using detail::Role;
using detail::TemplatePart;
using detail::TokenTable;
using xgrad::detail::fail;

constexpr std::size_t most_bytes = std::numeric_limits<std::uint32_t>::max();

bool is_blank(char32_t character) {
  static const char32_t shown_blank = detail::ByteAlphabet().character(' ');
  return character == shown_blank || detail::unicode::is(character, detail::unicode::space);
}

detail::Blanks blanks_of(std::string_view text) {
  std::uint32_t before = 0, after = 0;
  for (std::string_view rest = text; !rest.empty() && is_blank(detail::unicode::first_of(rest)); ++before)
    rest.remove_prefix(detail::unicode::first_length(rest));
  for (std::string_view rest = text; !rest.empty() && is_blank(detail::unicode::last_of(rest)); ++after)
    rest = rest.substr(0, detail::unicode::last_start(rest));
  return {before, after};
}

/// Leaves the blanks of a token out of its offsets; it may be the first one of an encoding:
/// https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/pre_tokenizers/byte_level.rs
void trim(Piece& piece, const detail::Blanks& blanks, bool is_first, const detail::TrimOffsets& options) {
  const auto [before, after] = blanks;
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
    pieces.added_blanks.clear();
    pieces.words = 0;
    // Memory that is never written to costs nothing, and growing would copy.
    constexpr std::size_t most_reserved = std::size_t{1} << 22;
    detail::reserve_large(pieces.list, std::min({text.size(), pieces.limit, most_reserved}));
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
    if (pipeline_.trim_offsets) pieces.added_blanks.push_back(blanks_of(text));
    const auto place = static_cast<std::uint32_t>(pieces.added_blanks.size());
    pieces.list.push_back({token, begin, end, pieces.words++, place});
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

/// Tokens of a text that are in one encoding.
struct Window {
  std::size_t begin, end;
};

/// What stays of so many tokens, and then what does not fit, in windows of the same size that overlap by the
/// stride: https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/tokenizer/encoding.rs
std::vector<Window> windows_of(std::size_t size, std::size_t kept, const EncodeOptions& options, Side side) {
  if (kept >= size) return {{0, size}};
  if (kept == 0) return {{0, 0}, {0, size}};
  if (options.stride >= kept)
    fail<ValueError>("Tokenizer: stride must be below the number of tokens of a text that stay, ", kept,
                     ", got ", options.stride);
  const std::size_t step = kept - options.stride;
  std::vector<Window> windows;
  for (std::size_t moved = 0;; moved += step) {
    const std::size_t most = std::min(moved + kept, size);
    windows.push_back(side == Side::right ? Window{moved, most} : Window{size - most, size - moved});
    if (most == size || !options.return_overflowing_tokens) return windows;
  }
}

/// Encodes one text, or one pair, after another.
class TextEncoder {
 public:
  TextEncoder(const Pipeline& pipeline, const EncodeOptions& options, bool is_pair)
      : pipeline_(pipeline),
        options_(options),
        side_(options.truncation_side.value_or(pipeline.truncation_side)),
        is_pair_(is_pair),
        template_(is_pair ? pipeline.pair : pipeline.single),
        reader_(pipeline) {
    if (options.add_special_tokens)
      special_ = static_cast<std::size_t>(
          std::ranges::count(template_, TemplatePart::Kind::special, &TemplatePart::kind));
    if (!truncates()) return;
    if (*options.max_length < special_)
      fail<ValueError>("Tokenizer: max_length must be at least ", special_, " for ",
                       is_pair ? "a pair" : "a text", " with special tokens, got ", *options.max_length);
    if (options.stride > *options.max_length - special_)
      fail<ValueError>("Tokenizer: stride must be at most max_length without special tokens, ",
                       *options.max_length - special_, ", got ", options.stride);
    // Which of two texts is the longer one shows only when both are read to their ends.
    if (!is_pair && side_ == Side::right && !options.return_overflowing_tokens &&
        options.truncation != Truncation::only_second)
      first_.limit = *options.max_length;
  }

  /// The texts must have been checked. Without a pair, the second is not read.
  Encoding operator()(std::string_view text, std::string_view second) {
    reader_.read(text, first_);
    if (is_pair_) reader_.read(second, second_);
    const std::size_t first_size = first_.list.size(), second_size = second_.list.size();
    std::pair kept(first_size, second_size);
    if (truncates()) {
      const std::size_t room = *options_.max_length - special_;
      if (first_size + second_size > room)
        kept = lengths_within(room, first_size, second_size, is_pair_, options_);
    }
    const std::vector<Window> firsts = windows_of(first_size, kept.first, options_, side_),
                              seconds = windows_of(second_size, kept.second, options_, side_);
    Encoding whole = encoding_of(firsts.front(), seconds.front());
    if (!options_.return_overflowing_tokens) return whole;
    for (std::size_t i = 1; i < firsts.size(); ++i) {
      for (const Window& second_window : seconds)
        whole.overflowing.push_back(encoding_of(firsts[i], second_window));
    }
    for (std::size_t i = 1; i < seconds.size(); ++i)
      whole.overflowing.push_back(encoding_of(firsts.front(), seconds[i]));
    return whole;
  }

 private:
  bool truncates() const { return options_.max_length && options_.truncation != Truncation::do_not_truncate; }

  Encoding encoding_of(const Window& first, const Window& second) const {
    Encoding encoding;
    const std::size_t size = first.end - first.begin + second.end - second.begin + special_;
    detail::reserve_whole(encoding.ids, size);
    detail::reserve_whole(encoding.type_ids, size);
    detail::reserve_whole(encoding.special, size);
    detail::reserve_whole(encoding.attention_mask, size);
    detail::reserve_whole(encoding.offsets, size);
    detail::reserve_whole(encoding.words, size);
    detail::reserve_whole(encoding.sequences, size);
    for (const TemplatePart& part : template_) {
      if (part.kind == TemplatePart::Kind::special) {
        if (options_.add_special_tokens) add_special(part, encoding);
      } else if (part.kind == TemplatePart::Kind::first) {
        add_text(first_, first, part.type_id, 0, encoding);
      } else {
        add_text(second_, second, part.type_id, 1, encoding);
      }
    }
    return encoding;
  }

  void add_special(const TemplatePart& part, Encoding& encoding) const {
    encoding.ids.push_back(pipeline_.tokens[part.token].id);
    encoding.type_ids.push_back(part.type_id);
    encoding.special.push_back(1);
    encoding.attention_mask.push_back(1);
    encoding.offsets.emplace_back(0, 0);
    encoding.words.emplace_back();
    encoding.sequences.emplace_back();
  }

  void add_text(const Pieces& pieces, const Window& window, std::int64_t type_id, std::uint32_t sequence,
                Encoding& encoding) const {
    for (std::size_t i = window.begin; i < window.end; ++i) {
      Piece piece = pieces.list[i];
      const TokenTable::Token& token = pipeline_.tokens[piece.token];
      if (pipeline_.trim_offsets) {
        const bool is_first = i == window.begin;
        trim(piece, piece.added == 0 ? blanks_of(token.text) : pieces.added_blanks[piece.added - 1], is_first,
             *pipeline_.trim_offsets);
      }
      encoding.ids.push_back(token.id);
      encoding.offsets.emplace_back(piece.begin, piece.end);
      encoding.words.emplace_back(piece.word);
    }
    const std::size_t size = encoding.ids.size();
    encoding.type_ids.resize(size, type_id);
    encoding.special.resize(size, 0);
    encoding.attention_mask.resize(size, 1);
    encoding.sequences.resize(size, sequence);
  }

  const Pipeline& pipeline_;
  const EncodeOptions& options_;
  const Side side_;
  const bool is_pair_;
  const detail::Template& template_;
  std::size_t special_ = 0;
  Reader reader_;
  Pieces first_, second_;
};

/// Pads an encoding, and those that overflow from it.
void pad_to(std::size_t length, Side side, std::int64_t id, Encoding& encoding) {
  for (Encoding& part : encoding.overflowing) pad_to(length, side, id, part);
  if (encoding.size() >= length) return;
  const auto pad = [&](auto& values, const auto& value) {
    values.insert(side == Side::right ? values.end() : values.begin(), length - values.size(), value);
  };
  pad(encoding.ids, id);
  pad(encoding.type_ids, std::int64_t{0});
  pad(encoding.special, std::uint8_t{1});
  pad(encoding.attention_mask, std::uint8_t{0});
  pad(encoding.offsets, std::pair<std::uint32_t, std::uint32_t>());
  pad(encoding.words, std::optional<std::uint32_t>());
  pad(encoding.sequences, std::optional<std::uint32_t>());
}

}  // namespace

struct Tokenizer::Impl {
  Pipeline pipeline;
  xgrad::detail::CopiedFiles files;

  std::uint32_t index_of(std::int64_t id) const {
    const auto index = pipeline.tokens.index(id);
    if (!index) fail<IndexError>("Tokenizer: the id must be that of a token, got ", id);
    return *index;
  }

  std::int64_t id_of(Role role) const {
    const auto i = static_cast<std::size_t>(role);
    if (!pipeline.roles[i])
      fail<ValueError>("Tokenizer: the vocabulary must have a ", detail::role_names[i], " token, got none");
    return pipeline.tokens[*pipeline.roles[i]].id;
  }
};

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Tokenizer Tokenizer::from_folder(const std::string& folder, const TokenizerOptions& options) {
  detail::check_folder(folder);
  Pipeline pipeline = detail::read_pipeline(folder, options.lowercase, options.target);
  for (const std::string& note : pipeline.notes) xgrad::detail::tell(options.note, note);
  return Tokenizer(
      std::make_shared<const Impl>(Impl{std::move(pipeline), {folder, detail::tokenizer_files()}}));
}

Tokenizer Tokenizer::from_json(const std::string& text, const std::string& name,
                               const TokenizerOptions& options) {
  return Tokenizer(
      std::make_shared<const Impl>(Impl{detail::read_pipeline_of_json(name, text, options.lowercase),
                                        {{{"tokenizer.json", text}}, detail::tokenizer_files()}}));
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

std::vector<Encoding> Tokenizer::pad(std::vector<Encoding> encodings, const PadOptions& options) const {
  if (options.padding == Padding::do_not_pad) return encodings;
  std::size_t length = 0;
  if (options.padding == Padding::longest) {
    for (const Encoding& encoding : encodings) length = std::max(length, encoding.size());
  } else if (const auto most = options.max_length ? options.max_length : max_length()) {
    length = *most;
  } else {
    throw ValueError("Tokenizer: padding to max_length needs a max_length, as the folder has none");
  }
  if (const std::size_t multiple = options.pad_to_multiple_of.value_or(1); multiple == 0) {
    throw ValueError("Tokenizer: pad_to_multiple_of must be at least 1, got 0");
  } else if (length % multiple != 0) {
    length += multiple - length % multiple;
  }
  const auto is_short = [&](const Encoding& one) { return one.size() < length; };
  const bool pads = std::ranges::any_of(encodings, [&](const Encoding& one) {
    return is_short(one) || std::ranges::any_of(one.overflowing, is_short);
  });
  if (!pads) return encodings;
  const Side side = options.padding_side.value_or(impl_->pipeline.padding_side);
  for (Encoding& encoding : encodings) pad_to(length, side, pad_id(), encoding);
  return encodings;
}

std::optional<std::uint32_t> Tokenizer::decoded_index(std::int64_t id, bool skip_special_tokens) const {
  const auto index = impl_->pipeline.tokens.index(id);
  return index && skip_special_tokens && impl_->pipeline.tokens[*index].special ? std::nullopt : index;
}

std::string Tokenizer::decode(std::span<const std::int64_t> ids, bool skip_special_tokens) const {
  std::vector<std::uint32_t> tokens;
  for (const std::int64_t id : ids)
    if (const auto index = decoded_index(id, skip_special_tokens)) tokens.push_back(*index);
  return detail::decoded(impl_->pipeline, tokens);
}

std::optional<std::int64_t> Tokenizer::token_to_id(std::string_view token) const {
  return impl_->pipeline.tokens.id(token);
}

bool Tokenizer::contains(std::int64_t id) const { return impl_->pipeline.tokens.index(id).has_value(); }

std::string Tokenizer::token(std::int64_t id) const {
  return impl_->pipeline.tokens[impl_->index_of(id)].text;
}

std::string Tokenizer::token_bytes(std::int64_t id) const {
  const std::uint32_t index = impl_->index_of(id);
  std::vector<std::uint32_t> before;  // some text, so that the token is not the first
  for (const std::int64_t one : encode("abcdef", {.add_special_tokens = false}).ids)
    before.push_back(impl_->index_of(one));
  return detail::bytes_behind(impl_->pipeline, std::move(before), index);
}

std::size_t Tokenizer::size() const { return impl_->pipeline.tokens.size(); }

std::int64_t Tokenizer::largest_id() const {
  const std::size_t count = size();
  if (count == 0) throw ValueError("Tokenizer: the vocabulary must have a token, got none");
  return impl_->pipeline.tokens[count - 1].id;
}

std::int64_t Tokenizer::cls_id() const { return impl_->id_of(Role::cls); }
std::int64_t Tokenizer::sep_id() const { return impl_->id_of(Role::sep); }
std::int64_t Tokenizer::pad_id() const { return impl_->id_of(Role::pad); }
std::int64_t Tokenizer::unk_id() const { return impl_->id_of(Role::unk); }
std::int64_t Tokenizer::mask_id() const { return impl_->id_of(Role::mask); }

void Tokenizer::check_save(const std::string& folder) const { impl_->files.check(folder); }

void Tokenizer::save(const std::string& folder) const { impl_->files.write(folder); }

std::optional<std::size_t> Tokenizer::max_length() const { return impl_->pipeline.max_length; }

}  // namespace xgrad::tokenizers
