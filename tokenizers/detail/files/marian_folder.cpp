#include <string>
#include <utility>
#include <vector>

#include "../../../base/error.hpp"
#include "../models/marian.hpp"
#include "folders.hpp"
#include "post_processor.hpp"
#include "sentence_piece_file.hpp"
#include "vocabulary_files.hpp"

namespace xgrad::tokenizers::detail {

Pipeline read_marian_folder(const std::string& folder, const TokenizerConfig& config, bool reads_target) {
  constexpr RoleTexts texts{"", "", "<pad>", "<unk>", ""};
  constexpr std::string_view end_text = "</s>";
  config.check_class({"MarianTokenizer"});
  if (const auto separate = config.find("separate_vocabs"); separate && separate->boolean())
    separate->refuse("false");
  const std::string path = in_folder(folder, "vocab.json");
  const std::string model_path = in_folder(folder, reads_target ? "target.spm" : "source.spm");
  SentencePieceFile file(model_path);
  TokenIds vocab = read_vocab(path, Json::read(path));
  std::vector<Declared> added = config.tokens(vocab, texts);
  const TokenIds new_ids = new_tokens(vocab, added);
  TokenTable tokens(path, std::move(vocab), new_ids);
  const auto roles = config.roles(tokens, texts);
  const std::uint32_t unknown = required(roles, Role::unk, path, texts);
  const auto declared_end = config.token("eos_token");
  const auto end = tokens.index(declared_end ? std::string_view(declared_end->text) : end_text);
  if (!end) xgrad::detail::fail<FileError>(path, ": the vocabulary must have the token \"</s>\"");

  TokenCollector collector(model_path);
  std::vector<SentencePiece::Type> types;
  std::vector<float> scores;
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    collector.add(piece.text, static_cast<std::int64_t>(types.size()));
    types.push_back(piece.type);
    scores.push_back(piece.score);
  }
  const TokenTable pieces(model_path, collector.take(), {});
  SentencePiece::Vocabulary vocabulary{.tokens = {}, .texts = {}, .unknown = unknown};
  for (std::size_t i = 0; i < pieces.size(); ++i)
    vocabulary.tokens.push_back(
        types[i] == SentencePiece::Type::unknown ? unknown : tokens.index(pieces[i].text).value_or(unknown));
  TokenIndices codes;
  for (const auto& [text, token] : model_words(tokens)) {
    vocabulary.texts.emplace(text, token);
    if (text.starts_with(">>")) codes.emplace(text, token);
  }
  file.options.vocabulary = std::move(vocabulary);

  SentencePieceDecoder decoder{
      .types = {},
      .unknown = "",
      .drops_blank = file.options.add_dummy_prefix || file.options.remove_extra_blanks,
      .drops_all_blanks = file.options.remove_extra_blanks,
      .shows_special = true};
  Marian model(SentencePiece(pieces, std::move(types), std::move(scores), std::move(file.options)),
               std::move(codes), unknown);
  using Kind = TemplatePart::Kind;
  PostProcessor post;
  post.single.push_back(PostProcessor::special(*end, 0));
  post.pair = {PostProcessor::text(Kind::first, 0), PostProcessor::text(Kind::second, 0),
               PostProcessor::special(*end, 0)};
  return pipeline_of(std::move(tokens), added, std::nullopt, std::move(model), std::move(post),
                     std::move(decoder), roles, config);
}

}  // namespace xgrad::tokenizers::detail
