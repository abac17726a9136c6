#include "sentence_piece_file.hpp"

#include <cmath>
#include <unordered_set>

#include "../../../base/detail/bytes/protobuf.hpp"
#include "../../../base/detail/system/folder_files.hpp"
#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/detail/text/utf8.hpp"
#include "../../../base/error.hpp"

namespace xgrad::tokenizers::detail {
namespace {

using xgrad::detail::in_quotes, xgrad::detail::MessageReader;
using Type = SentencePiece::Type;

class ModelReader {
 public:
  ModelReader(const std::string& path, SentencePieceFile& model) : path_(path), model_(model) {}

  void read(std::span<const std::byte> message) {
    for (MessageReader in(message); in.next();) {
      if (in.field() == 1) read_piece(in.bytes());
      if (in.field() == 2) read_trainer(in.bytes());
      if (in.field() == 3) read_normalizer(in.bytes());
      if (in.field() == 5) read_denormalizer(in.bytes());
    }
  }

  void check() const {
    std::size_t unknown = 0, normal = 0;
    std::unordered_set<std::string_view> seen;
    for (const SentencePieceFile::Piece& piece : model_.pieces) {
      unknown += piece.type == Type::unknown;
      normal += piece.type == Type::normal;
      if (!seen.insert(piece.text).second)
        fail("a token must be there once, got ", in_quotes(piece.text), " twice");
    }
    if (unknown != 1) fail("there must be one unknown token, got ", unknown);
    if (normal == 0) fail("there must be tokens of texts, got none");
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    xgrad::detail::fail<FileError>(path_, ": ", parts...);
  }

  void read_piece(std::span<const std::byte> message) {
    SentencePieceFile::Piece piece;
    std::int64_t type = static_cast<std::int64_t>(Type::normal);
    for (MessageReader in(message); in.next();) {
      if (in.field() == 1) piece.text = in.text();
      if (in.field() == 2) piece.score = in.number();
      if (in.field() == 3) type = in.integer();
    }
    const std::size_t id = model_.pieces.size();
    if (id == most_tokens) fail("must have at most ", most_tokens, " tokens");
    if (piece.text.empty() || piece.text.size() > longest_token ||
        xgrad::detail::utf8::find_invalid_utf8(piece.text) != piece.text.npos)
      fail("token ", id, " must be UTF-8 of 1 to ", longest_token, " bytes, got ", in_quotes(piece.text));
    if (!std::isfinite(piece.score)) fail("token ", id, ": the score must be a number, got ", piece.score);
    if (type < 1 || type > 6) fail("token ", id, ": the type must be from 1 to 6, got ", type);
    piece.type = static_cast<Type>(type);
    if (piece.type == Type::unknown) model_.unknown = id;
    model_.pieces.push_back(std::move(piece));
  }

  void read_trainer(std::span<const std::byte> message) {
    for (MessageReader in(message); in.next();) {
      if (in.field() == 3) {
        if (in.integer() < 1 || in.integer() > 4)
          fail("model_type must be 1 (unigram), 2 (BPE), 3 (word) or 4 (character), got ", in.integer());
        model_.options.kind = static_cast<SentencePiece::Kind>(in.integer());
      }
      if (in.field() == 24) model_.options.blank_as_suffix = in.integer() != 0;
      if (in.field() == 35) model_.options.byte_fallback = in.integer() != 0;
      if (in.field() == 44) model_.unknown_surface = in.text();
    }
  }

  void read_normalizer(std::span<const std::byte> message) {
    for (MessageReader in(message); in.next();) {
      if (in.field() == 2) model_.charsmap = in.text();
      if (in.field() == 3) model_.options.add_dummy_prefix = in.integer() != 0;
      if (in.field() == 4) model_.options.remove_extra_blanks = in.integer() != 0;
      if (in.field() == 5) model_.options.shows_blanks = in.integer() != 0;
    }
  }

  void read_denormalizer(std::span<const std::byte> message) {
    for (MessageReader in(message); in.next();)
      if (in.field() == 2 && !in.bytes().empty()) fail("denormalizer_spec must have no map of characters");
  }

  const std::string& path_;
  SentencePieceFile& model_;
};

}  // namespace

SentencePieceFile::SentencePieceFile(const std::string& path) {
  const std::string content = xgrad::detail::read_file(path);
  ModelReader reader(path, *this);
  try {
    reader.read(std::as_bytes(std::span(content)));
  } catch (const ValueError& error) {
    xgrad::detail::fail<FileError>(path, ": must be a model of sentencepiece, got ", error.what());
  }
  reader.check();
  if (xgrad::detail::utf8::find_invalid_utf8(unknown_surface) != unknown_surface.npos)
    xgrad::detail::fail<FileError>(path, ": unk_surface must be UTF-8, got ", in_quotes(unknown_surface));
  if (!charsmap.empty()) options.charsmap.emplace(charsmap, path + ": precompiled_charsmap");
}

}  // namespace xgrad::tokenizers::detail
