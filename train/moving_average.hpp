#pragma once

#include "stateful.hpp"

namespace xgrad {

/// Exponential moving average of a model's parameters, often more accurate than the last ones: average =
/// decay average + (1 - decay) p in each update, and average = p in the first (Polyak and Juditsky 1992).
/// https://pytorch.org/docs/stable/generated/torch.optim.swa_utils.AveragedModel.html
template <class T>
class ExponentialMovingAverage : public Stateful {
 public:
  /// Throws ValueError for a decay outside [0, 1].
  explicit ExponentialMovingAverage(const Module<T>& model, double decay = 0.999);

  /// Call after each step of the optimizer.
  void update();

  double decay() const { return decay_; }
  std::size_t n_averaged() const { return n_averaged_; }

  /// Assigns the averages, and the model's buffers, to another model. Throws ValueError for other names or
  /// shapes, and before the first update.
  void copy_to(const Module<T>& other) const;

  /// Replaces the model's parameters with the averages for the lifetime of the object.
  class Applied {
   public:
    ~Applied() { owner_.swap(); }
    Applied(const Applied&) = delete;
    Applied& operator=(const Applied&) = delete;

   private:
    friend class ExponentialMovingAverage;
    explicit Applied(ExponentialMovingAverage& owner) : owner_(owner) { owner_.swap(); }

    ExponentialMovingAverage& owner_;
  };

  /// For an evaluation with the averages: { const auto applied = average.apply(); accuracy(model); }. Throws
  /// ValueError before the first update. While they are applied, all other calls also throw ValueError.
  [[nodiscard]] Applied apply();

 protected:
  /// "module.linear1.weight" and "n_averaged", as in PyTorch's AveragedModel.
  void list_state(StateArchive& state) override;

 private:
  void swap();
  void check_usable(const char* call, bool updated) const;

  double decay_;
  std::vector<NamedParameter<T>> parameters_, buffers_;
  std::vector<Array<T>> averages_;
  std::size_t n_averaged_ = 0;
  bool applied_ = false;
};

}  // namespace xgrad
