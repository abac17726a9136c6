#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"
#include "../unicode/unicode.hpp"
#include "folders.hpp"
#include "post_processor.hpp"
#include "sentence_piece_file.hpp"
#include "vocabulary_files.hpp"

// The tokenizers that transformers 4 makes of sentencepiece's models (convert_slow_tokenizer.py), in the form
// of the tokenizer.json files on the hub, and those of sentencepiece itself. Whether a mask that no file
// declares by an object takes the blank before it is as in transformers 5.
namespace xgrad::tokenizers::detail {
namespace {

using ScoredVocab = std::vector<std::pair<std::string, double>>;
using Type = SentencePiece::Type;
using Prepending = MetaspaceSplit::Prepend;

/// What a class of transformers makes of a file.
struct SentencePieceClass {
  std::string_view name, model_type;
  RoleTexts texts;
  void (*vocab)(const SentencePieceFile& file, const TokenizerConfig& config, ScoredVocab& vocab);
  std::optional<std::size_t> unknown;  // its id, if it is not that of the file
  std::vector<TextSteps::Step> (*steps)(const SentencePieceFile& file, const TokenizerConfig& config);
  PostProcessor (*post)(const TokenTable& tokens, const decltype(Pipeline::roles)& roles,
                        const std::string& path, const RoleTexts& texts);
  bool splits_spaces_first = false, mask_takes_blank = false, unknown_is_normalized = false,
       has_extra_ids = false;
};

void append_pieces(const SentencePieceFile& file, std::size_t first, ScoredVocab& vocab) {
  for (std::size_t i = first; i < file.pieces.size(); ++i)
    vocab.emplace_back(file.pieces[i].text, file.pieces[i].score);
}

void all_pieces(const SentencePieceFile& file, const TokenizerConfig&, ScoredVocab& vocab) {
  append_pieces(file, 0, vocab);
}

/// fairseq's first four, then the file's without <unk>, <s> and </s>.
void xlm_roberta_vocab(const SentencePieceFile& file, const TokenizerConfig&, ScoredVocab& vocab) {
  vocab = {{"<s>", 0}, {"<pad>", 0}, {"</s>", 0}, {"<unk>", 0}};
  append_pieces(file, 3, vocab);
  vocab.emplace_back("<mask>", 0);
}

void camembert_vocab(const SentencePieceFile& file, const TokenizerConfig&, ScoredVocab& vocab) {
  vocab = {{"<s>NOTUSED", 0}, {"<pad>", 0}, {"</s>NOTUSED", 0}, {"<unk>", 0}, {"<unk>NOTUSED", -100}};
  append_pieces(file, 1, vocab);
  vocab.emplace_back("<mask>", 0);
}

/// A token such as "1," is made unlikely.
void albert_vocab(const SentencePieceFile& file, const TokenizerConfig&, ScoredVocab& vocab) {
  append_pieces(file, 0, vocab);
  for (auto& [text, score] : vocab) {
    if (!text.ends_with(',') || text.size() < 2) continue;
    const std::string_view before = std::string_view(text).substr(0, text.size() - 1);
    if (unicode::is(unicode::last_of(before), unicode::number)) score -= 100;
  }
}

std::size_t extra_ids(const TokenizerConfig& config) {
  constexpr std::int64_t most = 100'000;
  const auto value = config.find("extra_ids");
  return value ? static_cast<std::size_t>(value->integer(0, most)) : 100;
}

std::string extra_token(std::size_t i) { return "<extra_id_" + std::to_string(i) + ">"; }

void t5_vocab(const SentencePieceFile& file, const TokenizerConfig& config, ScoredVocab& vocab) {
  append_pieces(file, 0, vocab);
  for (std::size_t i = extra_ids(config); i-- > 0;) vocab.emplace_back(extra_token(i), 0);
}

void append_charsmap(const SentencePieceFile& file, std::vector<TextSteps::Step>& steps) {
  if (file.options.charsmap) steps.emplace_back(*file.options.charsmap);
}

std::vector<TextSteps::Step> usual_steps(const SentencePieceFile& file, const TokenizerConfig&) {
  std::vector<TextSteps::Step> steps;
  append_charsmap(file, steps);
  steps.emplace_back(Replace(Pattern(" {2,}"), " "));
  return steps;
}

/// T5's may be asked for no blank before texts, or for one at the beginning alone.
Prepending t5_prepend(const TokenizerConfig& config) {
  if (!config.flag("add_prefix_space", true)) return Prepending::never;
  return config.flag("legacy", true) ? Prepending::always : Prepending::first;
}

std::vector<TextSteps::Step> t5_steps(const SentencePieceFile& file, const TokenizerConfig& config) {
  if (t5_prepend(config) == Prepending::always) return usual_steps(file, config);
  std::vector<TextSteps::Step> steps;
  append_charsmap(file, steps);
  steps.emplace_back(Strip{.left = false, .right = true});
  steps.emplace_back(Replace(Pattern(" {2,}"), std::string(sentence_piece_blank)));
  return steps;
}

std::vector<TextSteps::Step> albert_steps(const SentencePieceFile& file, const TokenizerConfig& config) {
  std::vector<TextSteps::Step> steps{Replace("``", "\""), Replace("''", "\"")};
  if (!config.flag("keep_accents", false)) {
    steps.emplace_back(NormalForm{.compatibility = true, .composes = false});
    steps.emplace_back(StripAccents{});
  }
  if (config.flag("do_lower_case", true)) steps.emplace_back(Lowercase{});
  append_charsmap(file, steps);
  steps.emplace_back(Replace(Pattern(" {2,}"), " "));
  return steps;
}

std::vector<TextSteps::Step> deberta_steps(const SentencePieceFile& file, const TokenizerConfig& config) {
  if (config.flag("split_by_punct", false))
    config.find("split_by_punct")->refuse("false without a tokenizer.json");
  std::vector<TextSteps::Step> steps;
  if (config.flag("do_lower_case", false)) steps.emplace_back(Lowercase{});
  steps.emplace_back(Strip{.left = true, .right = true});
  append_charsmap(file, steps);
  steps.emplace_back(Replace(Pattern(" {2,}"), " "));
  return steps;
}

PostProcessor bert_post(const TokenTable&, const decltype(Pipeline::roles)& roles, const std::string& path,
                        const RoleTexts& texts) {
  return PostProcessor::bert(required(roles, Role::cls, path, texts),
                             required(roles, Role::sep, path, texts));
}

PostProcessor roberta_post(const TokenTable&, const decltype(Pipeline::roles)& roles, const std::string& path,
                           const RoleTexts& texts) {
  return PostProcessor::roberta(required(roles, Role::cls, path, texts),
                                required(roles, Role::sep, path, texts));
}

/// A </s>, A </s> B </s>
PostProcessor t5_post(const TokenTable& tokens, const decltype(Pipeline::roles)&, const std::string& path,
                      const RoleTexts&) {
  using Kind = TemplatePart::Kind;
  const auto end = tokens.index("</s>");
  if (!end) xgrad::detail::fail<FileError>(path, ": the vocabulary must have the token \"</s>\"");
  PostProcessor result;
  result.single = {PostProcessor::text(Kind::first, 0), PostProcessor::special(*end, 0)};
  result.pair = result.single;
  result.pair.insert(result.pair.end(),
                     {PostProcessor::text(Kind::second, 0), PostProcessor::special(*end, 0)});
  return result;
}

const SentencePieceClass classes[] = {{.name = "XLMRobertaTokenizer",
                                       .model_type = "xlm-roberta",
                                       .texts = roberta_texts,
                                       .vocab = xlm_roberta_vocab,
                                       .unknown = 3,
                                       .steps = usual_steps,
                                       .post = roberta_post,
                                       .splits_spaces_first = true},
                                      {.name = "CamembertTokenizer",
                                       .model_type = "camembert",
                                       .texts = roberta_texts,
                                       .vocab = camembert_vocab,
                                       .unknown = 3,
                                       .steps = usual_steps,
                                       .post = roberta_post,
                                       .splits_spaces_first = true,
                                       .mask_takes_blank = true},
                                      {.name = "DebertaV2Tokenizer",
                                       .model_type = "deberta-v2",
                                       .texts = bert_texts,
                                       .vocab = all_pieces,
                                       .unknown = {},
                                       .steps = deberta_steps,
                                       .post = bert_post,
                                       .unknown_is_normalized = true},
                                      {.name = "AlbertTokenizer",
                                       .model_type = "albert",
                                       .texts = {"[CLS]", "[SEP]", "<pad>", "<unk>", "[MASK]"},
                                       .vocab = albert_vocab,
                                       .unknown = {},
                                       .steps = albert_steps,
                                       .post = bert_post,
                                       .splits_spaces_first = true},
                                      {.name = "T5Tokenizer",
                                       .model_type = "t5",
                                       .texts = {"", "", "<pad>", "<unk>", ""},
                                       .vocab = t5_vocab,
                                       .unknown = {},
                                       .steps = t5_steps,
                                       .post = t5_post,
                                       .splits_spaces_first = true,
                                       .has_extra_ids = true}};

/// That of tokenizer_class, or else of the model_type in config.json; none if neither is there.
const SentencePieceClass* class_of(const std::string& folder, const TokenizerConfig& config) {
  std::vector<std::string_view> names;
  for (const SentencePieceClass& one : classes) names.push_back(one.name);
  config.check_class(names);
  const std::string name = config.class_name(), path = in_folder(folder, "config.json");
  const auto by_name = std::ranges::find(classes, name, &SentencePieceClass::name);
  if (by_name != std::end(classes)) return by_name;
  const auto type = is_file(path) ? Json::read(path).find("model_type") : std::nullopt;
  if (!type) return nullptr;
  const auto by_type = std::ranges::find(classes, type->text(), &SentencePieceClass::model_type);
  if (by_type == std::end(classes))
    type->refuse(
        "albert, camembert, deberta-v2, t5 or xlm-roberta without a tokenizer_class or a tokenizer.json");
  return by_type;
}

/// The tokens that the folder and the class declare, then those of the file that are not of texts. Those that
/// the vocabulary lacks get the next ids.
std::vector<Declared> declared_by(const SentencePieceClass& one, const SentencePieceFile& file,
                                  const TokenizerConfig& config, const TokenIds& vocab) {
  std::vector<Declared> all = config.tokens(vocab, one.texts);
  std::unordered_set<std::string> seen;
  for (const Declared& token : all) seen.insert(token.text);
  const auto declare = [&](const std::string& text, bool special) {
    if (!text.empty() && seen.insert(text).second)
      all.push_back({.place = {}, .text = text, .special = special});
  };
  std::array<std::string, role_names.size()> role_texts;
  for (std::size_t i = 0; i < role_texts.size(); ++i) {
    const auto token = config.token(static_cast<Role>(i));
    role_texts[i] = token ? token->text : std::string(one.texts[i]);
    declare(role_texts[i], true);
  }
  for (Declared& token : all) {
    if (token.place && !token.place->is_string()) continue;
    if (one.mask_takes_blank && token.text == role_texts[static_cast<std::size_t>(Role::mask)])
      token.lstrip = true;
    if (one.unknown_is_normalized && token.text == role_texts[static_cast<std::size_t>(Role::unk)])
      token.normalized = true;
  }
  for (std::size_t i = 0; one.has_extra_ids && i < extra_ids(config); ++i) declare(extra_token(i), true);
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    if ((piece.type == Type::control || piece.type == Type::user_defined) && vocab.contains(piece.text))
      declare(piece.text, piece.type == Type::control);
  }
  auto next = static_cast<std::int64_t>(vocab.size());
  for (const Declared& token : all) next = std::max(next, token.id.value_or(-1) + 1);
  for (Declared& token : all)
    if (!token.id && !vocab.contains(token.text)) token.id = next++;
  std::ranges::stable_sort(all, {}, [](const Declared& token) { return token.id.value_or(0); });
  return all;
}

Pipeline read_class(const SentencePieceClass& one, const std::string& path, const TokenizerConfig& config) {
  const SentencePieceFile file(path);
  if (file.options.kind != SentencePiece::Kind::unigram)
    xgrad::detail::fail<FileError>(path, ": model_type must be 1 (unigram) for ", std::string(one.name),
                                   ", got ", static_cast<int>(file.options.kind));
  ScoredVocab vocab;
  one.vocab(file, config, vocab);
  TokenCollector collector(path);
  std::vector<double> by_id;
  for (const auto& [text, score] : vocab) {
    collector.add(text, static_cast<std::int64_t>(by_id.size()));
    by_id.push_back(score);
  }
  TokenIds ids = collector.take();
  std::vector<Declared> added = declared_by(one, file, config, ids);
  const TokenIds new_ids = new_tokens(ids, added);
  TokenTable tokens(path, std::move(ids), new_ids);
  const auto unknown = tokens.index(static_cast<std::int64_t>(one.unknown.value_or(file.unknown)));
  if (!unknown) xgrad::detail::fail<FileError>(path, ": the vocabulary must have an unknown token");
  const auto roles = config.roles(tokens, one.texts);
  PostProcessor post = one.post(tokens, roles, path, one.texts);
  MetaspaceSplit metaspace{
      .prepend = Prepending::always, .blank = std::string(sentence_piece_blank), .split = true};
  bool splits_spaces_first = one.splits_spaces_first;
  if (one.has_extra_ids) {
    metaspace.prepend = t5_prepend(config);
    splits_spaces_first = metaspace.prepend == Prepending::always;
  }
  std::vector<Splitter::Step> steps;
  if (splits_spaces_first)
    steps.emplace_back(
        CharacterSplit{CharacterSet(*unicode::property("White_Space")), SplitBehavior::removed});
  steps.emplace_back(metaspace);
  Unigram model(tokens, by_id, *unknown, false, Splitter(std::move(steps)));
  return pipeline_of(
      std::move(tokens), added, TextSteps(one.steps(file, config)), std::move(model), std::move(post),
      DecoderSteps{MetaspaceDecoder{metaspace.blank, metaspace.prepend != Prepending::never}}, roles, config);
}

/// As sentencepiece reads it, which finds no control tokens in texts.
Pipeline read_own(const std::string& path, const TokenizerConfig& config) {
  SentencePieceFile file(path);
  TokenCollector collector(path);
  std::vector<Type> types;
  std::vector<float> scores;
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    collector.add(piece.text, static_cast<std::int64_t>(types.size()));
    types.push_back(piece.type);
    scores.push_back(piece.score);
  }
  TokenIds ids = collector.take();
  std::vector<Declared> added = config.tokens({}, {});
  const TokenIds new_ids = new_tokens(ids, added);
  TokenTable tokens(path, std::move(ids), new_ids);
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i] == Type::control) tokens[i].special = true;
  const auto roles = config.roles(tokens, roberta_texts);
  SentencePieceDecoder decoder{
      .types = types,
      .unknown = std::move(file.unknown_surface),
      .drops_blank = file.options.add_dummy_prefix || file.options.remove_extra_blanks,
      .drops_all_blanks = file.options.remove_extra_blanks};
  SentencePiece model(tokens, std::move(types), std::move(scores), std::move(file.options));
  return pipeline_of(std::move(tokens), added, std::nullopt, std::move(model), PostProcessor(),
                     std::move(decoder), roles, config);
}

}  // namespace

Pipeline read_sentence_piece_folder(const std::string& folder, const std::string& path,
                                    const TokenizerConfig& config) {
  const SentencePieceClass* const one = class_of(folder, config);
  return one == nullptr ? read_own(path, config) : read_class(*one, path, config);
}

}  // namespace xgrad::tokenizers::detail
