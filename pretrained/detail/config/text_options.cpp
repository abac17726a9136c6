#include "text_options.hpp"

#include <algorithm>

#include "../../../base/detail/system/folder_files.hpp"
#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"
#include "../../../files/tensor_view.hpp"
#include "json.hpp"

namespace xgrad::pretrained::detail {
namespace {

Similarity similarity_named(const Json& name) {
  for (const auto& [known, similarity] : {std::pair{"cosine", Similarity::cosine},
                                          {"dot", Similarity::dot},
                                          {"euclidean", Similarity::euclidean},
                                          {"manhattan", Similarity::manhattan}}) {
    if (name.text() == known) return similarity;
  }
  name.refuse("cosine, dot, euclidean or manhattan");
}

}  // namespace

namespace {

constexpr const char* model_options_file = "config_sentence_transformers.json";

}  // namespace

TextOptions::TextOptions(const std::string& folder) {
  read_encoder_options(folder);
  read_model_options(folder);
}

const std::vector<std::string>& TextOptions::files() {
  static const std::vector<std::string> names{
      "sentence_bert_config.json",       "sentence_roberta_config.json",
      "sentence_distilbert_config.json", "sentence_camembert_config.json",
      "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
      "sentence_xlnet_config.json",      model_options_file};
  return names;
}

void TextOptions::read_encoder_options(const std::string& folder) {
  for (const std::string& name : files()) {
    const std::string path = xgrad::detail::join({folder, "/", name});
    if (name == model_options_file || !xgrad::detail::exists(path)) continue;
    const Json config = Json::read(path);
    if (const auto length = config.find("max_seq_length"))
      max_length = static_cast<std::size_t>(length->integer(1, 1 << 30));
    if (const auto lower = config.find("do_lower_case")) lowers = lower->boolean();
    return;
  }
}

void TextOptions::read_model_options(const std::string& folder) {
  const std::string path = xgrad::detail::join({folder, "/", model_options_file});
  if (!xgrad::detail::exists(path)) return;
  const Json config = Json::read(path);
  if (const auto all = config.find("prompts")) {
    for (const auto& [name, text] : all->members()) prompts.emplace(name, text.text());
  }
  if (const auto size = config.find("truncate_dim"))
    truncate_dim = static_cast<std::size_t>(size->integer(1, 1 << 30));
  if (const auto name = config.find("similarity_fn_name")) similarity = similarity_named(*name);
  const auto name = config.find("default_prompt_name");
  if (!name) return;
  default_prompt = name->text();
  if (!prompts.contains(*default_prompt)) name->refuse("a name in prompts");
}

std::string TextOptions::prompt(const char* caller, const std::optional<std::string>& prompt,
                                const std::optional<std::string>& name) const {
  if (prompt) return *prompt;
  const std::optional<std::string>& chosen = name ? name : default_prompt;
  if (!chosen) return "";
  const auto found = prompts.find(*chosen);
  if (found != prompts.end()) return found->second;
  std::string names;
  for (const auto& [known, text] : prompts) names += (names.empty() ? "" : ", ") + known;
  xgrad::detail::fail<ValueError>(caller, ": prompt_name must be ",
                                  names.empty() ? "empty, as there are no prompts" : "one of " + names,
                                  ", got ", xgrad::detail::in_quotes(*chosen));
}

std::optional<std::string> TextOptions::first_prompt(std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    if (prompts.contains(name)) return name;
  }
  return std::nullopt;
}

std::size_t TextOptions::most_tokens(const Config& encoder, const tokenizers::Tokenizer& tokenizer) const {
  return std::min(*encoder.max_length(), max_length.value_or(tokenizer.max_length().value_or(SIZE_MAX)));
}

}  // namespace xgrad::pretrained::detail
