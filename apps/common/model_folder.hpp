#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace apps {

/// To be called before copy_model_texts() into a folder that may have a model: throws FileError if it has
/// files of a model that are neither replaced by copies nor `written`, as they would be read with these.
void refuse_other_model(const std::string& from, const std::string& to,
                        std::initializer_list<std::string_view> written = {});

/// Copies the files beside the weights of a pretrained model: configuration, tokenizer, prompts; not those
/// that `except` names. Throws FileError.
void copy_model_texts(const std::string& from, const std::string& to,
                      std::initializer_list<std::string_view> except = {});

/// Copies the folders of a sentence encoder's modules, whose names begin with a number: 1_Pooling, 2_Dense;
/// not 0_Transformer, which has the model that is exported. Throws FileError.
void copy_module_folders(const std::string& from, const std::string& to);

}  // namespace apps
