// Who watches is told of every op, backward and module, and changes nothing.

#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"

namespace watch_test {

constexpr xgrad::Op slow_op("slow", {"x"});
constexpr xgrad::Op both_op("both", {"a", "b"});

using xgrad::Array, xgrad::Attribute, xgrad::BackwardEvent, xgrad::Ids, xgrad::Mask, xgrad::OpEvent,
    xgrad::RunningModule, xgrad::Shape, xgrad::Variable;
using xgrad_tests::message_of;
using V = Variable<float>;

V leaf(const Shape& shape, float value = 0.5f) { return V(Array<float>(shape, value), true); }

std::string text(const Attribute& attribute) {
  struct Text {
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const {
      std::ostringstream out;
      out << value;
      return out.str();
    }
    std::string operator()(const std::string& value) const { return value; }
    std::string operator()(const std::vector<std::int64_t>& values) const {
      std::string list = "[";
      for (const std::int64_t value : values) list += (list.size() > 1 ? " " : "") + std::to_string(value);
      return list + "]";
    }
    std::string operator()(const std::vector<double>& values) const {
      std::string list = "[";
      for (const double value : values) list += (list.size() > 1 ? " " : "") + (*this)(value);
      return list + "]";
    }
    std::string operator()(const Ids* ids) const { return "ids " + xgrad::to_string(ids->shape()); }
    std::string operator()(const Mask* mask) const { return "mask " + xgrad::to_string(mask->shape()); }
  };
  return std::string(attribute.name) + "=" + std::visit(Text(), attribute.value);
}

/// Writes down all that it is told, a line each.
class Log : public xgrad::Watcher {
 public:
  const std::vector<std::string>& lines() const { return lines_; }
  std::vector<std::string> take() { return std::exchange(lines_, {}); }

 private:
  void on_op(const OpEvent<float>& event) override { add(event, "float"); }
  void on_op(const OpEvent<double>& event) override { add(event, "double"); }
  void on_backward_begin(const BackwardEvent<float>& event) override {
    lines_.push_back(std::string("backward of ") + event.op.name + " from " +
                     xgrad::to_string(event.dy.shape()));
  }
  void on_backward_end(const BackwardEvent<float>& event) override {
    std::string line = std::string("gradients of ") + event.op.name + ":";
    for (const V& gradient : event.gradients) {
      line += " " + (gradient.defined() ? xgrad::to_string(gradient.shape()) : "none");
    }
    lines_.push_back(line);
  }
  void on_module_begin(const RunningModule& module) noexcept override {
    lines_.push_back("begin '" + module.name + "' " + module.type);
  }
  void on_module_end(const RunningModule& module) noexcept override {
    lines_.push_back("end '" + module.name + "'");
  }

  template <class T>
  void add(const OpEvent<T>& event, const char* type) {
    std::string line = event.in_backward ? "  " : "";
    line += std::string(event.op.name) + " " + type;
    for (const Variable<T>* input : event.inputs)
      line += " " + (input->defined() ? xgrad::to_string(input->shape()) : "none");
    line += " -> " + xgrad::to_string(event.result.shape());
    for (const Attribute& attribute : event.attributes) line += " " + text(attribute);
    if (event.module != nullptr) line += " in '" + event.module->name + "'";
    lines_.push_back(line);
  }

