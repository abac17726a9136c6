#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"

namespace sequential_test {

using xgrad::Array, xgrad::Ids, xgrad::Linear, xgrad::LSTM, xgrad::Sequential, xgrad::Shape, xgrad::Variable;
using xgrad_tests::message_of;

template <class... M>
concept InARow = requires(M... modules) {
  Sequential<float>(modules...);
};

static_assert(InARow<> && InARow<Linear<float>, Sequential<float>, xgrad::TransformerEncoder<float>>);
static_assert(!InARow<Linear<double>> && !InARow<xgrad::Embedding<float>> && !InARow<LSTM<float>>);

TEST(SequentialTest, ComputesItsModulesInOrder) {
  xgrad::manual_seed(0);
  const Linear<float> first(2, 3), last(3, 1);
  const Sequential<float> model(first, xgrad::Tanh<float>(), Sequential<float>(last)), copy = model;
  std::vector<std::string> names;
  for (const auto& [name, parameter] : model.named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "2.0.weight", "2.0.bias"}));
  const Variable<float> x(xgrad::normal<float>({4, 2}));
  EXPECT_EQ(model(x).value(), last(tanh(first(x))).value());
  first.weight().assign(Array<float>(Shape{3, 2}, 0.5F));
  EXPECT_EQ(copy(x).value(), last(tanh(first(x))).value());
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              model(Variable<float>(Array<float>{{1, 2, 3}}));
            }),
            "0: linear: the last axis of x must be weight's last, got x (1, 3) and weight (3, 2)");
}

/// The numbers are PyTorch 2.13's after torch.manual_seed(4).
TEST(SequentialTest, BracesDrawWeightsInOrder) {
  xgrad::manual_seed(4);
  const Sequential<float> model{Linear<float>(2, 3), xgrad::ReLU<float>(), Linear<float>(3, 1)};
  EXPECT_EQ(model.state_dict().at("0.weight")(0, 0), 0.08434174209833145F);
  EXPECT_EQ(model.state_dict().at("2.weight")(0, 0), 0.5477768182754517F);
}

TEST(SequentialTest, ItsModeIsThatOfItsModules) {
  xgrad::manual_seed(0);
  const Sequential<float> model(xgrad::Dropout<float>(0.5), xgrad::Identity<float>());
  const Variable<float> x(Array<float>({100}, 1.0F));
  EXPECT_NE(model(x).value(), x.value());
  model.eval();
  EXPECT_EQ(model(x).value(), x.value());
}

