#pragma once

#include "../base/dims.hpp"
#include "../graph/detail/returns_variable.hpp"
#include "../ops/pointwise/elementwise.hpp"
#include "module.hpp"

namespace xgrad {

/// A function as a module without parameters. This is enough to put any function into a Sequential, such as
/// FunctionModule<float>("Erf", erf<float>) or one of your own; ReLU<float>() and the others below are short
/// for those of PyTorch. Throws ValueError for no function.
template <class T>
class FunctionModule : public Module<T> {
 public:
  using Function = detail::VariableFunction<T, const Variable<T>&>;

  /// `type` is the class name for summaries.
  FunctionModule(std::string type, Function function);
  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Function function_;
};

// PyTorch's modules of one function, by their names. What a function refuses, it refuses when it is called.
// https://pytorch.org/docs/stable/nn.html#non-linear-activations-weighted-sum-nonlinearity

/// relu. https://pytorch.org/docs/stable/generated/torch.nn.ReLU.html
template <class T>
FunctionModule<T> ReLU();

/// relu6. https://pytorch.org/docs/stable/generated/torch.nn.ReLU6.html
template <class T>
FunctionModule<T> ReLU6();

/// leaky_relu. https://pytorch.org/docs/stable/generated/torch.nn.LeakyReLU.html
template <class T>
FunctionModule<T> LeakyReLU(double negative_slope = 0.01);

/// elu. https://pytorch.org/docs/stable/generated/torch.nn.ELU.html
template <class T>
FunctionModule<T> ELU(double alpha = 1);

/// celu. https://pytorch.org/docs/stable/generated/torch.nn.CELU.html
template <class T>
FunctionModule<T> CELU(double alpha = 1);

/// selu. https://pytorch.org/docs/stable/generated/torch.nn.SELU.html
template <class T>
FunctionModule<T> SELU();

/// gelu. https://pytorch.org/docs/stable/generated/torch.nn.GELU.html
template <class T>
FunctionModule<T> GELU(Gelu approximate = Gelu::none);

/// silu. https://pytorch.org/docs/stable/generated/torch.nn.SiLU.html
template <class T>
FunctionModule<T> SiLU();

/// mish. https://pytorch.org/docs/stable/generated/torch.nn.Mish.html
template <class T>
FunctionModule<T> Mish();

/// tanh. https://pytorch.org/docs/stable/generated/torch.nn.Tanh.html
template <class T>
FunctionModule<T> Tanh();

/// sigmoid. https://pytorch.org/docs/stable/generated/torch.nn.Sigmoid.html
template <class T>
FunctionModule<T> Sigmoid();

/// log_sigmoid. https://pytorch.org/docs/stable/generated/torch.nn.LogSigmoid.html
template <class T>
FunctionModule<T> LogSigmoid();

/// softplus. https://pytorch.org/docs/stable/generated/torch.nn.Softplus.html
template <class T>
FunctionModule<T> Softplus(double beta = 1, double threshold = 20);

/// softsign. https://pytorch.org/docs/stable/generated/torch.nn.Softsign.html
template <class T>
FunctionModule<T> Softsign();

/// hardtanh. https://pytorch.org/docs/stable/generated/torch.nn.Hardtanh.html
template <class T>
FunctionModule<T> Hardtanh(double min_val = -1, double max_val = 1);

/// hardsigmoid. https://pytorch.org/docs/stable/generated/torch.nn.Hardsigmoid.html
template <class T>
FunctionModule<T> Hardsigmoid();

/// hardswish. https://pytorch.org/docs/stable/generated/torch.nn.Hardswish.html
template <class T>
FunctionModule<T> Hardswish();

/// tanhshrink. https://pytorch.org/docs/stable/generated/torch.nn.Tanhshrink.html
template <class T>
FunctionModule<T> Tanhshrink();

/// softshrink. https://pytorch.org/docs/stable/generated/torch.nn.Softshrink.html
template <class T>
FunctionModule<T> Softshrink(double lambda = 0.5);

/// hardshrink. https://pytorch.org/docs/stable/generated/torch.nn.Hardshrink.html
template <class T>
FunctionModule<T> Hardshrink(double lambda = 0.5);

/// threshold. https://pytorch.org/docs/stable/generated/torch.nn.Threshold.html
template <class T>
FunctionModule<T> Threshold(double threshold, double value);

/// glu. https://pytorch.org/docs/stable/generated/torch.nn.GLU.html
template <class T>
FunctionModule<T> GLU(Int dim = -1);

/// softmax. https://pytorch.org/docs/stable/generated/torch.nn.Softmax.html
template <class T>
FunctionModule<T> Softmax(Int dim = -1);

/// log_softmax. https://pytorch.org/docs/stable/generated/torch.nn.LogSoftmax.html
template <class T>
FunctionModule<T> LogSoftmax(Int dim = -1);

/// x itself. https://pytorch.org/docs/stable/generated/torch.nn.Identity.html
template <class T>
FunctionModule<T> Identity();

}  // namespace xgrad
