// Matrix products of an encoder's shapes: as the library computes them, in one call of BLAS, of bfloat16
// numbers
#include <cblas.h>

#include <cstdio>
#include <string>
#include <vector>

#include <xgrad/kernels/gemm/blas_call.hpp>
#include <xgrad/kernels/gemm/gemm.hpp>
#include <xgrad/kernels/gemm/onednn_gemm.hpp>
#include <xgrad/kernels/low_precision/bfloat16.hpp>
#include <xgrad/xgrad.hpp>

#include "../apps/common/command_line.hpp"
#include "../apps/common/program.hpp"
#include "encoder/configs.hpp"
#include "in_turns.hpp"

namespace {

using A = xgrad::kernels::Matrix<const float>;
using C = xgrad::kernels::Matrix<float>;

/// C (m, n) = A B: y = x W^T in a forward pass, dx = dy W and dW = dy^T x in a backward.
struct Product {
  std::string name;
  std::size_t m, n, k;
  bool trans_a, trans_b;
};

std::vector<Product> products_of(const bench::Size& size) {
  const std::size_t tokens = size.batch * size.seq, d = size.d_model, wide = size.d_ff;
  return {{"projection", tokens, d, d, false, true},
          {"its dx", tokens, d, d, false, false},
          {"its dW", d, d, tokens, true, false},
          {"d_model to d_ff", tokens, wide, d, false, true},
          {"its dx", tokens, d, wide, false, false},
          {"its dW", wide, d, tokens, true, false},
          {"d_ff to d_model", tokens, d, wide, false, true},
          {"its dx", tokens, wide, d, false, false},
          {"its dW", d, wide, tokens, true, false}};
}

void call_blas(const A& a, const A& b, const C& c) {
  const xgrad::kernels::BlasCall alone;  // on one thread
  const auto order = [](const A& matrix) { return matrix.transposed ? CblasTrans : CblasNoTrans; };
  const auto index = [](std::size_t i) { return static_cast<blasint>(i); };
  cblas_sgemm(CblasRowMajor, order(a), order(b), index(c.rows), index(c.cols), index(a.cols), 1, a.data,
              index(a.stride), b.data, index(b.stride), 0, c.data, index(c.stride));
}

void run(const Product& product, double seconds) {
  const auto [name, m, n, k, trans_a, trans_b] = product;
  const xgrad::Array<float> of_a = xgrad::normal<float>({m, k}), of_b = xgrad::normal<float>({k, n});
  xgrad::Array<float> of_c(xgrad::Shape{m, n});
  const A a(of_a.data(), m, k, trans_a ? m : k, trans_a), b(of_b.data(), k, n, trans_b ? k : n, trans_b);
  const C c(of_c.data(), m, n);
  const auto often = [](const auto& multiply) -> bench::DoSoManyTimes {
    return [=](std::size_t calls) {
      for (; calls > 0; --calls) multiply();
    };
  };
  std::vector<bench::DoSoManyTimes> ways{often([=] { xgrad::kernels::gemm<float>(1, a, b, 0, c); }),
                                         often([=] { call_blas(a, b, c); })};
  if (xgrad::kernels::has_bfloat16_instructions())
    ways.push_back(often([=] { xgrad::kernels::bfloat16_gemm(1, a, b, 0, c); }));
  if (xgrad::kernels::has_onednn())
    ways.push_back(often([=] { xgrad::kernels::onednn_gemm(1, a, b, 0, c); }));
  std::printf("%-16s %5zu %5zu %5zu", name.c_str(), m, n, k);
  for (const double us : bench::measure(ways, seconds))
    std::printf(" %9.1f", 2e-3 * static_cast<double>(m * n * k) / us);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> configs{"small", "medium", "large", "longseq"};
  double seconds = 0.3;
  apps::CommandLine app("Prints GFLOP/s of float matrix products on one thread, in turns.");
  app.add_option("--config", configs, "Sizes of bench_encoder")
      ->check(apps::one_of(bench::config_names()))
      ->capture_default_str();
  app.add_option("--seconds", seconds, "CPU time of each measurement")
      ->check(apps::in_range(1e-4, 100.0))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("bench_products", [&] {
    xgrad::manual_seed(0);
    xgrad::set_num_threads(1);
    std::printf("OpenBLAS core: %s\n", xgrad::blas_core_name());
    for (const std::string& config : configs) {
      std::printf("%-16s %5s %5s %5s %9s %9s", config.c_str(), "m", "n", "k", "xgrad", "one call");
      if (xgrad::kernels::has_bfloat16_instructions()) std::printf(" %9s", "bfloat16");
      if (xgrad::kernels::has_onednn()) std::printf(" %9s", "oneDNN");
      std::printf("\n");
      for (const Product& product : products_of(bench::config_of(config).size)) run(product, seconds);
    }
    return 0;
  });
}