TEST(FunctionModuleTest, ComputesItsFunction) {
  using namespace xgrad;
  const Variable<double> x(Array<double>{-7, -1.5, -0.3, 0, 0.4, 2, 6.5, 30});
  const auto same = [&](const FunctionModule<double>& module, const char* type, const Variable<double>& y) {
    EXPECT_EQ(module.type(), type);
    EXPECT_EQ(module(x).value(), y.value()) << type;
  };
  same(ReLU<double>(), "ReLU", relu(x));
  same(ReLU6<double>(), "ReLU6", relu6(x));
  same(LeakyReLU<double>(), "LeakyReLU", leaky_relu(x));
  same(LeakyReLU<double>(0.2), "LeakyReLU", leaky_relu(x, 0.2));
  same(ELU<double>(), "ELU", elu(x));
  same(ELU<double>(2), "ELU", elu(x, 2));
  same(CELU<double>(), "CELU", celu(x));
  same(CELU<double>(2), "CELU", celu(x, 2));
  same(SELU<double>(), "SELU", selu(x));
  same(GELU<double>(), "GELU", gelu(x));
  same(GELU<double>(Gelu::tanh), "GELU", gelu(x, Gelu::tanh));
  same(SiLU<double>(), "SiLU", silu(x));
  same(Mish<double>(), "Mish", mish(x));
  same(Tanh<double>(), "Tanh", tanh(x));
  same(Sigmoid<double>(), "Sigmoid", sigmoid(x));
  same(LogSigmoid<double>(), "LogSigmoid", log_sigmoid(x));
  same(Softplus<double>(), "Softplus", softplus(x));
  same(Softplus<double>(2, 1), "Softplus", softplus(x, 2, 1));
  same(Softsign<double>(), "Softsign", softsign(x));
  same(Hardtanh<double>(), "Hardtanh", hardtanh(x));
  same(Hardtanh<double>(-2, 3), "Hardtanh", hardtanh(x, -2, 3));
  same(Hardsigmoid<double>(), "Hardsigmoid", hardsigmoid(x));
  same(Hardswish<double>(), "Hardswish", hardswish(x));
  same(Tanhshrink<double>(), "Tanhshrink", tanhshrink(x));
  same(Softshrink<double>(), "Softshrink", softshrink(x));
  same(Softshrink<double>(1), "Softshrink", softshrink(x, 1));
  same(Hardshrink<double>(), "Hardshrink", hardshrink(x));
  same(Hardshrink<double>(1), "Hardshrink", hardshrink(x, 1));
  same(Threshold<double>(1, -3), "Threshold", threshold(x, 1, -3));
  same(GLU<double>(), "GLU", glu(x));
  same(Softmax<double>(), "Softmax", softmax(x));
  same(LogSoftmax<double>(0), "LogSoftmax", log_softmax(x, 0));
  same(Identity<double>(), "Identity", x);
  same({"Sine", [](const Variable<double>& v) { return sin(v); }}, "Sine", sin(x));
  same({"Erf", xgrad::erf<double>}, "Erf", erf(x));
  same({"Sequential", Sequential<double>(FunctionModule<double>("Erf", xgrad::erf<double>), ReLU<double>())},
       "Sequential", relu(erf(x)));
  EXPECT_EQ(message_of<ValueError>([] { FunctionModule<float>("Nothing", {}); }),
            "Nothing: there must be a function");
  EXPECT_EQ(message_of<ValueError>([&] { Softshrink<double>(-1)(x); }),
            "softshrink: lambda must be at least 0, got -1");
}

/// The weight is that of PyTorch 2.13 after torch.manual_seed(3).
TEST(EmbeddingBagTest, ComputesBagsOfPyTorchsWeight) {
  xgrad::manual_seed(3);
  const xgrad::EmbeddingBag<float> bag(4, 2, {.padding_idx = -1});
  EXPECT_EQ(bag.weight().value(), (Array<float>{{0.8032760620117188F, 0.17483338713645935F},
                                                {0.08897809684276581F, -0.6137180328369141F},
                                                {0.04618244990706444F, -1.3682591915130615F},
                                                {0, 0}}));
  const Ids ids{{0, 1}, {2, 3}}, flat{0, 1, 2}, offsets{0, 2};
  EXPECT_EQ(bag(ids).value(), embedding_bag(ids, bag.weight(), {.padding_idx = 3}).value());
  EXPECT_EQ(bag(flat, offsets).value(), embedding_bag(flat, bag.weight(), {.offsets = offsets}).value());
  const xgrad::EmbeddingBag<float> sums(4, 2, {.mode = xgrad::BagMode::sum, .include_last_offset = true});
  const Variable<float> factors(Array<float>{2, 3, -1});
  EXPECT_EQ(sums(flat, Ids{0, 2, 3}, factors).value(),
            embedding_bag(flat, sums.weight(),
                          {.offsets = offsets, .mode = xgrad::BagMode::sum, .per_sample_weights = factors})
                .value());
  EXPECT_EQ(message_of<xgrad::IndexError>([] { xgrad::EmbeddingBag<float>(4, 2, {.padding_idx = 4}); }),
            "EmbeddingBag: padding_idx must be in [-4, 4), got 4");
  EXPECT_EQ(message_of<xgrad::ValueError>([] { xgrad::EmbeddingBag<float>(0, 2); }),
            "EmbeddingBag: vocabulary must be at least 1, got 0");
}

}  // namespace sequential_test
