#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace learn {

/// Another number in the place of a drawn one.
struct Edit {
  std::string parameter;  ///< its name, "W_Q.weight"
  std::size_t index;      ///< of the element, row by row
  float value;
};

/// An encoder block on one sentence, and what a reader has changed of it. As it stands it is notebook 002's.
struct WalkSettings {
  std::vector<std::string> words{"my", "shoes", "are", "small", "my", "feet", "are", "big."};
  std::size_t d_model = 4;
  std::size_t heads = 2;
  bool positions = true, residual = true;
  std::vector<std::size_t> hidden = {};  ///< places of words that no word looks at
  std::size_t asked = 1;                 ///< the place of the word that has to be told from its vector
  std::vector<Edit> edits = {};
};

/// Computes the block with one op after the other, the loss of the guess, and all gradients: the data of a
/// report (docs/report_format.md) with a graph and, by their names, the tensors of the lesson. Throws
/// xgrad::ValueError for invalid settings, in a sentence for the person who made them.
std::string walk(const WalkSettings& settings);

}  // namespace learn
