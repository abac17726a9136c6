#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../decoder.hpp"
#include "../encoder.hpp"

namespace xgrad::pretrained {

namespace detail {

struct TransformForm;

/// norm(act(dense(x))), of which both layers may be absent.
template <class T>
struct Transform {
  std::optional<Linear<T>> dense;
  std::optional<LayerNorm<T>> norm;
  Activation act;

  Variable<T> operator()(const Variable<T>& x) const;
};

}  // namespace detail

/// Base class of models with a head for a task: a base, an Encoder or a Decoder, and layers of the head.
/// https://huggingface.co/docs/transformers/model_doc/bert
template <class T, template <class> class Base>
class TaskModel : public Model<T> {
  static constexpr bool has_encoder = std::is_same_v<Base<T>, Encoder<T>>;

 public:
  static constexpr bool is_causal = Base<T>::is_causal;

  const Base<T>& encoder() const& requires has_encoder { return base_; }
  Base<T> encoder() && requires has_encoder { return base_; }
  const Base<T>& decoder() const& requires(!has_encoder) { return base_; }
  Base<T> decoder() && requires(!has_encoder) { return base_; }

  /// All parameters that are not frozen; an encoder's before those of its head.
  std::vector<NamedParameter<T>> trainable_parameters() const;

 protected:
  /// `task` is the suffix of the class name: "ForMaskedLM"; the pooler is that of an Encoder.
  TaskModel(const Config& config, detail::Weights& weights, const std::string& task,
            Pooler pooler = Pooler::none);

  Variable<T> hidden(const Input& input) const { return base_(input).last_hidden_state; }
  Variable<T> drop(const Variable<T>& x, double probability) const;
  Linear<T> linear(detail::Weights& weights, const std::string& name, std::size_t in_features,
                   std::size_t out_features, bool bias = true);
  detail::Transform<T> transform(detail::Weights& weights, const detail::TransformForm& form);

 private:
  Base<T> base_;
};

}  // namespace xgrad::pretrained
