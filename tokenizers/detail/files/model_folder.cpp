#include "model_folder.hpp"

#include <filesystem>

#include "../../../base/detail/system/folder_files.hpp"
#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"
#include "../../../base/folder.hpp"
#include "json.hpp"

namespace xgrad::tokenizers::detail {

const std::vector<std::string>& tokenizer_files() {
  static const std::vector<std::string> names{"tokenizer.json",    "tokenizer_config.json",
                                              "vocab.txt",         "vocab.json",
                                              "merges.txt",        "special_tokens_map.json",
                                              "added_tokens.json", "sentencepiece.bpe.model",
                                              "spiece.model",      "spm.model",
                                              "tokenizer.model",   "source.spm",
                                              "target.spm"};
  return names;
}

void check_folder(const std::string& folder) {
  std::error_code error;
  const auto status = std::filesystem::status(folder, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_directory(status))
    xgrad::detail::fail<FileError>(
        folder,
        ": must be a folder with config.json, model.safetensors and the files of a "
        "tokenizer, got a file; save one from Python with "
        "model.save_pretrained(folder) and tokenizer.save_pretrained(folder)");
  complete_folder(folder);
  const std::string adapter = folder + "/adapter_config.json";
  if (!xgrad::detail::exists(adapter)) return;
  const auto base = Json::read(adapter).find("base_model_name_or_path");
  xgrad::detail::fail<FileError>(
      folder, ": must be a whole model, got an adapter",
      base ? " of " + xgrad::detail::in_quotes(base->text()) : "",
      ", which is not supported; save both as one from Python with model.merge_and_unload()");
}

}  // namespace xgrad::tokenizers::detail
