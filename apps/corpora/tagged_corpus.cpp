#include "tagged_corpus.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <xgrad/base/detail/system/folder_names.hpp>
#include <xgrad/train/vocabulary.hpp>

#include "line_reader.hpp"
#include "utf8.hpp"

namespace apps {
namespace {

/// The Brown corpus's tags of each universal tag (Petrov, Das and McDonald 2012, arXiv:1104.2086).
constexpr std::array<std::pair<const char*, const char*>, 12> universal_tags{
    {{"NOUN", "nn nns np np$ nn$ nps nr nrs nns$ nr$ nps$ pn pn$ cd$ nn+nn nn+in"},
     {"VERB",
      "vb vbn vbd vbg vbz md md* be bez bez* bedz bedz* ber ber* bed bed* ben beg bem bem* hv hv* hvd hvd* "
      "hvz hvz* hvg hvn do do* dod dod* doz doz* vb+ppo vbg+to md+hv md+ppss vbn+to vb+to vb+in hv+to vb+rp "
      "md+to vb+at vb+jj vb+vb"},
     {".", ". , `` '' -- ) ( : '"},
     {"ADP", "in cs in+in in+ppo"},
     {"DET", "at dt dt$ dti dts dtx abx wdt pp$ wp$"},
     {"ADJ", "jj jjr jjt jjs ap od ap+ap jj+jj jjr+cs"},
     {"ADV", "rb rbr rbt rn ql qlp * wrb wql rb+cs rbr+cs"},
     {"PRON", "pps ppss ppo ppl ppls pp$$ wps wpo"},
     {"CONJ", "cc"},
     {"PRT", "to rp ex uh abn abl ap$ jj$ rb$"},
     {"NUM", "cd"},
     {"X", "nil do+ppss wdt+ber+pp wdt+do+pps"}}};

}  // namespace

std::string universal_tag(std::string_view brown) {
  static const std::unordered_map<std::string, std::string> tags = [] {
    std::unordered_map<std::string, std::string> result;
    for (const auto& [universal, list] : universal_tags)
      for (const std::string& tag : xgrad::whitespace_tokens(list)) result.emplace(tag, universal);
    return result;
  }();
  if (brown.starts_with("fw-")) return "X";
  std::string_view tag = brown;
  while (tag.size() > 3 && (tag.ends_with("-tl") || tag.ends_with("-hl") || tag.ends_with("-nc")))
    tag.remove_suffix(3);
  if (const auto found = tags.find(std::string(tag)); found != tags.end()) return found->second;
  if (tag.find('+') != tag.npos) return "PRT";
  throw std::invalid_argument("universal_tag: there is no tag " + printable(brown) + " in the Brown corpus");
}

TaggedFile read_tagged_file(const std::string& path) {
  LineReader reader(path);
  TaggedFile sentences;
  for (std::string line; reader.next(line);) {
    reader.check_text(line);
    TaggedSentence sentence;
    for (const std::string& part : xgrad::whitespace_tokens(line)) {
      const std::size_t slash = part.rfind('/');
      if (slash == part.npos || slash == 0 || slash + 1 == part.size())
        reader.fail("every word must have a tag, as in house/NOUN", part);
      sentence.words.push_back(part.substr(0, slash));
      sentence.tags.push_back(part.substr(slash + 1));
    }
    if (!sentence.words.empty()) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::vector<TaggedFile> read_tagged_folder(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const std::string& name : xgrad::detail::names_in(folder, error)) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (std::filesystem::is_regular_file(path)) paths.push_back(path.string());
  }
  if (error) throw std::runtime_error(folder + ": cannot be read: " + error.message());
  if (paths.empty()) throw std::runtime_error(folder + ": must hold files of tagged sentences, got none");
  std::sort(paths.begin(), paths.end());
  std::vector<TaggedFile> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) files.push_back(read_tagged_file(path));
  return files;
}

TaggedSplit split_files(const std::vector<TaggedFile>& files) {
  TaggedSplit split;
  for (std::size_t i = 0; i < files.size(); ++i) {
    auto& part = i % 10 == 4 ? split.test : i % 20 == 9 ? split.validation : split.train;
    part.insert(part.end(), files[i].begin(), files[i].end());
  }
  if (split.train.empty() || split.validation.empty() || split.test.empty())
    throw std::invalid_argument("split_files: each part must have sentences, got " +
                                std::to_string(split.train.size()) + " to train on, " +
                                std::to_string(split.validation.size()) + " to validate and " +
                                std::to_string(split.test.size()) + " to test");
  return split;
}

double most_frequent_tag_accuracy(const std::vector<TaggedSentence>& train,
                                  const std::vector<TaggedSentence>& test) {
  std::unordered_map<std::string, std::map<std::string, std::size_t>> counts;
  for (const TaggedSentence& sentence : train)
    for (std::size_t i = 0; i < sentence.words.size(); ++i) ++counts[sentence.words[i]][sentence.tags[i]];
  const auto most = [](const std::map<std::string, std::size_t>& tags) {
    return std::max_element(tags.begin(), tags.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  };
  std::map<std::string, std::size_t> of_rare;
  std::unordered_map<std::string, std::string> best;
  for (const auto& [word, tags] : counts) {
    best[word] = most(tags);
    if (tags.size() == 1 && tags.begin()->second == 1) ++of_rare[tags.begin()->first];
  }
  const std::string of_unknown = of_rare.empty() ? best.begin()->second : most(of_rare);
  std::size_t right = 0, all = 0;
  for (const TaggedSentence& sentence : test) {
    for (std::size_t i = 0; i < sentence.words.size(); ++i, ++all) {
      const auto found = best.find(sentence.words[i]);
      right += (found == best.end() ? of_unknown : found->second) == sentence.tags[i] ? 1 : 0;
    }
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

}  // namespace apps
