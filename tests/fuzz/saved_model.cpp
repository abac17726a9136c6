// Models that programs saved: word classifiers, taggers and models of texts
#include <array>

#include <xgrad/generation.hpp>

#include "../../apps/models/tagger.hpp"
#include "../../apps/models/text_model.hpp"
#include "../../apps/models/word_classifier.hpp"

#include "safetensors_mutator.hpp"

namespace {

const xgrad::EncoderConfig small{.d_model = 2, .heads = 1, .d_ff = 2, .layers = 1};

template <class Model>
std::string saved(const Model& model) {
  return fuzz::written([&](const std::string& path) { model.save(path); });
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  static const std::string classifier =
      saved(apps::WordClassifier(apps::Alphabet({{"ab", "1"}, {"b", "2"}}), {"1", "2"}, small));
  static const std::string tagger = saved(apps::Tagger(
      apps::TaggerVocabulary(std::vector<apps::TaggedSentence>{{{"a", "a"}, {"DET", "X"}}}), small));
  static const std::string text = saved(apps::TextModel(apps::TextTokens::of_characters("ab"), 4, small));
  static const std::array seeds{&classifier, &tagger, &text};
  return fuzz::mutate_safetensors(data, size, most, seed, *seeds[seed / 2 % 3]);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  fuzz::accepts<xgrad::FileError>([&] {
    const apps::WordClassifier classifier = apps::WordClassifier::load(input.path());
    classifier.answer("ab");
  });
  fuzz::accepts<xgrad::FileError>([&] {
    const apps::Tagger tagger = apps::Tagger::load(input.path());
    tagger.tags({{"a", "b"}});
  });
  fuzz::accepts<xgrad::FileError>([&] {
    const apps::TextModel model = apps::TextModel::load(input.path());
    const std::vector<std::int64_t> prompt{0};
    xgrad::generation::generate(model.model(), {prompt}, {.max_new_tokens = 2});
  });
  return 0;
}
