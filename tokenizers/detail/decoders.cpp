#include "decoders.hpp"

#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "unicode/unicode.hpp"

namespace xgrad::tokenizers::detail {
namespace {

using Texts = std::vector<std::string_view>;

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

std::string decoded(const Texts& tokens, const WordPieceDecoder& decoder) {
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

std::string decoded(const Texts& tokens, const ByteLevelDecoder&) {
  const ByteAlphabet alphabet;
  std::string bytes;
  for (const std::string_view token : tokens) alphabet.decode(token, bytes);
  return unicode::to_valid(bytes);
}

std::string decoded(const Texts& tokens, const MetaspaceDecoder& decoder) {
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

std::string decoded(const Texts& tokens, std::monostate) {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += ' ';
    text += tokens[i];
  }
  return text;
}

/// The byte of a token such as "<0x0A>".
char byte_of(std::string_view token) {
  return static_cast<char>(std::stoi(std::string(token.substr(3, 2)), nullptr, 16));
}

bool is_byte(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with('>') &&
         token.find_first_not_of("0123456789ABCDEFabcdef", 3) == 5;
}

/// As sentencepiece_processor.cc.
class SentencePieceText {
 public:
  explicit SentencePieceText(const SentencePieceDecoder& decoder) : decoder_(decoder) {}

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
      text_ += decoder_.unknown;
      return;
    }
    if (at_begin_ && decoder_.drops_blank && token.starts_with(sentence_piece_blank)) {
      token.remove_prefix(sentence_piece_blank.size());
      dropped_one_ = !decoder_.drops_all_blanks;
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

  const SentencePieceDecoder& decoder_;
  std::string text_, bytes_;
  bool at_begin_ = true, dropped_one_ = false;
};

}  // namespace

std::string decoded(const Pipeline& pipeline, std::span<const std::uint32_t> tokens) {
  return std::visit(
      [&]<class Decoder>(const Decoder& decoder) {
        if constexpr (std::is_same_v<Decoder, SentencePieceDecoder>) {
          SentencePieceText text(decoder);
          for (const std::uint32_t token : tokens)
            text.add(pipeline.tokens[token].text,
                     token < decoder.types.size() ? decoder.types[token] : SentencePiece::Type::user_defined);
          return text.take();
        } else {
          Texts texts;
          for (const std::uint32_t token : tokens) texts.emplace_back(pipeline.tokens[token].text);
          return decoded(texts, decoder);
        }
      },
      pipeline.decoder);
}

}  // namespace xgrad::tokenizers::detail
