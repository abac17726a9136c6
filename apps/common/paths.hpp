#pragma once

// What a command reads and what it writes must differ.

#include <string>
#include <string_view>
#include <vector>

namespace apps {

/// Whether a file in a model's folder belongs to the model.
bool is_of_model(std::string_view name);

/// What an argument names.
enum class PathUse {
  input,         ///< a file, or the folder of a model
  input_folder,  ///< a folder, of which all files are read
  output,        ///< a file, or the folder of a model
  addition,      ///< a file, or a folder that gets files beside those that it has
};

/// An argument and the path that it gives.
struct NamedPath {
  std::string argument, path;
  PathUse use;
};

/// Throws std::invalid_argument if an output is an input or another output, or if a file of the one is a file
/// of the other: of a model's folder those that belong to the model, also in the folders of its modules.
/// However the paths are spelled, and whatever links lead there; of two folders, also where only a file in
/// one is a link to one in the other. An input that an addition is the folder of is no error.
void check_paths(const std::vector<NamedPath>& paths);

}  // namespace apps
