#pragma once

#include <memory>
#include <string>

#include "training.hpp"

namespace learn {

/// What the page asks for, answered: a request and its reply are JSON objects.
///
///   {"do": "walk", "words": ["my", "shoes"], "d_model": 4, "heads": 2, "positions": true, "residual": true,
///    "hidden": [0], "asked": 1, "edits": [{"parameter": "W_Q.weight", "index": 3, "value": 0.5}]}
///     gives {"report": ...}: walk()
///   {"do": "start", "seed": 0, "steps": 1000, "lr": 0.003, "heads": 4, "layers": 1, "positions": true,
///    "residual": true, "question": 0}
///     begins a Training, and gives what "train" does
///   {"do": "train", "steps": 5, "question": 0}
///     makes that many steps, or as many as are left, and gives {"done": 5, "losses": [3.4, ...], "lr": ...,
///     "grad_norm": ..., "finished": false, "report": ...}: Training::look()
///   {"do": "questions"}
///     gives {"questions": [{"hidden": 1, "clue": 3}, ...]}
///
/// What is left out is as in WalkSettings and TrainingSettings. A request that cannot be answered gives
/// {"error": "a sentence"}.
class Lesson {
 public:
  std::string answer(const std::string& request);

 private:
  std::string trained(std::size_t steps, std::size_t question);

  std::unique_ptr<Training> training_;
};

}  // namespace learn