  std::vector<std::string> lines_;
};

using Lines = std::vector<std::string>;

TEST(WatcherTest, IsToldOfOpsWithInputsResultsAndAttributes) {
  const V x = leaf({2, 3});
  const Mask mask{{true, false, false}};
  Log log;
  sum(x, {1, 0}, {.keepdim = true});
  softmax(x);
  permute(x, {1, 0});
  clamp(x, {}, 0.5f);
  masked_fill(x, mask, -1);
  embedding(Ids{1, 0}, x);
  layer_norm(x, 3, V(), V(), 0.25);
  gelu(x, xgrad::Gelu::tanh);
  cat(std::vector<V>{x, x}, 1);
  {
    const xgrad::NoGrad guard;
    exp(Variable<double>(1.0, true));
  }
  EXPECT_EQ(
      log.take(),
      (Lines{"sum float (2, 3) -> (1, 1) dim=[0 1] keepdim=true", "softmax float (2, 3) -> (2, 3) dim=-1",
             "permute float (2, 3) -> (3, 2) dims=[1 0]", "clamp float (2, 3) -> (2, 3) max=0.5",
             "masked_fill float (2, 3) -> (2, 3) mask=mask (1, 3) value=-1",
             "embedding float (2, 3) -> (2, 3) ids=ids (2)",
             "layer_norm float (2, 3) none none -> (2, 3) normalized_shape=[3] eps=0.25",
             "gelu float (2, 3) -> (2, 3) approximate=tanh", "cat float (2, 3) (2, 3) -> (2, 6) dim=1",
             "exp double () -> ()"}));
}

TEST(WatcherTest, IsToldOfABackwardAndOfTheOpsThatItIsMadeOf) {
  const V x = leaf({2}), w = leaf({3, 2}), b = V(Array<float>{1, 2, 3});
  const V y = linear(x, w, b);
  Log log;
  y.backward(V(Array<float>{1, 1, 1}));
  EXPECT_EQ(log.take(), (Lines{"backward of linear from (3)",
                               "  matmul float (3) (3, 2) -> (2) trans_a=false trans_b=false",
                               "  matmul float (3) (2) -> (3, 2) trans_a=true trans_b=false",
                               "gradients of linear: (2) (3, 2) none"}));
}

TEST(WatcherTest, GradientsThatNobodyNeedsAreDropped) {
  const V x = leaf({2}), constant = x.detach();
  const auto both = [&] {
    return xgrad::record<float>(both_op, x * 2, xgrad::Inputs(constant, x), xgrad::Saved(),
                                [](const V& dy, xgrad::Needs) -> xgrad::Grads<float, 2> {
                                  return {dy, dy};
                                });
  };
  sum(both()).backward();
  EXPECT_EQ(x.grad().value(), (Array<float>{1, 1}));
  const V watched = sum(both());
  Log log;
  watched.backward();
  EXPECT_EQ(log.take().back(), "gradients of both: none (2)");
  EXPECT_EQ(x.grad().value(), (Array<float>{2, 2}));
}

TEST(WatcherTest, WhatABackwardAddsUpAndCopiesIsPartOfIt) {
  const V x = leaf({2}), y = leaf({2});
  const V doubled = x + x, total = x + y;
  Log log;
  sum(doubled).backward();
  sum(total).backward();
  for (const std::string& line : log.take()) {
    EXPECT_TRUE(line.starts_with("sum") || line.starts_with("  ") || line.starts_with("backward of") ||
                line.starts_with("gradients of"))
        << line;
  }
}

TEST(WatcherTest, IsToldHowACrossEntropyIsReduced) {
  const V logits = leaf({2, 3});
  Log log;
  cross_entropy(logits, Ids{0, 2});
  cross_entropy(logits, Ids{0, 2},
                {.weight = V(Array<float>{1, 2, 0.5f}), .reduction = xgrad::Reduction::none});
  const std::string told = "cross_entropy float (2, 3) -> ", options = " target=ids (2) ignore_index=-100";
  EXPECT_EQ(log.take(),
            (Lines{told + "()" + options + " label_smoothing=0 reduction=mean",
                   told + "(2)" + options + " label_smoothing=0 reduction=none weight=[1 2 0.5]"}));
}

TEST(WatcherTest, NumbersLinkABackwardToItsOp) {
  struct Numbers : xgrad::Watcher {
    std::map<std::uint64_t, std::string> ops, backwards;
    void on_op(const OpEvent<float>& event) override {
      if (!event.in_backward) ops[event.number] = event.op.name;
    }
    void on_backward_begin(const BackwardEvent<float>& event) override {
      backwards[event.number] = event.op.name;
    }
  };
  Numbers numbers;
  const V x = leaf({2});
  sum(exp(x) * tanh(x)).backward();
  EXPECT_EQ(numbers.ops.size(), 4u);
  EXPECT_EQ(numbers.backwards, numbers.ops);
  numbers.ops.clear();
  exp(x.detach());
  EXPECT_EQ(numbers.ops.begin()->first, 0u) << "not recorded";
}

TEST(WatcherTest, IsToldWhichModuleCalls) {
  const xgrad::TransformerEncoderLayer<float> layer({.d_model = 4, .heads = 2, .d_ff = 8});
  const V x = leaf({1, 3, 4});
  Log log;
  layer(x);
  Lines modules, ops;
  for (const std::string& line : log.take())
    (line.starts_with("begin") || line.starts_with("end") ? modules : ops).push_back(line);
  EXPECT_EQ(modules,
            (Lines{"begin '' TransformerEncoderLayer", "begin 'self_attn' MultiHeadAttention",
                   "begin 'self_attn.out_proj' Linear", "end 'self_attn.out_proj'", "end 'self_attn'",
                   "begin 'norm1' LayerNorm", "end 'norm1'", "begin 'feed_forward' FeedForward",
                   "begin 'feed_forward.linear2' Linear", "end 'feed_forward.linear2'", "end 'feed_forward'",
                   "begin 'norm2' LayerNorm", "end 'norm2'", "end ''"}));
  ASSERT_EQ(ops.size(), 6u);
  EXPECT_TRUE(ops[0].starts_with("self_attention float (1, 3, 4) (4, 4)")) << ops[0];
  EXPECT_TRUE(ops[0].ends_with("in 'self_attn'")) << ops[0];
  EXPECT_TRUE(ops[1].ends_with("in 'self_attn.out_proj'")) << ops[1];
}

TEST(WatcherTest, ModulesHaveTheNamesOfTheirParameters) {
  const xgrad::ToyEncoder<float> model({.vocab_size = 7,
                                        .max_len = 4,
                                        .classes = 2,
                                        .encoder = {.d_model = 4, .heads = 2, .d_ff = 8, .layers = 2},
                                        .pad_id = 0});
  struct Names : xgrad::Watcher {
    std::set<std::string> names;
    void on_module_begin(const RunningModule& module) noexcept override {
      if (!module.name.empty()) names.insert(module.name);
    }
  };
  Names watcher;
  model.class_logits(Ids{{1, 2, 0, 0}});
  const auto parameters = model.named_parameters();
  for (const std::string& name : watcher.names) {
    const bool found = std::any_of(parameters.begin(), parameters.end(), [&](const auto& parameter) {
      return parameter.first.starts_with(name + ".");
    });
    EXPECT_TRUE(found) << name;
  }
  EXPECT_TRUE(watcher.names.contains("encoder.layers.1.feed_forward.linear2"));
}

template <class T>
class Twice : public xgrad::Module<T> {
 public:
  Twice() : xgrad::Module<T>("Twice"), once_(this->child("once", xgrad::Linear<T>(2, 2))) {}

