#include "text_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "saved_model.hpp"

namespace apps {
namespace {

xgrad::ToyDecoderConfig decoder_of(const TextTokens& tokens, std::size_t context,
                                   xgrad::EncoderConfig layers) {
  layers.activation = xgrad::Activation::gelu;
  layers.norm_first = true;
  return {.vocab_size = tokens.size(), .max_len = context, .layers = layers};
}

/// Normal with standard deviation 0.02, less in what is added to the residual stream; biases are 0.
void initialize(const TextModel::Model& model) {
  const auto residuals = 2 * static_cast<double>(model.config().layers.layers);
  for (const auto& [name, parameter] : model.named_parameters()) {
    const bool is_added = name.ends_with("out_proj.weight") || name.ends_with("linear2.weight");
    if (parameter.dimension() > 1) {
      parameter.assign(
          xgrad::normal<float>(parameter.shape(), 0, is_added ? 0.02 / std::sqrt(residuals) : 0.02));
    } else if (name.ends_with("bias")) {
      parameter.assign(xgrad::Array<float>(parameter.shape(), 0.0F));
    }
  }
}

}  // namespace

TextModel::TextModel(TextTokens tokens, std::size_t context, const xgrad::EncoderConfig& sizes)
    : tokens_(std::move(tokens)), model_(decoder_of(tokens_, context, sizes)) {
  initialize(model_);
}

TextModel TextModel::load(const std::string& path) {
  const SavedModel saved(path, task);
  const std::size_t context = saved.number("context", longest_context);
  TextTokens tokens = TextTokens::of(saved);
  const xgrad::EncoderConfig sizes = saved.encoder();
  saved.check_weights((context + 2 * tokens.size()) * sizes.d_model,
                      R"(the tables of the metadata's tokens and of its "context")");
  return saved.model([&] { return TextModel(std::move(tokens), context, sizes); });
}

xgrad::Metadata TextModel::metadata() const {
  xgrad::Metadata metadata = sizes_of(model_.config().layers);
  metadata["task"] = task;
  metadata["context"] = std::to_string(model_.config().max_len);
  tokens_.save_to(metadata);
  return metadata;
}

void TextModel::save(const std::string& path) const {
  save_safetensors(model_.state_dict(), path, metadata());
}

xgrad::Variable<float> TextModel::loss(const xgrad::Ids& windows, std::size_t first) const {
  const std::size_t seen = windows.shape(1) - 1;
  const xgrad::Ids input = xt::view(windows, xt::all(), xt::range(std::size_t{0}, seen));
  xgrad::Ids next = xt::view(windows, xt::all(), xt::range(first, seen + 1));
  next.reshape({next.size()});
  const xgrad::Variable<float> hidden = narrow(model_(input), 1, static_cast<std::ptrdiff_t>(first) - 1,
                                               static_cast<std::ptrdiff_t>(seen + 1 - first));
  return cross_entropy(flatten(model_.token_logits(hidden), 0, 1), next,
                       {.reduction = xgrad::Reduction::sum});
}

}  // namespace apps
