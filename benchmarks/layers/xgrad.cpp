// The convolutional and recurrent models in xgrad, which bench_layers measures.

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <xgrad/base/threads.hpp>
#include <xgrad/kernels/gemm/gemm.hpp>
#include <xgrad/xgrad.hpp>

#include "../encoder/worker.hpp"
#include "protocol.hpp"

using nlohmann::json;
using xgrad::Ids, xgrad::Shape, xgrad::Variable;

namespace {

constexpr std::size_t classes = 10;

/// Logits of a batch of inputs.
class Model : public xgrad::Module<float> {
 public:
  virtual ~Model() = default;
  virtual Variable<float> operator()(const Variable<float>& x) const = 0;
  virtual Shape input() const = 0;
  virtual std::size_t batch() const = 0;

 protected:
  using Module::Module;
};

// [lenet]
/// Of 28 x 28 pixels (LeCun et al. 1998), with rectifiers and maxima.
class LeNet : public Model {
 public:
  LeNet()
      : Model("LeNet"),
        conv1_(child("conv1", xgrad::Conv2d<float>(1, 6, 5, {.padding = 2}))),
        conv2_(child("conv2", xgrad::Conv2d<float>(6, 16, 5))),
        fc1_(child("fc1", xgrad::Linear<float>(400, 120))),
        fc2_(child("fc2", xgrad::Linear<float>(120, 84))),
        fc3_(child("fc3", xgrad::Linear<float>(84, classes))) {}

  Variable<float> operator()(const Variable<float>& x) const override {
    const Variable<float> once = max_pool2d(relu(conv1_(x)), 2).values;
    const Variable<float> twice = max_pool2d(relu(conv2_(once)), 2).values;
    return fc3_(relu(fc2_(relu(fc1_(flatten(twice, 1))))));
  }
  Shape input() const override { return {batch(), 1, 28, 28}; }
  std::size_t batch() const override { return 64; }

 private:
  xgrad::Conv2d<float> conv1_, conv2_;
  xgrad::Linear<float> fc1_, fc2_, fc3_;
};
// [lenet]

// [resnet]
/// Two convolutions beside a shortcut (He et al. 2015, arXiv:1512.03385).
class Block : public xgrad::Module<float> {
 public:
  Block(std::size_t in, std::size_t out, xgrad::Int stride)
      : Module("Block"),
        conv1_(child("conv1", xgrad::Conv2d<float>(in, out, 3, {.stride = stride, .padding = 1}, false))),
        bn1_(child("bn1", xgrad::BatchNorm2d<float>(out))),
        conv2_(child("conv2", xgrad::Conv2d<float>(out, out, 3, {.padding = 1}, false))),
        bn2_(child("bn2", xgrad::BatchNorm2d<float>(out))) {
    if (stride == 1) return;
    shortcut_.push_back(child("shortcut", xgrad::Conv2d<float>(in, out, 1, {.stride = stride}, false)));
    shortcut_bn_.push_back(child("shortcut_bn", xgrad::BatchNorm2d<float>(out)));
  }

  Variable<float> operator()(const Variable<float>& x) const {
    const Variable<float> same = shortcut_.empty() ? x : shortcut_bn_[0](shortcut_[0](x));
    return relu(bn2_(conv2_(relu(bn1_(conv1_(x))))) + same);
  }

 private:
  xgrad::Conv2d<float> conv1_;
  xgrad::BatchNorm2d<float> bn1_;
  xgrad::Conv2d<float> conv2_;
  xgrad::BatchNorm2d<float> bn2_;
  std::vector<xgrad::Conv2d<float>> shortcut_;
  std::vector<xgrad::BatchNorm2d<float>> shortcut_bn_;
};

/// Of 32 x 32 pixels: stages of 16, 32 and 64 channels of two blocks each.
class ResNet : public Model {
 public:
  ResNet()
      : Model("ResNet"),
        conv_(child("conv", xgrad::Conv2d<float>(3, 16, 3, {.padding = 1}, false))),
        bn_(child("bn", xgrad::BatchNorm2d<float>(16))),
        blocks_{block(0, 16, 16, 1), block(1, 16, 16, 1), block(2, 16, 32, 2),
                block(3, 32, 32, 1), block(4, 32, 64, 2), block(5, 64, 64, 1)},
        fc_(child("fc", xgrad::Linear<float>(64, classes))) {}

