#include "decoders.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "unicode/unicode.hpp"

namespace xgrad::tokenizers::detail {
namespace {

using Texts = std::vector<std::string>;

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

/// The byte of a token such as "<0x0A>".
char byte_of(std::string_view token) {
  return static_cast<char>(std::stoi(std::string(token.substr(3, 2)), nullptr, 16));
}

bool is_byte(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with('>') &&
         token.find_first_not_of("0123456789ABCDEFabcdef", 3) == 5;
}

void decode(Texts& tokens, const WordPieceDecoder& decoder) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    if (i > 0 && token.starts_with(decoder.prefix)) {
      token.erase(0, decoder.prefix.size());
    } else if (i > 0) {
      token.insert(0, 1, ' ');
    }
    if (decoder.cleanup) clean_up(token);
  }
}

const ByteAlphabet& alphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

void decode(Texts& tokens, const ByteLevelDecoder&) {
  std::string bytes;
  for (const std::string& token : tokens) alphabet().decode(token, bytes);
  tokens.assign(1, unicode::to_valid(bytes));
}

void decode(Texts& tokens, const MetaspaceDecoder& decoder) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string text;
    std::string_view rest = tokens[i];
    for (std::size_t blank; (blank = rest.find(decoder.blank)) != rest.npos;) {
      text += rest.substr(0, blank);
      if (i > 0 || !decoder.drops_first) text += ' ';
      rest.remove_prefix(blank + decoder.blank.size());
    }
    text += rest;
    tokens[i] = std::move(text);
  }
}

void decode(Texts& tokens, const ByteFallbackDecoder&) {
  Texts result;
  std::string bytes;
  const auto put_bytes = [&] {
    if (unicode::find_invalid_utf8(bytes) == bytes.npos) {
      if (!bytes.empty()) result.push_back(bytes);
    } else {
      result.insert(result.end(), bytes.size(), "\ufffd");
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (is_byte(token)) {
      bytes += byte_of(token);
    } else {
      put_bytes();
      result.push_back(std::move(token));
    }
  }
  put_bytes();
  tokens = std::move(result);
}

void decode(Texts& tokens, const FuseDecoder&) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  tokens.assign(1, std::move(text));
}

void decode(Texts& tokens, const StripDecoder& decoder) {
  for (std::string& token : tokens) {
    std::string_view rest = token;
    for (std::size_t i = 0; i < decoder.start && !rest.empty(); ++i) {
      if (unicode::first_of(rest) != decoder.character) break;
      rest.remove_prefix(unicode::first_length(rest));
    }
    for (std::size_t i = 0; i < decoder.stop && !rest.empty(); ++i) {
      if (unicode::last_of(rest) != decoder.character) break;
      rest = rest.substr(0, unicode::last_start(rest));
    }
    token = std::string(rest);
  }
}

/// At most so many bytes in all.
void decode(Texts& tokens, const Replace& decoder, std::size_t most) {
  for (std::string& token : tokens) {
    token = decoder(token, most);
    most -= token.size();
  }
}

std::string decoded(Texts tokens, const DecoderSteps& steps) {
  constexpr std::size_t growth = 100, room = 1000;
  std::size_t size = 0;
  for (const std::string& token : tokens) size += token.size();
  for (const DecoderStep& step : steps) {
    std::visit(
        [&]<class Decoder>(const Decoder& decoder) {
          if constexpr (std::is_same_v<Decoder, Replace>) {
            decode(tokens, decoder, growth * size + room);
          } else {
            decode(tokens, decoder);
          }
        },
        step);
  }
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && steps.empty()) text += ' ';
    text += tokens[i];
  }
  return text;
}

/// As sentencepiece_processor.cc.
class SentencePieceText {
 public:
  explicit SentencePieceText(const SentencePieceDecoder& decoder) : decoder_(&decoder) {}

  void add(std::string_view token, SentencePiece::Type type) {
    if (type == SentencePiece::Type::byte && is_byte(token)) {
      bytes_ += byte_of(token);
      return;
    }
    flush();
    if (dropped_one_ || !text_.empty()) at_begin_ = false;
    dropped_one_ = false;
    if (type == SentencePiece::Type::control) return;
    if (type == SentencePiece::Type::unknown) {
      text_ += decoder_->unknown;
      return;
    }
    if (at_begin_ && decoder_->drops_blank && token.starts_with(sentence_piece_blank)) {
      token.remove_prefix(sentence_piece_blank.size());
      dropped_one_ = !decoder_->drops_all_blanks;
    }
    for (std::size_t blank; (blank = token.find(sentence_piece_blank)) != token.npos;) {
      text_ += token.substr(0, blank);
      text_ += ' ';
      token.remove_prefix(blank + sentence_piece_blank.size());
    }
    text_ += token;
  }

