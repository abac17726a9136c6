#include "capture.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#include "../kernels/product_precision.hpp"
#include "error.hpp"
#include "grad_mode.hpp"
#include "random.hpp"
#include "scoped_value.hpp"
#include "watch.hpp"

namespace xgrad::detail {

constinit std::atomic<std::uint64_t> module_modes{0};

namespace {

template <class T>
std::size_t bytes_of(const Array<T>& array) {
  return array.size() * sizeof(T);
}

template <class T>
bool same_bits(const Array<T>& a, const Array<T>& b) {
  return same_shape(a.shape(), b.shape()) && std::memcmp(a.data(), b.data(), bytes_of(a)) == 0;
}

/// Moves a value out of the memory of a step that is captured, but for its elements: earlier calls of the
/// step may write where its owner lies.
template <class T>
void settle(Variable<T>& v) {
  Ref<Value<T>>& value = Access<T>::value(v);
  Ref<Value<T>> outside;
  {
    const UseMemory pool(nullptr);
    outside = Ref<Value<T>>(new Value<T>(std::move(value->array)));
  }
  value = std::move(outside);
}

template <class T>
class GradientOf final : public LeafGradient {
 public:
  explicit GradientOf(const Ref<Node<T>>& leaf) : leaf_(leaf), value_(Access<T>::value(grad())) {}

  const void* leaf() const override { return leaf_.get(); }
  bool leaf_has_gradient() const override { return grad().defined(); }
  void give() override {
    collect();
    grad() = Access<T>::make(value_, {});
  }
  bool is_unshared() const override { return value_->refs.count() == (is_leafs() ? 2 : 1); }
  void settle() override {
    value_ = {};
    detail::settle(grad());
    value_ = Access<T>::value(grad());
  }
  void move() override {
    computed_ = value_->array.data();
    value_ = {};
    grad() = Variable<T>(grad().value());
    value_ = Access<T>::value(grad());
  }
  void collect() override {
    if (computed_ != nullptr) std::copy_n(computed_, value_->array.size(), value_->array.data());
  }
  void part_from_leaf() override {
    if (is_leafs()) grad() = Variable<T>(value_->array);
  }
  bool equals_leafs() const override { return grad().defined() && same_bits(grad().value(), value_->array); }
  const void* elements() const override { return value_->array.data(); }

 private:
  Variable<T>& grad() const { return static_cast<LeafNode<T>&>(*leaf_).grad; }
  bool is_leafs() const { return Access<T>::value(grad()).get() == value_.get(); }

  Ref<Node<T>> leaf_;
  Ref<Value<T>> value_;
  const T* computed_ = nullptr;  // where the step's calls put the elements, if they do not stay there
};

/// One thing that a step does.
struct Act {
  enum class Kind { kernel, draw, host, forget, give };

  Kind kind;
  const char* name;
  std::unique_ptr<kernels::Call> call;
  kernels::Parts parts = kernels::parts_asked();  // the precision of products that is asked for
  void* drawn = nullptr;                          // where random numbers go
  std::size_t bytes = 0;                          // of those
  const void* leaf = nullptr;                     // that forgets its gradient
  std::unique_ptr<LeafGradient> gradient{};       // that is given
  const Lifetime* object = nullptr;               // whose call it is
};

/// A value that was there before the step.
template <class T>
struct Outer {
  Ref<Value<T>> value;
  const T* data;
  std::uint32_t version, refs;
};

template <class T>
using Outers = std::vector<Outer<T>>;

struct Range {
  const std::byte* begin;
  std::size_t bytes;

  bool holds(const void* address) const {
    const auto* const place = static_cast<const std::byte*>(address);
    return place >= begin && place < begin + bytes;
  }
};

/// While one lives, this thread's work is neither captured nor told to anybody.
class Unobserved {
 private:
  ScopedValue<kernels::Capturer*> capturer_{kernels::capturer, nullptr};
  ScopedValue<Watcher*> watchers_{watchers, nullptr};
};

}  // namespace

struct CapturedState {
  bool (*is_capturable)(std::string_view);
  std::vector<Range> inputs{};
  CaptureMemory memory{};  // goes after all that lies in it
  std::vector<Act> acts{};
  std::tuple<Outers<float>, Outers<double>> outers{};
  std::vector<LeafGradient*> gradients{};           // the acts' own
  std::vector<LeafGradient*> unprepared{};          // whose leaves must not have a gradient before the step
  std::vector<std::weak_ptr<const void>> called{};  // objects whose calls are among the acts
  StepResults results{};
  std::string why_not{};
  std::uint64_t modes = 0;
  std::int16_t parts_of_thread = -1;
  kernels::Parts parts_of_process = 0;

