#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../../models/module.hpp"

// Not installed: parameters that files store under other names, or several in one tensor.
namespace xgrad::pretrained::detail {

/// A tensor in files, and the parameters that it holds in equal parts, one after another along axis 0. The
/// names go on with ".weight" and ".bias"; * stands for the number of a layer.
struct StoredAs {
  const char* tensor;                          ///< "encoder.layers.*.attn.Wqkv"
  std::array<const char*, 3> parameters = {};  ///< "layers.*.self_attn.q_proj" ...; null behind the last
  /// Its matrices are (in, out); the parts then follow each other along axis 1.
  bool transposed = false;
  /// Where files have pairs, the rows i and i + size / 2 of each head follow each other, as a rotation of
  /// neighbours wants them.
  bool in_pairs = false;

  std::size_t parts() const;
};

/// A part of a tensor: the parameter, and its place.
struct StoredPart {
  std::string parameter;
  std::size_t part, parts;
  bool transposed = false, in_pairs = false;
};

/// How the files of a family name its parameters.
struct NamesInFiles {
  const char *prefix, *old_prefix = nullptr;  ///< of the body's, in files of a model for a task
  std::span<const StoredAs> stored_as = {};   ///< where they are others
  std::span<const char* const> buffers = {};  ///< the ends of names that are no parameters
};

/// The name that a current file would have, without the prefix; empty for what is no parameter.
std::string modern_name(std::string name, const NamesInFiles& names);

/// The parameters of a tensor in a file: itself, unless `all` names it. Names are without a family's prefix.
std::vector<StoredPart> parts_of(std::span<const StoredAs> all, const std::string& tensor);

/// Renames parameters, and joins those of one tensor, for a file. Names may have the prefix.
template <class T>
StateDict<T> as_stored(std::span<const StoredAs> all, std::string_view prefix, StateDict<T> parameters);

}  // namespace xgrad::pretrained::detail
