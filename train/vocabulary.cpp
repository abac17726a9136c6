#include "vocabulary.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "../base/detail/system/folder_files.hpp"
#include "../base/error.hpp"
#include "../base/file.hpp"

namespace xgrad {
namespace {

/// The text on one line: a newline becomes \n.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) c == '\n' ? line += "\\n" : line += c;
  return line;
}

}  // namespace

std::vector<std::string> whitespace_tokens(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\r\f\v";
  std::vector<std::string> tokens;
  std::size_t end = 0;
  for (;;) {
    const std::size_t begin = text.find_first_not_of(blanks, end);
    if (begin == text.npos) return tokens;
    end = text.find_first_of(blanks, begin);
    tokens.emplace_back(text, begin, end - begin);
  }
}

std::string to_ascii_lowercase(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

Vocabulary::Vocabulary(std::vector<std::string> tokens, std::string unknown)
    : tokens_(std::move(tokens)), unknown_(std::move(unknown)) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].empty() || tokens_[i].find('\n') != std::string::npos)
      detail::fail<ValueError>("Vocabulary: token ", i, " must be one line of text, got '",
                               on_one_line(tokens_[i]), "'");
    if (!ids_.emplace(tokens_[i], static_cast<std::int64_t>(i)).second)
      detail::fail<ValueError>("Vocabulary: tokens must be unique, got '", tokens_[i], "' twice");
  }
  if (!unknown_.empty() && !contains(unknown_))
    detail::fail<ValueError>("Vocabulary: the unknown token '", unknown_, "' must be one of the tokens");
}

Vocabulary Vocabulary::build(const std::vector<std::vector<std::string>>& texts, VocabularyOptions options) {
  const std::vector<std::string>& specials = options.specials;
  if (options.max_tokens != 0 && options.max_tokens < specials.size()) {
    detail::fail<ValueError>("Vocabulary: max_tokens must be at least the number of specials, ",
                             specials.size(), ", got ", options.max_tokens);
  }
  if (!options.unknown.empty() &&
      std::find(specials.begin(), specials.end(), options.unknown) == specials.end()) {
    detail::fail<ValueError>("Vocabulary: the unknown token '", options.unknown,
                             "' must be one of the specials");
  }
  std::map<std::string, std::size_t> counts;
  for (const std::vector<std::string>& text : texts)
    for (const std::string& token : text) ++counts[token];
  for (const std::string& special : specials) counts.erase(special);

  std::vector<std::pair<std::string, std::size_t>> frequent;
  for (const auto& entry : counts)
    if (entry.second >= options.min_freq) frequent.emplace_back(entry);
  std::stable_sort(frequent.begin(), frequent.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });

  std::vector<std::string> tokens = std::move(options.specials);
  for (auto& [token, count] : frequent) {
    if (options.max_tokens != 0 && tokens.size() >= options.max_tokens) break;
    tokens.push_back(std::move(token));
  }
  return Vocabulary(std::move(tokens), std::move(options.unknown));
}

bool Vocabulary::contains(std::string_view token) const { return ids_.find(token) != ids_.end(); }

std::int64_t Vocabulary::id(std::string_view token) const {
  auto found = ids_.find(token);
  if (found == ids_.end()) found = ids_.find(unknown_);
  if (found == ids_.end()) detail::fail<IndexError>("Vocabulary: there is no token '", token, "'");
  return found->second;
}

std::vector<std::int64_t> Vocabulary::ids(const std::vector<std::string>& tokens) const {
  std::vector<std::int64_t> result;
  result.reserve(tokens.size());
  for (const std::string& token : tokens) result.push_back(id(token));
  return result;
}

void Vocabulary::save(const std::string& path) const {
  AtomicFile file(path);
  std::string lines;
  for (const std::string& token : tokens_) lines += token + "\n";
  file.write(std::as_bytes(std::span(lines)));
  file.commit();
}

Vocabulary Vocabulary::load(const std::string& path, std::string unknown) {
  const std::string text = detail::read_file(path);
  if (!text.empty() && text.back() != '\n')
    detail::fail<FileError>(path, ": the last line must end with a newline");
  std::vector<std::string> tokens;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    tokens.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  try {
    return Vocabulary(std::move(tokens), std::move(unknown));
  } catch (const ValueError& error) {
    throw FileError(path + ": " + error.what());
  }
}

std::string Vocabulary::token(std::int64_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size())
    detail::fail<IndexError>("Vocabulary: id must be in [0, ", tokens_.size(), "), got ", id);
  return tokens_[static_cast<std::size_t>(id)];
}

}  // namespace xgrad
