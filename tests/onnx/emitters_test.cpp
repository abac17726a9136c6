// Which ops can be exported.

#include <string>

#include <gtest/gtest.h>

#include <xgrad/onnx/detail/emitters.hpp>

#include "../ops/common/op_lists.hpp"

namespace emitters_test {

namespace op_lists = xgrad_tests::op_lists;

TEST(EmittersTest, OpsHaveOneOrAReason) {
  op_lists::Names have;
  for (const std::string& op : op_lists::described())
    if (xgrad::onnx::detail::has_emitter(op)) have.insert(op);
  op_lists::expect_all_but(
      have,
      {{"a part of training, which no exported model has",
        {"binary_cross_entropy", "checkpoint", "cross_entropy", "ctc_loss", "dropout", "huber", "on_gradient",
         "squared_difference"}},
       {"ONNX has an operator for few of them", op_lists::linear_algebra},
       {"it calls a function of the program", {"implicit_function"}},
       {"ONNX has the gates of its operators in another order", {"gru", "lstm", "rnn"}},
       {"models with 8-bit weights are exported from their float folders",
        {"int8_linear", "int8_self_attention"}},
       {"ONNX has no operator for it",
        {"atan2", "cdist", "digamma", "erfc", "erfinv", "exp2", "expm1", "hypot", "lgamma", "log10", "log1p",
         "log2", "logaddexp", "logcumsumexp", "polygamma", "trunc", "xlogy"}},
       {"no encoder that is exported calls it",
        {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "avg_pool1d", "avg_pool2d", "batch_norm", "conv1d",
         "conv2d", "conv_transpose1d", "conv_transpose2d", "fold", "interpolate", "unfold"}},
       {"no model of the library calls it", {"acos",        "acosh",          "asin",       "asinh",
                                             "atan",        "atanh",          "celu",       "cosh",
                                             "cumprod",     "cumsum",         "diag_embed", "diagonal",
                                             "elu",         "flip",           "fmod",       "gather",
                                             "hardsigmoid", "hardswish",      "hardtanh",   "index",
                                             "index_add",   "index_put",      "leaky_relu", "log_sigmoid",
                                             "logsumexp",   "mish",           "norm",       "pad",
                                             "prod",        "remainder",      "repeat",     "roll",
                                             "scatter_add", "scatter_reduce", "selu",       "sinh",
                                             "softplus",    "softsign",       "std",        "sum_to",
                                             "tan",         "tril",           "triu",       "var"}}},
      "emitter");
}

}  // namespace emitters_test