  Variable<float> operator()(const Variable<float>& x) const override {
    Variable<float> y = relu(bn_(conv_(x)));
    for (const Block& block : blocks_) y = block(y);
    return fc_(mean(y, {2, 3}));
  }
  Shape input() const override { return {batch(), 3, 32, 32}; }
  std::size_t batch() const override { return 64; }

 private:
  Block block(std::size_t number, std::size_t in, std::size_t out, xgrad::Int stride) {
    return child("blocks." + std::to_string(number), Block(in, out, stride));
  }

  xgrad::Conv2d<float> conv_;
  xgrad::BatchNorm2d<float> bn_;
  std::vector<Block> blocks_;
  xgrad::Linear<float> fc_;
};
// [resnet]

// [recurrent]
/// One layer, whose last state is classified.
template <class Layer>
class Recurrent : public Model {
 public:
  explicit Recurrent(std::size_t size)
      : Model("Recurrent"),
        size_(size),
        layer_(child("layer", Layer(size, size))),
        fc_(child("fc", xgrad::Linear<float>(size, classes))) {}

  Variable<float> operator()(const Variable<float>& x) const override {
    return fc_(select(layer_(x).h, 0, 0));
  }
  Shape input() const override { return {128, batch(), size_}; }
  std::size_t batch() const override { return 32; }

 private:
  std::size_t size_;
  Layer layer_;
  xgrad::Linear<float> fc_;
};
// [recurrent]

/// Throws std::invalid_argument for an unknown name.
std::unique_ptr<Model> model_of(const std::string& name) {
  if (name == "lenet") return std::make_unique<LeNet>();
  if (name == "resnet") return std::make_unique<ResNet>();
  const std::size_t size = std::stoul(name.substr(name.find('-') + 1));
  if (name.starts_with("lstm-")) return std::make_unique<Recurrent<xgrad::LSTM<float>>>(size);
  if (name.starts_with("gru-")) return std::make_unique<Recurrent<xgrad::GRU<float>>>(size);
  throw std::invalid_argument("there is no model '" + name + "'");
}

class Work {
 public:
  explicit Work(const std::string& name)
      : model_(model_of(name)),
        optimizer_(model_->parameters(), {.lr = 0.01}),
        x_(xgrad::uniform<float>(model_->input())),
        labels_(xgrad::randint(0, classes, {model_->batch()})) {}

  // [step]
  double step() {
    optimizer_.zero_grad();
    const Variable<float> loss = cross_entropy((*model_)(x_), labels_);
    loss.backward();
    optimizer_.step();
    return loss.item();
  }
  // [step]

  bench::TrainedModel description() {
    const double first = step(), second = step();
    return {xgrad::blas_core_name(), model_->parameter_count(), {first, second}};
  }

 private:
  std::unique_ptr<Model> model_;
  xgrad::SGD<float> optimizer_;
  Variable<float> x_;
  Ids labels_;
};

}  // namespace

int main() {
  std::unique_ptr<Work> work;
  return bench::serve([&](const std::string& what, const json& request) -> json {
    if (what == "start") {
      xgrad::set_num_threads(request.at("threads"));
      xgrad::manual_seed(request.at("seed"));
      work = std::make_unique<Work>(request.at("config").get<std::string>());
      return work->description();
    }
    if (what == "step" && work) return bench::timed(request, [&] { work->step(); });
    throw std::invalid_argument("cannot do '" + what + "' now");
  });
}