  Variable<T> operator()(const Variable<T>& x) const {
    const auto scope = this->scope();
    return once_(helper_(*this, once_(x)));
  }
  const xgrad::Linear<T>& once() const { return once_; }
  Variable<T> half(const Variable<T>& x) const {
    const auto scope = this->scope();
    return once_(x);
  }

 private:
  xgrad::Linear<T> once_;
  std::function<Variable<T>(const Twice&, const Variable<T>&)> helper_ = [](const Twice& self,
                                                                            const auto& x) {
    const xgrad::Linear<T> stranger(2, 2);
    return self.half(stranger(x));
  };
};

TEST(WatcherTest, SharedOwnAndForeignModulesHaveNames) {
  const Twice<double> model;
  Log log;
  model(Variable<double>(Array<double>{1, 2}));
  Lines begins;
  for (const std::string& line : log.lines())
    if (line.starts_with("begin")) begins.push_back(line);
  EXPECT_EQ(begins, (Lines{"begin '' Twice", "begin 'once' Linear", "begin 'Linear' Linear",
                           "begin 'once' Linear", "begin 'once' Linear"}))
      << "Twice runs on while it calls itself";
}

/// Calls a module of its module.
template <class T>
class Reaching : public xgrad::Module<T> {
 public:
  Reaching() : xgrad::Module<T>("Reaching"), twice_(this->child("twice", Twice<T>())) {}

  Variable<T> operator()(const Variable<T>& x) const {
    const auto scope = this->scope();
    return twice_.once()(x);
  }