  template <class F>
  void each_outer(const F& f) {
    for (auto& outer : std::get<0>(outers)) f(outer);
    for (auto& outer : std::get<1>(outers)) f(outer);
  }

  /// The step does the same only under the conditions of now.
  void note_conditions() {
    modes = module_modes.load(std::memory_order_relaxed);
    parts_of_thread = kernels::parts_of_thread;
    parts_of_process = kernels::parts_of_process.load(std::memory_order_relaxed);
    each_outer([](auto& outer) { outer.refs = outer.value->refs.count(); });
  }

  void refuse(std::string why) {
    if (why_not.empty()) why_not = std::move(why);
  }
};

namespace {

/// What those who list a step and who check it have in common.
class Observer : public StepCapturer {
 public:
  bool draws_from(const void* generator) const final { return generator == generator_; }
  void refuse(std::string why) final { state_.refuse(std::move(why)); }

 protected:
  explicit Observer(CapturedState& state) : state_(state) {}

  CapturedState& state_;

 private:
  const Generator* const generator_ = &default_generator();
};

/// Lists what a step does, and looks whether all of it can be repeated.
class Recorder final : public Observer, public Watcher {
 public:
  explicit Recorder(CapturedState& state) : Observer(state), memory_(&state.memory) {}

  void call(const char* name, const kernels::Operands& operands,
            std::unique_ptr<kernels::Call> call) override {
    if (!operands.all_known()) refuse(join({name, " has arguments that cannot be kept"}));
    for (const kernels::Operand& operand : operands.list()) {
      if (!operand.written) check_read(name, operand.data);
    }
    for (const kernels::Operand& operand : operands.list()) {
      if (operand.written) note_written(name, operand.data);
    }
    run({.kind = Act::Kind::kernel, .name = name, .call = std::move(call)});
  }

  void draw(const char* name, void* data, std::size_t bytes, std::unique_ptr<kernels::Call> call) override {
    note_written(name, data);
    run({.kind = Act::Kind::draw, .name = name, .call = std::move(call), .drawn = data, .bytes = bytes});
  }

  void host(const char* name, std::unique_ptr<kernels::Call> call, const Lifetime* object) override {
    check_versions();
    {
      const UseMemory pool(nullptr);
      run({.kind = Act::Kind::host, .name = name, .call = std::move(call), .object = object});
    }
    if (object != nullptr) state_.called.push_back(object->watched());
    state_.each_outer([](auto& outer) { outer.version = outer.value->version; });
  }

  void forget(const void* leaf, std::unique_ptr<kernels::Call> call) override {
    forgotten_.push_back(leaf);
    run({.kind = Act::Kind::forget, .name = "zero_grad", .call = std::move(call), .leaf = leaf});
  }

  void give(std::unique_ptr<LeafGradient> gradient) override {
    LeafGradient* const given = gradient.get();
    // where a call of the step writes before, the last gradient would be overwritten before it is forgotten
    if (const CaptureMemory::Block* const block = state_.memory.find(given->elements());
        block != nullptr && block->is_used_again) {
      const CaptureMemory::NewBlocks unused(state_.memory);
      given->move();
      state_.memory.find(given->elements())->written = true;
    }
    given->settle();
    if (!is_forgotten(given->leaf())) state_.unprepared.push_back(given);
    std::erase(forgotten_, given->leaf());
    if (std::any_of(state_.gradients.begin(), state_.gradients.end(),
                    [&](const LeafGradient* other) { return other->leaf() == given->leaf(); }))
      refuse("a leaf gets a gradient twice");
    state_.gradients.push_back(given);
    state_.acts.push_back({.kind = Act::Kind::give,
                           .name = "backward",
                           .call = kernels::as_call([given] { given->give(); }),
                           .gradient = std::move(gradient)});
  }

