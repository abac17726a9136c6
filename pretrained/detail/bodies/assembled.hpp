#pragma once

#include <optional>
#include <string>

#include "../../../models/layers/embedding.hpp"
#include "../../../models/layers/rms_norm.hpp"
#include "../../../models/transformer_block.hpp"
#include "../../../ops/pointwise/dropout.hpp"
#include "../weights/weights.hpp"

// Not installed: modules that are put together from the weights of a folder.
namespace xgrad::pretrained::detail {

/// Where a module's parameters come from: names that begin with `prefix`, "encoder.layer.0.".
struct From {
  Weights& weights;
  std::string prefix;
  Part part = Part::encoder;

  From below(const std::string& name) const { return {weights, prefix + name + ".", part}; }
};

struct LinearForm {
  std::size_t in, out;
  bool bias = true;
};

/// Layers of the parameters under a name.
template <class T>
Linear<T> take_linear(const From& from, const std::string& name, const LinearForm& form) {
  const std::string full = from.prefix + name;
  const auto bias = [&]() -> std::optional<Array<T>> {
    if (!form.bias) return std::nullopt;
    return from.weights.take<T>(full + ".bias", {form.out}, Start::zeros, from.part);
  };
  Weight<T> weight = from.weights.take_weight<T>(full + ".weight", {form.out, form.in}, from.part);
  return Linear<T>(std::move(weight), bias());
}

template <class T>
LayerNorm<T> take_norm(const From& from, const std::string& name, std::size_t size, double eps,
                       bool has_bias = true) {
  const std::string full = from.prefix + name;
  Array<T> weight = from.weights.take<T>(full + ".weight", {size}, Start::ones, from.part);
  std::optional<Array<T>> bias;
  if (has_bias) bias = from.weights.take<T>(full + ".bias", {size}, Start::zeros, from.part);
  return LayerNorm<T>(std::move(weight), std::move(bias), eps);
}

template <class T>
RMSNorm<T> take_rms_norm(const From& from, const std::string& name, std::size_t size, double eps,
                         double offset) {
  const Start start = offset == 0 ? Start::ones : Start::zeros;
  return RMSNorm<T>(from.weights.take<T>(from.prefix + name + ".weight", {size}, start, from.part), eps,
                    offset);
}

template <class T>
Embedding<T> take_embedding(const From& from, const std::string& name, std::size_t count, std::size_t size,
                            std::optional<std::int64_t> padding = {}) {
  return Embedding<T>(from.weights.take_rows<T>(from.prefix + name + ".weight", {count, size}, from.part),
                      {.padding_idx = padding});
}

/// The layers of a block.
template <class T>
class StoredLayers : public LayerSource<T> {
 public:
  explicit StoredLayers(const From& from) : from_(from) {}

  Linear<T> linear(const std::string& name, std::size_t in, std::size_t out, bool bias) override {
    return take_linear<T>(from_, name, {in, out, bias});
  }
  LayerNorm<T> layer_norm(const std::string& name, std::size_t size, double eps, bool bias) override {
    return take_norm<T>(from_, name, size, eps, bias);
  }
  RMSNorm<T> rms_norm(const std::string& name, std::size_t size, double eps, double offset) override {
    return take_rms_norm<T>(from_, name, size, eps, offset);
  }
  Embedding<T> embedding(const std::string& name, std::size_t rows, std::size_t size) override {
    return take_embedding<T>(from_, name, rows, size);
  }

 private:
  From from_;
};

/// Base class of such modules: each call takes the parameters of a part and declares it under its name.
template <class T>
class Assembled : public Module<T> {
 protected:
  explicit Assembled(std::string type) : Module<T>(std::move(type)) {}

  Linear<T> linear(const From& from, const std::string& name, const LinearForm& form) {
    return this->child(name, take_linear<T>(from, name, form));
  }

  LayerNorm<T> norm(const From& from, const std::string& name, std::size_t size, double eps,
                    bool has_bias = true) {
    return this->child(name, take_norm<T>(from, name, size, eps, has_bias));
  }

  Embedding<T> embedding(const From& from, const std::string& name, std::size_t count, std::size_t size,
                         std::optional<std::int64_t> padding = {}) {
    return this->child(name, take_embedding<T>(from, name, count, size, padding));
  }

  /// Dropout in training.
  Variable<T> drop(const Variable<T>& x, double probability) const {
    return xgrad::detail::dropout_if_training(x, probability, this->training());
  }
};

}  // namespace xgrad::pretrained::detail
