#include <iostream>

#include <xgrad/tokenizers.hpp>

int main() {
  const auto vocabulary = xgrad::tokenizers::train_word_piece(std::vector<std::string>{"a house, a house"});
  xgrad::tokenizers::write_word_piece("tokenizer", vocabulary);
  const auto tokenizer = xgrad::tokenizers::Tokenizer::from_folder("tokenizer");
  const xgrad::tokenizers::Encoding encoding = tokenizer.encode("A house");
  std::cout << encoding.size() << " tokens\n";
  return tokenizer.decode(encoding.ids) == "a house" ? 0 : 1;
}
