#pragma once

// The class of the model in a pretrained folder.

#include <filesystem>
#include <string>

#include <xgrad/pretrained.hpp>

namespace apps {

/// Calls f.operator()<M>() with the class M that a folder's config.json names: that of its head, Encoder
/// without one, and SentenceEmbedder for the folder of a sentence encoder.
template <class F>
auto with_model_class(const std::string& folder, const F& f) {
  using namespace xgrad::pretrained;
  const std::string name = Config::from_folder(folder, false).architecture;
  if (name.ends_with("ForSequenceClassification")) return f.template operator()<SequenceClassifier<float>>();
  if (std::filesystem::exists(folder + "/modules.json"))
    return f.template operator()<SentenceEmbedder<float>>();
  if (name.ends_with("ForMaskedLM")) return f.template operator()<MaskedLM<float>>();
  if (name.ends_with("ForTokenClassification")) return f.template operator()<TokenClassifier<float>>();
  if (name.ends_with("ForQuestionAnswering")) return f.template operator()<QuestionAnswerer<float>>();
  if (name.ends_with("ForNextSentencePrediction")) return f.template operator()<NextSentence<float>>();
  if (name == "ElectraForPreTraining") return f.template operator()<Discriminator<float>>();
  if (name.ends_with("ForPreTraining")) return f.template operator()<PreTraining<float>>();
  return f.template operator()<Encoder<float>>();
}

}  // namespace apps