  void read(const Variable<float>& x) override { note_outer(Access<float>::value(x)); }
  void read(const Variable<double>& x) override { note_outer(Access<double>::value(x)); }

  void on_op(const OpEvent<float>& event) override { note_op(event); }
  void on_op(const OpEvent<double>& event) override { note_op(event); }
  void on_backward_begin(const BackwardEvent<float>& event) override { check_op(event.op); }
  void on_backward_begin(const BackwardEvent<double>& event) override { check_op(event.op); }

  /// After the step, whose results nobody else may hold.
  void finish() {
    check_versions();
    for (const auto& [name, data] : outer_reads_) {
      if (!is_outer(data))
        refuse(join({name, " reads an array that is neither an argument of the step nor a Variable's"}));
    }
    std::vector<const void*> known;
    for (auto& result : state_.results) std::visit([&](auto& one) { add_result(one, known); }, result);
    for (LeafGradient* gradient : state_.gradients) {
      if (!gradient->is_unshared()) refuse("the step keeps a gradient that it gives to a leaf");
      known.push_back(gradient->elements());
    }
    for (const auto& [begin, block] : state_.memory.blocks()) {
      if (block.in_use && std::find(known.begin(), known.end(), begin) == known.end())
        refuse(
            join({"the step keeps an array that it made, of up to ", std::to_string(block.bytes), " bytes"}));
    }
  }

 private:
  void run(Act&& act) {
    const Unobserved call;
    act.call->run();
    state_.acts.push_back(std::move(act));
  }

  bool is_forgotten(const void* leaf) const {
    return std::find(forgotten_.begin(), forgotten_.end(), leaf) != forgotten_.end();
  }

  void check_read(const char* name, const void* data) {
    const CaptureMemory::Block* const block = state_.memory.find(data);
    if (block == nullptr) {
      outer_reads_.push_back({name, data});
    } else if (!block->written) {
      refuse(join({name, " reads an array whose elements no op of xgrad has computed"}));
    }
  }

  void note_written(const char* name, const void* data) {
    if (CaptureMemory::Block* const block = state_.memory.find(data)) {
      block->written = true;
    } else {
      refuse(join({name, " changes an array that was there before the step"}));
    }
  }

  void check_op(std::string_view op) {
    if (!state_.is_capturable(op))
      refuse(join({"the op '", std::string(op), "' is none of those that can be captured"}));
  }

  template <class T>
  void note_op(const OpEvent<T>& event) {
    check_op(event.op);
    for (const Attribute& attribute : event.attributes) {
      if (std::string_view(attribute.name) == "lengths")
        refuse(join({"the op '", event.op, "' depends on lengths that are no argument of the step"}));
    }
    for (const Variable<T>* input : event.inputs) {
      if (input->defined()) note_outer(Access<T>::value(*input));
    }
    const Array<T>& result = event.result.value();
    const CaptureMemory::Block* const block = state_.memory.find(result.data());
    if (block != nullptr && !block->written && result.size() > 0)
      refuse(join({"the op '", event.op, "' does work that is not captured"}));
  }

  template <class T>
  void note_outer(const Ref<Value<T>>& value) {
    if (state_.memory.find(value->array.data()) != nullptr) return;
    auto& outers = std::get<Outers<T>>(state_.outers);
    const bool known = std::any_of(outers.begin(), outers.end(),
                                   [&](const Outer<T>& outer) { return outer.value.get() == value.get(); });
    if (!known) outers.push_back({value, value->array.data(), value->version, 0});
  }

  /// Of all arrays from before that ops have been given: only calls that are repeated may change them.
  void check_versions() {
    state_.each_outer([this](const auto& outer) {
      if (outer.value->version != outer.version) refuse("the step changes a Variable in place");
    });
  }

  bool is_outer(const void* data) {
    bool found = std::any_of(state_.inputs.begin(), state_.inputs.end(),
                             [&](const Range& range) { return range.holds(data); });
    state_.each_outer([&](const auto& outer) {
      found = found ||
              Range{reinterpret_cast<const std::byte*>(outer.data), bytes_of(outer.value->array)}.holds(data);
    });
    return found;
  }

