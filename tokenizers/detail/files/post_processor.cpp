#include "post_processor.hpp"

#include <string>
#include <utility>
#include <vector>

namespace xgrad::tokenizers::detail {
namespace {

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

/// Lets one processor change what came before.
void apply_processor(const TokenTable& tokens, const Json& part, PostProcessor& result) {
  const std::string& type = part.at("type").text();
  if (type == "TemplateProcessing") {
    const Json specials = part.at("special_tokens");
    result.single = read_template(tokens, part.at("single"), specials, false);
    result.pair = read_template(tokens, part.at("pair"), specials, true);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const std::uint32_t cls = read_token_and_id(tokens, part.at("cls"));
    const std::uint32_t sep = read_token_and_id(tokens, part.at("sep"));
    PostProcessor both =
        type == "BertProcessing" ? PostProcessor::bert(cls, sep) : PostProcessor::roberta(cls, sep);
    result.single = std::move(both.single);
    result.pair = std::move(both.pair);
    if (type == "RobertaProcessing") result.trim_offsets = read_trim_offsets(part);
  } else if (type == "ByteLevel") {
    result.trim_offsets = read_trim_offsets(part);
  } else {
    part.at("type").refuse(
        "TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel, a Sequence of these, or no "
        "post_processor");
  }
}

}  // namespace

std::uint32_t known(const TokenTable& tokens, const Json& id) {
  const auto token = tokens.index(id.integer(0, largest_id));
  if (!token) id.refuse("the id of a token");
  return *token;
}

PostProcessor read_post_processor(const TokenTable& tokens, const std::optional<Json>& part) {
  PostProcessor result;
  if (!part) return result;
  if (part->at("type").text() != "Sequence") {
    apply_processor(tokens, *part, result);
    return result;
  }
  bool has_template = false;
  for (const Json& one : part->at("processors").items()) {
    const bool is_template = one.at("type").text() != "ByteLevel";
    if (has_template) one.fail("must not come after a processor that adds tokens");
    apply_processor(tokens, one, result);
    has_template |= is_template;
  }
  return result;
}

}  // namespace xgrad::tokenizers::detail
