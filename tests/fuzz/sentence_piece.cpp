// Models of sentencepiece: what is read splits any text and puts it together again
// seeds: tests/data/pretrained/tokenizers/sentencepiece_unigram
// tests/data/pretrained/tokenizers/sentencepiece_bpe
#include <xgrad/base/detail/bytes/protobuf.hpp>

#include "protobuf_mutator.hpp"
#include "tokenizer_folder.hpp"

namespace {

std::string valid_model() {
  xgrad::detail::MessageWriter model;
  const auto piece = [&](std::string_view text, float score, std::int64_t type) {
    xgrad::detail::MessageWriter one;
    one.text(1, text);
    one.number(2, score);
    one.integer(3, type);
    model.message(1, one);
  };
  piece("<unk>", 0, 2);
  piece("</s>", 0, 3);
  piece("b", 0, 4);
  for (const char* text : {"\u2581", "a", "\u2581a", "ab"}) piece(text, -1, 1);
  return {reinterpret_cast<const char*>(model.written().data()), model.written().size()};
}

/// The only file, or that of a class.
fuzz::ModelFolder folder_of(const std::string& name, const std::string& class_name = "") {
  if (class_name.empty()) return fuzz::ModelFolder(name);
  return fuzz::ModelFolder(name,
                           {{"tokenizer_config.json", R"({"tokenizer_class": ")" + class_name + R"("})"}});
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  static const std::string valid = valid_model();
  return fuzz::mutate_message(data, size, most, seed, valid);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::ModelFolder folders[] = {folder_of("spm.model"),
                                              folder_of("sentencepiece.bpe.model", "XLMRobertaTokenizer"),
                                              folder_of("sentencepiece.bpe.model", "CamembertTokenizer"),
                                              folder_of("spm.model", "DebertaV2Tokenizer"),
                                              folder_of("spiece.model", "AlbertTokenizer"),
                                              folder_of("spiece.model", "T5Tokenizer")};
  const fuzz::InputFile input(data, size);
  for (const fuzz::ModelFolder& folder : folders)
    fuzz::read_and_split(folder, "a <mask>\xc3\xa9  ab\xe2\x96\x81 12", "b</s>");
  return 0;
}
