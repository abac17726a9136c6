#include "captured.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace xgrad::detail {
namespace {

/// The ops, and those in their backwards, all of whose work is done by calls that are captured: in particular
/// none looks at elements to decide what to do, or to refuse them, outside of a call.
constexpr std::string_view capturable_ops[] = {
    // single elements
    "abs", "add", "cube", "div", "elu", "erf", "exp", "gelu", "huber", "leaky_relu", "log", "log_sigmoid",
    "masked_mul", "maximum", "minimum", "mul", "reciprocal", "relu", "relu_grad", "rsqrt", "sigmoid", "silu",
    "softplus", "sqrt", "square", "squared_difference", "sub", "tanh",
    // shapes
    "alias", "broadcast_to", "cat", "clone", "permute", "reshape", "select", "select_grad", "slice",
    "slice_grad", "stack",
    // sums and rows
    "layer_norm", "add_layer_norm", "log_softmax", "mean", "softmax", "sum", "sum_to",
    // layers
    "dropout", "embedding", "embedding_grad", "linear", "linear_relu", "masked_fill", "matmul",
    "scaled_dot_product_attention", "self_attention", "cross_entropy"};

bool is_capturable(std::string_view op) {
  return std::find(std::begin(capturable_ops), std::end(capturable_ops), op) != std::end(capturable_ops);
}

constexpr std::size_t first_check = 16, check_factor = 4;  // in replays
constexpr std::size_t most_restarts = 16;

}  // namespace

CapturedShapes::CapturedShapes() {
  enter(Stage::fresh, "the step has not been made with arguments of these shapes");
}
CapturedShapes::~CapturedShapes() = default;

void CapturedShapes::enter(Stage stage, std::string why_not) {
  stage_ = stage;
  why_not_ = std::move(why_not);
  if (stage != Stage::captured && stage != Stage::trusted) step_.reset();
}

void CapturedShapes::start_again(std::string why) {
  if (++restarts_ > most_restarts) {
    enter(Stage::refused, "the step has changed too often, the last time because " + why);
  } else {
    enter(Stage::known, std::move(why));
  }
}

CapturedShapes::Next CapturedShapes::next() {
  why_not_now_.clear();
  if (stage_ == Stage::refused || stage_ == Stage::fresh) return Next::record;
  if (!can_capture()) {
    why_not_now_ = "somebody watched, gradients were not recorded, or it was part of another captured step";
    return Next::record;
  }
  if (stage_ == Stage::known) return Next::capture;
  switch (step_->readiness()) {
    case CapturedStep::Readiness::not_now:
      why_not_now_ = "others held a gradient, or there was one that the step would have added to";
      return Next::record;
    case CapturedStep::Readiness::changed:
      start_again(
          "what it reads has another place, what it calls is gone, or products have another precision");
      return stage_ == Stage::known ? Next::capture : Next::record;
    case CapturedStep::Readiness::unsure:
      may_differ_ = true;
      return Next::check;
    case CapturedStep::Readiness::ready:
      break;
  }
  return stage_ == Stage::captured || unchecked_ == next_check_ ? Next::check : Next::replay;
}

void CapturedShapes::recorded() {
  if (stage_ == Stage::fresh)
    enter(Stage::known, "the step has been made once with arguments of these shapes");
}

StepResults CapturedShapes::capture(const Step& step, std::span<const StepInput> inputs) {
  step_ = std::make_unique<CapturedStep>(is_capturable);
  for (const auto& [data, bytes] : inputs) step_->add_input(data, bytes);
  StepResults results;
  try {
    results = step_->capture(step);
  } catch (...) {
    step_.reset();
    throw;
  }
  if (const std::string why = step_->why_not(); !why.empty()) {
    enter(Stage::refused, why);
  } else {
    enter(Stage::captured, "the step has been captured, but not yet been compared");
    may_differ_ = false;
  }
  return results;
}

StepResults CapturedShapes::check(const Step& step) {
  StepResults results;
  try {
    results = step_->check(step);
  } catch (...) {
    if (const std::string why = step_->why_not(); !why.empty()) start_again(why);
    throw;
  }
  const std::string why = step_->why_not();
  const std::size_t unchecked = std::exchange(unchecked_, 0);
  if (why.empty()) {
    next_check_ = stage_ == Stage::captured || may_differ_ ? first_check : check_factor * next_check_;
    may_differ_ = false;
    enter(Stage::trusted, "");
  } else if (may_differ_) {
    start_again(why);
  } else if (stage_ == Stage::captured) {
    enter(Stage::refused, why);
  } else {
    enter(Stage::refused, why);
    fail<GraphError>(
        "captured: the step is no longer what was captured, although nothing that it may depend on "
        "has changed, so that its last ",
        unchecked, " replays may be wrong: ", why);
  }
  return results;
}

const StepResults& CapturedShapes::replay() {
  step_->replay();
  ++replays_;
  ++unchecked_;
  return step_->results();
}

}  // namespace xgrad::detail