  template <class T>
  void add_result(Variable<T>& result, std::vector<const void*>& known) {
    const Value<T>& value = *Access<T>::value(result);
    const CaptureMemory::Block* const block = state_.memory.find(value.array.data());
    if (block == nullptr || !block->written)
      return refuse("the step returns a Variable that no op of it has computed");
    if (!value.refs.unique()) return refuse("the step keeps a result that it returns");
    known.push_back(value.array.data());
    settle(result);
  }

  struct OuterRead {
    const char* name;
    const void* data;
  };

  UseMemory memory_;
  ScopedValue<kernels::Capturer*> capturer_{kernels::capturer, this};
  std::vector<OuterRead> outer_reads_;
  std::vector<const void*> forgotten_;  // leaves, since they were given their last gradient
};

/// Makes a step, and the captured calls beside it.
class Checker final : public Observer {
 public:
  explicit Checker(CapturedState& state) : Observer(state) {
    for (LeafGradient* gradient : state.gradients) gradient->part_from_leaf();
    // what a call reads although no call has written it shows
    for (const auto& [begin, block] : state.memory.blocks()) {
      if (!block.in_use) spoil(begin, block.bytes);
    }
    for (LeafGradient* gradient : state.gradients) spoil(gradient->elements());
    for (const auto& result : state.results)
      std::visit([&](const auto& one) { spoil(one.value().data()); }, result);
  }

  void call(const char* name, const kernels::Operands&, std::unique_ptr<kernels::Call> call) override {
    const Unobserved calls;
    call->run();
    if (const Act* const act = next(Act::Kind::kernel, name, call.get())) repeat(*act);
  }

  void draw(const char* name, void* data, std::size_t bytes, std::unique_ptr<kernels::Call> call) override {
    const Unobserved calls;
    call->run();
    const Act* const act = next(Act::Kind::draw, name, call.get());
    if (act != nullptr && act->bytes != bytes) refuse(join({name, " draws another number of elements"}));
    if (act != nullptr && act->bytes == bytes) std::memcpy(act->drawn, data, bytes);
  }

  void host(const char* name, std::unique_ptr<kernels::Call> call, const Lifetime* object) override {
    const Unobserved calls;
    call->run();
    const Act* const act = next(Act::Kind::host, name, call.get());
    if (act != nullptr && act->object != object) refuse(join({name, " is called of another object"}));
  }

  void forget(const void* leaf, std::unique_ptr<kernels::Call> call) override {
    const Unobserved calls;
    call->run();
    const Act* const act = next(Act::Kind::forget, "zero_grad", nullptr);
    if (act != nullptr && act->leaf != leaf) refuse("zero_grad() is called for another leaf");
  }

  void give(std::unique_ptr<LeafGradient> gradient) override {
    const Act* const act = next(Act::Kind::give, "backward", nullptr);
    if (act == nullptr) return;
    if (act->gradient->leaf() != gradient->leaf()) return refuse("backward() comes to other leaves");
    act->gradient->collect();
    if (!act->gradient->equals_leafs()) {
      refuse("a gradient differs when it is computed from the captured calls");
    }
  }

  void read(const Variable<float>&) override {}  // what is read is looked at when it is captured
  void read(const Variable<double>&) override {}

  void finish(const StepResults& results) {
    if (next_ < state_.acts.size())
      refuse(join({"the step ends before ", state_.acts[next_].name, ", which was captured"}));
    bool same = results.size() == state_.results.size();
    for (std::size_t i = 0; same && i < results.size(); ++i) {
      same = std::visit(
          [&](const auto& captured) {
            using V = std::remove_cvref_t<decltype(captured)>;
            const V* const made = std::get_if<V>(&results[i]);
            return made != nullptr && same_bits(made->value(), captured.value());
          },
          state_.results[i]);
    }
    if (!same) refuse("the result differs when it is computed from the captured calls");
  }

 private:
  static void spoil(const std::byte* begin, std::size_t bytes) {
    std::memset(const_cast<std::byte*>(begin), 0xFF, bytes);
  }
  void spoil(const void* data) {
    if (const CaptureMemory::Block* const block = state_.memory.find(data))
      spoil(static_cast<const std::byte*>(data), block->bytes);
  }

