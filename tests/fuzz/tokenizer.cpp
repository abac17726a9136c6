// The files of a tokenizer: what is read splits any text and puts it together again
// seeds: tests/data/pretrained/roberta_mlm tests/data/pretrained/bert_sentence
// seeds: tests/data/pretrained/tokenizers/llama2 tests/data/pretrained/tokenizers/llama3
// seeds: tests/data/pretrained/tokenizers/falcon tests/data/pretrained/tokenizers/added_first
#include "tokenizer_folder.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::ModelFolder folders[] = {
      fuzz::ModelFolder("tokenizer.json"), fuzz::ModelFolder("vocab.txt"),
      fuzz::ModelFolder("tokenizer_config.json",
                        {{"vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\na\n##b\n"}}),
      fuzz::ModelFolder("vocab.json", {{"merges.txt", "#version: 0.2\na b\n"}}),
      fuzz::ModelFolder("merges.txt",
                        {{"vocab.json", R"({"<s>": 0, "</s>": 1, "<unk>": 2, "a": 3, "b": 4, "ab": 5})"}})};
  const fuzz::InputFile input(data, size);
  for (const fuzz::ModelFolder& folder : folders)
    fuzz::read_and_split(folder, "a [MASK]\xc3\xa9 ab's 12", "b<mask>");
  return 0;
}