 private:
  Twice<T> twice_;
};

TEST(WatcherTest, AModuleFurtherBelowHasItsWholeName) {
  const Reaching<double> model;
  Log log;
  model(Variable<double>(Array<double>{1, 2}));
  EXPECT_EQ(log.lines()[1], "begin 'twice.once' Linear");
}

TEST(WatcherTest, AModuleEndsWhenItThrows) {
  const xgrad::Linear<float> linear(4, 2);
  Log log;
  EXPECT_THROW(linear(leaf({3})), xgrad::ShapeError);
  EXPECT_EQ(log.lines(), (Lines{"begin '' Linear", "end ''"}));
  exp(leaf({1}));
  EXPECT_EQ(log.lines().back(), "exp float (1) -> (1)") << "in no module";
}

TEST(WatcherTest, WhatAWatcherComputesIsToldToNobody) {
  struct Doubling : xgrad::Watcher {
    int calls = 0;
    void on_op(const OpEvent<float>& event) override {
      ++calls;
      mul(event.result, 2.0f);
    }
  };
  const Log log;
  Doubling doubling;
  exp(leaf({2}));
  EXPECT_EQ(doubling.calls, 1);
  EXPECT_EQ(log.lines().size(), 1u);
}

TEST(WatcherTest, MayEndInAnyOrder) {
  auto first = std::make_unique<Log>();
  auto second = std::make_unique<Log>();
  const Log third;
  first.reset();
  exp(leaf({1}));
  EXPECT_EQ(second->lines().size(), 1u);
  second.reset();
  exp(leaf({1}));
  EXPECT_EQ(third.lines().size(), 2u);
}

TEST(WatcherTest, AnExceptionComesOutOfTheOpAndLeavesEverythingInOrder) {
  struct Refusing : xgrad::Watcher {
    void on_op(const OpEvent<float>& event) override {
      if (event.op == xgrad::ops::tanh) throw xgrad::ValueError("no tanh");
    }
  };
  const V x = leaf({2});
  const Log log;
  {
    const Refusing refusing;
    EXPECT_EQ(message_of<xgrad::ValueError>([&] { tanh(exp(x)); }), "no tanh");
    exp(x);
  }
  tanh(x);
  EXPECT_EQ(log.lines().size(), 3u) << "two times exp, one tanh";
}

/// A training step of a small model, all in one array: loss and gradients.
std::vector<float> step(bool weights) {
  xgrad::manual_seed(3);
  const xgrad::ToyEncoder<float> model(
      {.vocab_size = 11,
       .max_len = 6,
       .classes = 3,
       .encoder = {.d_model = 8, .heads = 2, .d_ff = 16, .layers = 2, .dropout = 0.25},
       .pad_id = 0});
  const Ids ids{{1, 2, 3, 4, 0, 0}, {5, 6, 7, 8, 9, 10}};
  const V logits =
      weights ? model.class_logits(model.with_weights(ids).output, ids) : model.class_logits(ids);
  const V loss = cross_entropy(logits, Ids{0, 2});
  loss.backward();
  std::vector<float> numbers{loss.item()};
  for (const V& parameter : model.parameters()) {
    if (!parameter.has_grad()) continue;
    const Array<float>& gradient = parameter.grad().value();
    numbers.insert(numbers.end(), gradient.begin(), gradient.end());
  }
  return numbers;
}

TEST(WatcherTest, WatchingNeverChangesABit) {
  for (const bool weights : {false, true}) {
    const std::vector<float> alone = step(weights);
    std::vector<float> watched;
    {
      const Log log;
      const xgrad::DetectAnomaly anomaly;
      xgrad::profile([&] { watched = step(weights); });
    }
    ASSERT_EQ(watched.size(), alone.size());
    EXPECT_EQ(std::memcmp(watched.data(), alone.data(), alone.size() * sizeof(float)), 0);
  }
}

TEST(ProfileTest, CountsOpsModulesAndBytes) {
  const xgrad::TransformerEncoderLayer<float> layer({.d_model = 4, .heads = 2, .d_ff = 8});
  const V x(Array<float>({2, 3, 4}, 0.5f));
  const xgrad::Profile profile = xgrad::profile([&] {
    sum(layer(x)).backward();
    sum(layer(x)).backward();
  });
  std::map<std::string, std::pair<std::size_t, std::size_t>> ops, modules;
  for (const auto& row : profile.ops) ops[row.name] = {row.calls, row.bytes};
  for (const auto& row : profile.modules) modules[row.name] = {row.calls, row.bytes};
  const std::size_t bytes = 2 * 3 * 4 * sizeof(float);
  using Counts = std::map<std::string, std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(ops, (Counts{{"self_attention", {2, 2 * bytes}},
                         {"linear", {4, 4 * bytes}},
                         {"add_layer_norm", {4, 4 * bytes}},
                         {"linear_relu", {2, 4 * bytes}},
                         {"sum", {2, 2 * sizeof(float)}}}));
  EXPECT_EQ(modules, (Counts{{"TransformerEncoderLayer", {2, 14 * bytes}},
                             {"self_attn", {2, 4 * bytes}},
                             {"self_attn.out_proj", {2, 2 * bytes}},
                             {"norm1", {2, 2 * bytes}},
                             {"feed_forward", {2, 6 * bytes}},
                             {"feed_forward.linear2", {2, 2 * bytes}},
                             {"norm2", {2, 2 * bytes}}}));
  double forward = 0, backward = 0;
  for (const auto& row : profile.ops) {
    forward += row.forward_seconds;
    backward += row.backward_seconds;
  }
  EXPECT_GT(forward, 0);
  EXPECT_GT(backward, 0);
  EXPECT_LE(forward + backward, profile.seconds);
  EXPECT_EQ(profile.modules.front().name, "TransformerEncoderLayer");
  EXPECT_LE(profile.modules.front().backward_seconds, backward);
}

TEST(ProfileTest, BackwardsWithinABackwardCountThere) {
  const xgrad::LayerNorm<double> norm(4);
  const Variable<double> x(Array<double>{{1, 2, 4, 3}}, true);
  const xgrad::Profile profile =
      xgrad::profile([&] { grad(sum(exp(norm(x))), {x}, {.create_graph = true}); });
  std::set<std::string> ops;
  for (const auto& row : profile.ops) {
    ops.insert(row.name);
    EXPECT_EQ(row.calls, 1u) << row.name;
  }
  EXPECT_EQ(ops, (std::set<std::string>{"layer_norm", "exp", "sum"}));
  ASSERT_EQ(profile.modules.size(), 1u);
  EXPECT_GT(profile.modules[0].backward_seconds, 0);
}

TEST(ProfileTest, WhatTakesLongestForwardAndBackwardComesFirst) {
  const V x = leaf({2}), large(Array<float>(Shape{20000}, 0.5f));
  const auto backward = [](const V& dy, xgrad::Needs) -> xgrad::Grads<float, 1> {
    const V busy(Array<float>(Shape{1000000}, 0.5f));
    return {dy * erf(exp(busy)).value()(0)};
  };
  const xgrad::Profile profile = xgrad::profile([&] {
    erf(exp(large));
    sum(xgrad::record<float>(slow_op, x * 1, xgrad::Inputs(x), xgrad::Saved(), backward)).backward();
  });
  for (std::size_t i = 1; i < profile.ops.size(); ++i) {
    const auto seconds = [](const auto& op) { return op.forward_seconds + op.backward_seconds; };
    EXPECT_GE(seconds(profile.ops[i - 1]), seconds(profile.ops[i])) << profile.ops[i].name;
  }
}

TEST(ProfileTest, PrintsTwoTables) {
  xgrad::Profile profile{
      {{"matmul", 12, 0.0015, 0.003, 1 << 20}}, {{"Encoder", 1, 0.002, 0.004, 3 << 20}}, 0.009};
  std::ostringstream out;
  out << 0.12345 << '\n' << profile << 0.12345;
  EXPECT_EQ(out.str(),
            "0.12345\n"
            "op       calls  forward ms  backward ms   share      MiB\n"
            "matmul      12       1.500        3.000  50.0 %    1.000\n"
            "\n"
            "module    calls  forward ms  backward ms   share      MiB\n"
            "Encoder       1       2.000        4.000  66.7 %    3.000\n"
            "\n"
            "total 9.000 ms\n"
            "0.12345");
}

TEST(ProfileTest, AnExceptionOfTheFunctionComesOut) {
  EXPECT_EQ(message_of<xgrad::ValueError>([] { xgrad::profile([] { throw xgrad::ValueError("stop"); }); }),
            "stop");
}

}  // namespace watch_test