  std::string take() {
    flush();
    return std::move(text_);
  }

 private:
  /// Each byte that is of no character becomes a U+FFFD.
  void flush() {
    for (std::string_view rest = bytes_; !rest.empty();) {
      const auto [valid, length] = unicode::first_step(rest);
      const std::size_t size = valid ? length : 1;
      text_ += valid ? rest.substr(0, size) : "\ufffd";
      rest.remove_prefix(size);
    }
    bytes_.clear();
  }

  const SentencePieceDecoder* decoder_;
  std::string text_, bytes_;
  bool at_begin_ = true, dropped_one_ = false;
};

/// As transformers' MarianTokenizer.
std::string decoded_with_special(const Pipeline& pipeline, std::span<const std::uint32_t> tokens,
                                 const SentencePieceDecoder& decoder) {
  std::string all;
  SentencePieceText text(decoder);
  for (const std::uint32_t token : tokens) {
    const TokenTable::Token& one = pipeline.tokens[token];
    if (!one.special) {
      text.add(one.text, SentencePiece::Type::normal);
      continue;
    }
    all += std::exchange(text, SentencePieceText(decoder)).take() + one.text + ' ';
  }
  all += text.take();
  std::string_view rest = unicode::without_spaces_at_the_end(all);
  while (!rest.empty() && unicode::is(unicode::first_of(rest), unicode::space))
    rest.remove_prefix(unicode::first_length(rest));
  return std::string(rest);
}

template <class Decoder>
bool has(const DecoderSteps& steps) {
  return std::ranges::any_of(steps,
                             [](const DecoderStep& step) { return std::holds_alternative<Decoder>(step); });
}

/// The bytes of a token that stands for no characters but for them.
std::optional<std::string> bytes_of(const Pipeline& pipeline, std::uint32_t token) {
  const std::string& text = pipeline.tokens[token].text;
  if (const auto* const decoder = std::get_if<SentencePieceDecoder>(&pipeline.decoder)) {
    const bool stands_for_one =
        token < decoder->types.size() && decoder->types[token] == SentencePiece::Type::byte && is_byte(text);
    return stands_for_one ? std::optional(std::string(1, byte_of(text))) : std::nullopt;
  }
  const auto& steps = std::get<DecoderSteps>(pipeline.decoder);
  if (has<ByteFallbackDecoder>(steps))
    return is_byte(text) ? std::optional(std::string(1, byte_of(text))) : std::nullopt;
  std::string bytes;
  if (has<ByteLevelDecoder>(steps) && alphabet().decode(text, bytes)) return bytes;
  return std::nullopt;
}

}  // namespace

std::string decoded(const Pipeline& pipeline, std::span<const std::uint32_t> tokens) {
  if (const auto* const decoder = std::get_if<SentencePieceDecoder>(&pipeline.decoder)) {
    if (decoder->shows_special) return decoded_with_special(pipeline, tokens, *decoder);
    SentencePieceText text(*decoder);
    for (const std::uint32_t token : tokens)
      text.add(pipeline.tokens[token].text,
               token < decoder->types.size() ? decoder->types[token] : SentencePiece::Type::user_defined);
    return text.take();
  }
  Texts texts;
  texts.reserve(tokens.size());
  for (const std::uint32_t token : tokens) texts.push_back(pipeline.tokens[token].text);
  return decoded(std::move(texts), std::get<DecoderSteps>(pipeline.decoder));
}

std::string bytes_behind(const Pipeline& pipeline, std::vector<std::uint32_t> tokens, std::uint32_t token) {
  if (const std::optional<std::string> bytes = bytes_of(pipeline, token)) return *bytes;
  const std::string before = decoded(pipeline, tokens);
  tokens.push_back(token);
  const std::string all = decoded(pipeline, tokens);
  return all.starts_with(before) ? all.substr(before.size()) : decoded(pipeline, std::span(&token, 1));
}

}  // namespace xgrad::tokenizers::detail
