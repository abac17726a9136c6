#pragma once

// What fine_tune and pretrain have in common.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <xgrad/tokenizers/tokenizer.hpp>

#include "../../training/training_run.hpp"

namespace apps {

/// AdamW, whose decay spares biases and LayerNorms; the rate rises in a tenth of the steps and then falls
/// linearly.
TrainingRecipe hugging_face_recipe(const RunOptions& options,
                                   const std::vector<xgrad::NamedParameter<float>>& parameters);

/// The tokens of ids.
std::vector<std::string> tokens_of(const xgrad::tokenizers::Tokenizer& tokenizer,
                                   const std::vector<std::int64_t>& ids);

/// Throws xgrad::FileError if the model and its tokenizer cannot be saved in the folder, which need not
/// exist; to be called before a long training.
void check_save(const xgrad::tokenizers::Tokenizer& tokenizer, const std::string& folder);

/// Saves a model, by save_model(other folder), and its tokenizer in a folder, both or none. Throws
/// xgrad::FileError.
void save_with_tokenizer(const std::function<void(const std::string&)>& save_model,
                         const xgrad::tokenizers::Tokenizer& tokenizer, const std::string& folder);

/// Prints what loading a folder has to tell, on rank 0.
std::function<void(const std::string&)> note_of(const RunOptions& options);

}  // namespace apps
