// Convolutional networks beside PyTorch's: names, initial weights and a training run.
#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"

namespace convolutional_models_test {

using xgrad::Array, xgrad::Ids, xgrad::Shape, xgrad::ShapeError, xgrad::ValueError, xgrad::Variable;
using xgrad_tests::message_of;
using Names = std::vector<std::string>;

/// One of each layer that has parameters.
template <class T>
class Net : public xgrad::Module<T> {
 public:
  Net() : xgrad::Module<T>("Net") {}
  Variable<T> operator()(const Variable<T>& images) const {
    const auto scope = this->scope();
    const Variable<T> x = max_pool2d(relu(norm1_(conv1_(images))), 2).values;
    return head_(flatten(adaptive_avg_pool2d(up_(prelu_(norm2_(conv2_(x)))), 1), 1));
  }
  const xgrad::BatchNorm2d<T>& norm() const { return norm1_; }

 private:
  xgrad::Conv2d<T> conv1_ = this->child("conv1", xgrad::Conv2d<T>(1, 4, 3, {.padding = 1}));
  xgrad::BatchNorm2d<T> norm1_ = this->child("norm1", xgrad::BatchNorm2d<T>(4));
  xgrad::Conv2d<T> conv2_ =
      this->child("conv2", xgrad::Conv2d<T>(4, 8, 3, {.stride = 2, .groups = 2}, false));
  xgrad::GroupNorm<T> norm2_ = this->child("norm2", xgrad::GroupNorm<T>(2, 8));
  xgrad::PReLU<T> prelu_ = this->child("prelu", xgrad::PReLU<T>(8));
  xgrad::ConvTranspose2d<T> up_ = this->child("up", xgrad::ConvTranspose2d<T>(8, 4, 2, {.stride = 2}));
  xgrad::Linear<T> head_ = this->child("head", xgrad::Linear<T>(4, 3));
};

Array<float> waves() {
  Array<float> x = Array<float>::from_shape({8, 1, 10, 10});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto number = static_cast<double>(i);
    x.data()[i] = static_cast<float>(std::sin(number * number * 0.37));
  }
  return x;
}

TEST(ConvolutionalModelsTest, NamesAndInitialWeightsAreThoseOfPyTorch) {
  xgrad::manual_seed(5);
  const Net<float> net;
  const xgrad::StateDict<float> state = net.state_dict();
  Names names;
  for (const auto& [name, parameter] : net.named_parameters())
    names.push_back(name + " " + xgrad::to_string(parameter.shape()));
  EXPECT_EQ(names,
            (Names{"conv1.weight (4, 1, 3, 3)", "conv1.bias (4)", "norm1.weight (4)", "norm1.bias (4)",
                   "conv2.weight (8, 2, 3, 3)", "norm2.weight (8)", "norm2.bias (8)", "prelu.weight (8)",
                   "up.weight (8, 4, 2, 2)", "up.bias (4)", "head.weight (3, 4)", "head.bias (3)"}));
  Names buffers;
  for (const auto& [name, buffer] : net.named_buffers()) buffers.push_back(name);
  EXPECT_EQ(buffers, (Names{"norm1.running_mean", "norm1.running_var", "norm1.num_batches_tracked"}));
  const auto first = [&](const char* name) { return state.at(name).data()[0]; };
  EXPECT_EQ(first("conv1.weight"), 0.22016791999340057f);
  EXPECT_EQ(first("conv1.bias"), 0.31313616037368774f);
  EXPECT_EQ(first("conv2.weight"), 0.03859611600637436f);
  EXPECT_EQ(first("up.weight"), -0.02260226011276245f);
  EXPECT_EQ(first("up.bias"), 0.2346479594707489f);
  EXPECT_EQ(first("head.weight"), -0.13419395685195923f);
  EXPECT_EQ(first("prelu.weight"), 0.25f);
}

/// Made by PyTorch 2.13 from the same seed.
TEST(ConvolutionalModelsTest, TrainingFollowsPyTorch) {
  xgrad::manual_seed(5);
  const Net<float> net;
  xgrad::SGD<float> optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  const Variable<float> images(waves());
  const Ids labels{0, 1, 2, 0, 1, 2, 0, 1};
  for (const double expected :
       {1.197361, 1.18711, 1.169601, 1.148568, 1.127311, 1.108155, 1.092503, 1.08103, 1.073692, 1.069936}) {
    optimizer.zero_grad();
    const Variable<float> loss = cross_entropy(net(images), labels);
    EXPECT_NEAR(loss.item(), expected, 5e-6);
    loss.backward();
    optimizer.step();
  }
  const Array<float> mean{0.19967687f, -0.19506133f, -0.02366409f, 0.21847820f},
      variance{0.50528741f, 0.45002611f, 0.49061960f, 0.43206269f};
  EXPECT_TRUE(xt::allclose(net.norm().running_mean().value(), mean, 1e-5, 1e-5));
  EXPECT_TRUE(xt::allclose(net.norm().running_var().value(), variance, 1e-5, 1e-5));
  EXPECT_EQ(net.state_dict().at("norm1.num_batches_tracked")(), 10);
  net.eval();
  const Array<float> of_eval{{0.27432901f, 0.25520277f, -0.52485853f},
                             {0.27727381f, 0.22455879f, -0.44393486f}};
  EXPECT_TRUE(xt::allclose(narrow(net(images), 0, 0, 2).value(), of_eval, 1e-4, 1e-4));
  EXPECT_EQ(net.state_dict().at("norm1.num_batches_tracked")(), 10);
}

