#pragma once

// What a command reads and what it writes must differ.

#include <string>
#include <vector>

namespace apps {

/// What an argument names.
enum class PathUse {
  input,         ///< a file, or the folder of a model
  input_folder,  ///< a folder, of which all files are read
  output,        ///< a file, or the folder of a model
};

/// An argument and the path that it gives.
struct NamedPath {
  std::string argument, path;
  PathUse use;
};

/// Throws std::invalid_argument if an output is the file of an input or of another output, or a file of a
/// model in their folder, however the paths are spelled. A model may be saved in the folder that it comes
/// from.
void check_paths(const std::vector<NamedPath>& paths);

}  // namespace apps