  static bool is_same_kind(const kernels::Call& a, const kernels::Call& b) { return typeid(a) == typeid(b); }

  /// What was captured in this place; null if it is something else, or was so before.
  const Act* next(Act::Kind kind, const char* name, const kernels::Call* call) {
    if (!state_.why_not.empty()) return nullptr;
    if (next_ == state_.acts.size()) {
      refuse(join({name, " comes after all that was captured"}));
      return nullptr;
    }
    const Act& act = state_.acts[next_++];
    if (act.kind == kind && (call == nullptr || is_same_kind(*call, *act.call))) return &act;
    refuse(join({name, " comes where ", act.name, " was captured"}));
    return nullptr;
  }

  void repeat(const Act& act) {
    try {
      act.call->run();
    } catch (const std::exception& error) {
      refuse(join({act.name, " fails when it is repeated: ", error.what()}));
    }
  }

  ScopedValue<kernels::Capturer*> capturer_{kernels::capturer, this};
  std::size_t next_ = 0;
};

StepResults detached(StepResults results) {
  for (auto& result : results) std::visit([](auto& one) { one = one.detach(); }, result);
  return results;
}

StepResults copies(StepResults results) {
  for (auto& result : results)
    std::visit([](auto& one) { one = std::remove_cvref_t<decltype(one)>(one.value()); }, result);
  return results;
}

}  // namespace

template <class T>
void note_given(const Ref<Node<T>>& leaf) {
  step_capturer().give(std::make_unique<GradientOf<T>>(leaf));
}

template <class T>
void capture_forgetting(const Ref<Node<T>>& leaf) {
  step_capturer().forget(leaf.get(),
                         kernels::as_call([leaf] { static_cast<LeafNode<T>&>(*leaf).grad = {}; }));
}

bool can_capture() noexcept {
  return !is_watched() && recording && !single_ops && !in_backward && !kernels::is_captured();
}

CapturedStep::CapturedStep(bool (*is_capturable)(std::string_view op))
    : state_(new CapturedState{.is_capturable = is_capturable}) {}

CapturedStep::~CapturedStep() = default;

void CapturedStep::add_input(const void* data, std::size_t bytes) {
  state_->inputs.push_back({static_cast<const std::byte*>(data), bytes});
}

StepResults CapturedStep::capture(const Step& step) {
  {
    Recorder recorder(*state_);
    state_->results = detached(step());
    recorder.finish();
  }
  state_->note_conditions();
  return copies(state_->results);
}

StepResults CapturedStep::check(const Step& step) {
  Checker checker(*state_);
  StepResults results = detached(step());
  checker.finish(results);
  state_->note_conditions();
  return results;
}

CapturedStep::Readiness CapturedStep::readiness() const {
  CapturedState& state = *state_;
  if (kernels::parts_of_thread != state.parts_of_thread ||
      kernels::parts_of_process.load(std::memory_order_relaxed) != state.parts_of_process)
    return Readiness::changed;
  bool moved = false, unsure = module_modes.load(std::memory_order_relaxed) != state.modes;
  state.each_outer([&](const auto& outer) {
    moved = moved || outer.value->array.data() != outer.data;
    unsure = unsure || outer.value->refs.count() != outer.refs;
  });
  for (const auto& object : state.called) moved = moved || object.expired();
  if (moved) return Readiness::changed;
  for (const LeafGradient* gradient : state.gradients)
    if (!gradient->is_unshared()) return Readiness::not_now;
  for (const LeafGradient* gradient : state.unprepared)
    if (gradient->leaf_has_gradient()) return Readiness::not_now;
  return unsure ? Readiness::unsure : Readiness::ready;
}

void CapturedStep::replay() {
  const ScopedValue<std::int16_t> parts(kernels::parts_of_thread, kernels::parts_of_thread);
  for (const Act& act : state_->acts) {
    kernels::parts_of_thread = act.parts;
    act.call->run();
  }
}

const StepResults& CapturedStep::results() const { return state_->results; }

const std::string& CapturedStep::why_not() const { return state_->why_not; }

#define XGRAD_INSTANTIATE(T)                     \
  template void note_given(const Ref<Node<T>>&); \
  template void capture_forgetting(const Ref<Node<T>>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
