#include "load_tokenizer.hpp"

#include "detail/gguf/gguf_model.hpp"

namespace xgrad::pretrained {

tokenizers::Tokenizer load_tokenizer(const std::string& path, const tokenizers::TokenizerOptions& options) {
  if (!is_gguf(path)) return tokenizers::Tokenizer::from_folder(path, options);
  return tokenizers::Tokenizer::from_json(detail::gguf_tokenizer(GgufFile(path), path), path, options);
}

}  // namespace xgrad::pretrained