TEST(ConvolutionalModelsTest, ModulesComputeTheirOps) {
  xgrad::manual_seed(1);
  const Variable<double> line(xgrad::normal<double>({2, 4, 6})), image(xgrad::normal<double>({2, 4, 6, 5}));
  const xgrad::Conv1d<double> conv(4, 6, 3, {.padding = xgrad::ConvPadding::same, .groups = 2});
  EXPECT_EQ(conv(line).value(),
            conv1d(line, conv.weight(), conv.bias(), {.padding = 1, .groups = 2}).value());
  const xgrad::ConvTranspose1d<double> up(4, 6, 3, {.stride = 2, .groups = 2}, false);
  EXPECT_EQ(up.weight().shape(), (Shape{4, 3, 3}));
  EXPECT_EQ(up(line).value(), conv_transpose1d(line, up.weight(), {}, {.stride = 2, .groups = 2}).value());
  EXPECT_EQ(xgrad::MaxPool1d<double>(2)(line).value(), max_pool1d(line, 2).values.value());
  EXPECT_EQ(xgrad::MaxPool2d<double>({2, 1})(image).value(), max_pool2d(image, {2, 1}).values.value());
  EXPECT_EQ(xgrad::AvgPool1d<double>(2)(line).value(), avg_pool1d(line, 2).value());
  EXPECT_EQ(xgrad::AvgPool2d<double>(2, {.stride = 1})(image).value(),
            avg_pool2d(image, 2, {.stride = 1}).value());
  EXPECT_EQ(xgrad::AdaptiveAvgPool1d<double>(3)(line).value(), adaptive_avg_pool1d(line, 3).value());
  EXPECT_EQ(xgrad::AdaptiveAvgPool2d<double>({2, 3})(image).value(),
            adaptive_avg_pool2d(image, {2, 3}).value());
  EXPECT_EQ(xgrad::AdaptiveMaxPool1d<double>(3)(line).value(), adaptive_max_pool1d(line, 3).values.value());
  EXPECT_EQ(xgrad::AdaptiveMaxPool2d<double>({2, 3})(image).value(),
            adaptive_max_pool2d(image, {2, 3}).values.value());
  EXPECT_EQ(xgrad::InstanceNorm1d<double>(4)(line).value(), instance_norm(line).value());
  EXPECT_EQ(xgrad::InstanceNorm2d<double>(4)(image).value(), instance_norm(image).value());
  EXPECT_EQ(xgrad::Flatten<double>()(image).shape(), (Shape{2, 120}));
  EXPECT_EQ(xgrad::Upsample<double>({2, 3})(image).value(), interpolate(image, {12, 15}).value());
}

TEST(ConvolutionalModelsTest, EvaluationUsesRunningStatistics) {
  const Variable<double> batch(Array<double>{{1, 2}, {3, 6}});
  const xgrad::BatchNorm1d<double> norm(2, {.eps = 0, .momentum = 1});
  norm(batch);
  EXPECT_EQ(norm.running_mean().value(), (Array<double>{2, 4}));
  EXPECT_EQ(norm.running_var().value(), (Array<double>{2, 8}));
  norm.eval();
  EXPECT_TRUE(xt::allclose(norm(Variable<double>(Array<double>{{2, 8}})).value(),
                           Array<double>{{0, std::sqrt(2.0)}}, 1e-14, 1e-14));
  const xgrad::BatchNorm1d<double> untracked(2, {.track_running_stats = false});
  const Array<double> trained = untracked(batch).value();
  untracked.eval();
  EXPECT_EQ(untracked(batch).value(), trained);
  EXPECT_TRUE(untracked.named_buffers().empty());
}

TEST(ConvolutionalModelsTest, BadArgumentsAreRefused) {
  EXPECT_EQ(message_of<ValueError>([] { xgrad::Conv2d<float>(0, 4, 3); }),
            "Conv2d: in_channels must be at least 1, got 0");
  EXPECT_EQ(message_of<ValueError>([] { xgrad::ConvTranspose1d<float>(4, 0, 3); }),
            "ConvTranspose1d: out_channels must be at least 1, got 0");
  EXPECT_EQ(message_of<ValueError>([] { xgrad::Conv1d<float>(4, 6, 3, {.groups = 4}); }),
            "Conv1d: groups must be at least 1 and divide the channels, got 4");
  EXPECT_EQ(message_of<ValueError>([] {
              xgrad::Conv2d<float>(4, 6, {3, 0});
            }),
            "Conv2d: kernel_size must be one number or 2, at least 1 and at most 2147483647, got (3, 0)");
  EXPECT_EQ(message_of<ValueError>([] { xgrad::BatchNorm1d<float>(2, {.momentum = 2}); }),
            "BatchNorm1d: momentum must be in [0, 1], got 2");
  EXPECT_EQ(message_of<ValueError>([] { xgrad::GroupNorm<float>(3, 4); }),
            "GroupNorm: num_groups must divide num_channels, got 3 and 4");
  EXPECT_EQ(message_of<ShapeError>([] {
              xgrad::BatchNorm2d<float>(2)(Variable<float>(Array<float>(Shape{1, 2, 3}, 0.0f)));
            }),
            "BatchNorm2d: x must have 4 axes, got (1, 2, 3)");
  EXPECT_EQ(message_of<ValueError>([] { xgrad::PReLU<float>(0); }),
            "PReLU: num_parameters must be at least 1, got 0");
  EXPECT_EQ(message_of<ValueError>([] {
              xgrad::Upsample<float>({2, 0});
            }),
            "Upsample: scale_factor must be at least 1, got 0");
}

}  // namespace convolutional_models_test
