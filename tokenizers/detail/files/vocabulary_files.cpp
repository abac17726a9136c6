#include "vocabulary_files.hpp"

#include <algorithm>
#include <optional>

#include "../../../base/detail/system/folder_files.hpp"
#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"
#include "../unicode/unicode.hpp"

namespace xgrad::tokenizers::detail {
namespace {

using xgrad::detail::fail;
using xgrad::detail::in_quotes;

/// Calls on_line for each line, without its end ("\n" or "\r\n") and with its number from 0.
template <class OnLine>
void read_lines(const std::string& path, OnLine&& on_line) {
  const std::string content = xgrad::detail::read_file(path);
  std::string_view text = content;
  if (const std::size_t place = unicode::find_invalid_utf8(text); place != text.npos)
    fail<FileError>(path, ": must be UTF-8, got an invalid byte at ", place);
  for (std::int64_t number = 0; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (end < text.size() && line.ends_with('\r')) line.remove_suffix(1);
    on_line(line, number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// "a b"
std::optional<std::pair<std::string, std::string>> merge_of(std::string_view line) {
  const std::size_t blank = line.find(' ');
  if (blank == line.npos || line.find(' ', blank + 1) != line.npos) return std::nullopt;
  return std::pair(std::string(line.substr(0, blank)), std::string(line.substr(blank + 1)));
}

constexpr std::string_view merges_header = "#version";

}  // namespace

void TokenCollector::add(std::string_view text, std::int64_t id) {
  if (text.size() > longest_token)
    fail<FileError>(path_, ": a token must have at most ", longest_token, " bytes, got ", text.size(),
                    " for the id ", id);
  bytes_ += text.size();
  if (bytes_ > most_token_bytes || ids_.size() >= most_tokens)
    fail<FileError>(path_, ": must have at most ", most_tokens, " tokens of ", most_token_bytes,
                    " bytes in all");
  ids_.insert_or_assign(std::string(text), id);
}

TokenIds TokenCollector::take() {
  if (ids_.empty()) fail<FileError>(path_, ": must have tokens, got none");
  return std::move(ids_);
}

TokenIds read_vocab_txt(const std::string& path) {
  TokenCollector collector(path);
  read_lines(path, [&](std::string_view line, std::int64_t number) {
    collector.add(unicode::without_spaces_at_the_end(line), number);
  });
  return collector.take();
}

TokenIds read_vocab(const std::string& path, const Json& vocab) {
  TokenCollector collector(path);
  for (const auto& [text, id] : vocab.members()) collector.add(text, id.integer(0, largest_id));
  return collector.take();
}

TokenIds read_scored_vocab(const std::string& path, const Json& vocab, std::vector<double>& scores) {
  TokenCollector collector(path);
  for (const Json& item : vocab.items()) {
    const std::vector<Json> pair = item.items();
    if (pair.size() != 2) item.refuse("a token and its score");
    collector.add(pair[0].text(), static_cast<std::int64_t>(scores.size()));
    scores.push_back(pair[1].number(-1e300, 1e300));
  }
  return collector.take();
}

MergeTexts read_merges_txt(const std::string& path) {
  MergeTexts merges;
  read_lines(path, [&](std::string_view line, std::int64_t number) {
    if (line.starts_with(merges_header)) return;
    auto merge = merge_of(line);
    if (!merge)
      fail<FileError>(path, ": line ", number + 1, " must be two tokens separated by a blank, got ",
                      in_quotes(line.substr(0, longest_token)));
    if (merges.size() >= most_tokens) fail<FileError>(path, ": must have at most ", most_tokens, " merges");
    merges.push_back(std::move(*merge));
  });
  return merges;
}

MergeTexts read_merges(const Json& list) {
  MergeTexts merges;
  for (const Json& item : list.items()) {
    if (merges.size() >= most_tokens) list.refuse("at most " + std::to_string(most_tokens) + " merges");
    if (item.is_array()) {
      const std::vector<Json> parts = item.items();
      if (parts.size() != 2) item.refuse("two tokens");
      merges.emplace_back(parts[0].text(), parts[1].text());
    } else if (!item.text().starts_with(merges_header)) {
      auto merge = merge_of(item.text());
      if (!merge) item.refuse("two tokens separated by a blank");
      merges.push_back(std::move(*merge));
    }
  }
  return merges;
}

}  // namespace xgrad::tokenizers::detail
