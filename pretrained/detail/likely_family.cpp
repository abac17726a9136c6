#include "likely_family.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "../../base/detail/text/json_text.hpp"
#include "../../base/error.hpp"
#include "../../base/random.hpp"

namespace xgrad::pretrained::detail {
namespace {

/// Parameters of a family's body, of one layer.
std::set<std::string> parameters_of(const FamilyInfo& family) {
  constexpr std::size_t tiny = 8;
  Config config = Config::of(family.family);
  config.vocab_size = config.max_position_embeddings = 2 * tiny;
  config.hidden_size = config.embedding_size = config.intermediate_size = tiny;
  config.num_hidden_layers = config.num_attention_heads = 1;
  config.pad_token_id = 1;
  Generator generator(0);
  const UseGenerator use(generator);  // initial values are drawn, and must not change what the caller draws
  Weights weights(in_files(config));
  std::set<std::string> names;
  for (const auto& [name, parameter] : family.make_body<float>(config, weights)->named_parameters())
    names.insert(name);
  return names;
}

/// With * for each number between dots.
std::string without_numbers(std::string_view name) {
  std::string text;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    text += (begin == 0 ? "" : ".") + std::string(is_number ? "*" : part);
    begin = end + 1;
  }
  return text;
}

/// The share of a family's parameters that tensors of these names hold. Its options may take and add some.
double share_of(const FamilyInfo& family, const std::vector<std::string>& tensors) {
  std::set<std::string> names;
  for (const std::string& tensor : tensors) {
    for (const StoredPart& part : parts_of(family.files.stored_as, modern_name(tensor, family.files)))
      names.insert(part.parameter);
  }
  const std::set<std::string> needed = parameters_of(family);
  const auto found = std::count_if(needed.begin(), needed.end(),
                                   [&](const std::string& name) { return names.contains(name); });
  return static_cast<double>(found) / static_cast<double>(needed.size());
}

/// "a", "b" and 7 more.
std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i == 0 ? "" : ", ") + xgrad::detail::in_quotes(names[i]);
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
}

}  // namespace

std::string told_by_names(const std::vector<std::string>& tensors, const FamilyInfo& family) {
  constexpr double least = 0.7;
  double best = least;
  Names<const FamilyInfo*> likely;
  for (const FamilyInfo* const one : all_families()) {
    if (one->is_causal != family.is_causal) continue;
    const double share = share_of(*one, tensors);
    if (share > best) likely.clear();
    best = std::max(best, share);
    if (share == best) likely.emplace_back(one->model_type, one);
  }
  for (const auto& [name, one] : likely) {
    if (one == &family) return "";  // what lacks is a part of it
  }
  std::set<std::string> known;
  for (const std::string& name : parameters_of(family)) known.insert(without_numbers(name));
  std::vector<std::string> unknown;
  for (const std::string& tensor : tensors) {
    const std::string name = modern_name(tensor, family.files);
    if (name.empty()) continue;
    const std::vector<StoredPart> parts = parts_of(family.files.stored_as, name);
    if (!known.contains(without_numbers(parts.front().parameter))) unknown.push_back(tensor);
  }
  std::string text;
  if (!unknown.empty()) text = "; what the files have is " + first_of(unknown);
  if (likely.empty()) return text;
  return text + ", as in a model of the model_type " + listed(likely) + ", where config.json says " +
         family.model_type;
}

}  // namespace xgrad::pretrained::detail
