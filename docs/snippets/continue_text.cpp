// Continues a text with a pretrained decoder, a folder or a GGUF file
#include <iostream>

#include <xgrad/generation.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/tokenizers.hpp>

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "SmolLM2-135M-Instruct.Q4_1.gguf";
  const std::string text = argc > 2 ? argv[2] : "The capital of France is";
  const auto tokenizer = xgrad::pretrained::load_tokenizer(path);
  const auto model = xgrad::pretrained::CausalLM<float>::from_folder(path, {.dtype = xgrad::DType::BF16});
  xgrad::tokenizers::DecodeStream stream(tokenizer);
  std::cout << text;
  xgrad::generation::generate(model, {tokenizer.encode(text).ids}, {.max_new_tokens = 50},
                              [&](std::size_t, std::int64_t token) {
                                std::cout << stream.step(token) << std::flush;
                                return true;  // false would stop
                              });
  std::cout << stream.finish() << '\n';
}
