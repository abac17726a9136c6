#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace apps {

/// Copies the files beside the weights of a pretrained model: configuration, tokenizer, prompts; not those
/// that `except` names. Throws FileError.
void copy_model_texts(const std::string& from, const std::string& to,
                      std::initializer_list<std::string_view> except = {});

/// Copies the folders of a sentence encoder's modules, whose names begin with a number: 1_Pooling, 2_Dense;
/// not 0_Transformer, which has the model that is exported. Throws FileError.
void copy_module_folders(const std::string& from, const std::string& to);

}  // namespace apps
