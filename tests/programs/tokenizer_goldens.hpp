#pragma once

// Compares tokenizers, and what they do to single characters, with what Hugging Face's library and
// sentencepiece gave, in the files below a folder.

#include <filesystem>
#include <set>
#include <string>

#include "../tokenizers/library_cases.hpp"
#include "../tokenizers/library_characters.hpp"
#include "../tokenizers/split_cases.hpp"
#include "json_file.hpp"

namespace xgrad_tests {

/// Other goldens have a cases.json, too, and one of tokenizers is of other options.
inline bool describes_tokenizer(const nlohmann::json& cases) {
  return cases.contains("strings") && !cases.contains("settings");
}

/// Calls note(name, right) for each comparison of the folders with cases.json, and of unicode.json,
/// regex.json and invalid.json with the files beside them.
inline void compare_tokenizer_goldens(const std::string& root, const Note& note) {
  namespace fs = std::filesystem;
  std::set<fs::path> files;
  for (const auto& file : fs::recursive_directory_iterator(root))
    if (file.is_regular_file()) files.insert(file.path());
  for (const fs::path& file : files) {
    const std::string name = file.filename().string(), folder = file.parent_path().string();
    const Note note_here = [&](const std::string& what, bool right) {
      note(file.parent_path().filename().string() + "/" + name + ": " + what, right);
    };
    try {
      if (name == "cases.json" && describes_tokenizer(read_json(file.string())))
        LibraryCases(folder, note_here).compare();
      if (name == "unicode.json") LibraryCharacters(folder, note_here).compare();
      if (name == "regex.json") SplitCases(file.string(), note_here).compare();
      if (name == "invalid.json")
        compare_invalid_texts(file.string(), xgrad::tokenizers::Tokenizer::from_folder(folder + "/gpt2"),
                              note_here);
    } catch (const xgrad::FileError& error) {
      note_here(error.what(), false);
    }
  }
}

}  // namespace xgrad_tests
