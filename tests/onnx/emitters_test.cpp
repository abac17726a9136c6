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
        {"batch_norm", "binary_cross_entropy", "checkpoint", "cross_entropy", "ctc_loss", "dropout", "huber",
         "linear_cross_entropy", "on_gradient", "squared_difference"}},
       {"ONNX has an operator for few of them", op_lists::linear_algebra},
       {"it calls a function of the program", {"implicit_function"}},
       {"models with weights of 8 or 16 bits are exported from their float folders",
        {"bfloat16_linear", "int8_after_attention", "int8_linear", "int8_self_attention"}},
       {"ONNX has no operator for it",
        {"atan2",  "cdist",     "cumprod",      "diag_embed", "diagonal", "digamma", "erfc",
         "erfinv", "exp2",      "expm1",        "hypot",      "lgamma",   "log10",   "log1p",
         "log2",   "logaddexp", "logcumsumexp", "polygamma",  "trunc",    "unfold",  "xlogy"}},
       {"its attributes do not have all that the operator needs", {"scatter_reduce"}},
       {"no model of the library calls it", {"fold", "index_add", "index_put", "sum_to"}}},
      "emitter");
}

}  // namespace emitters_test
