// Training steps and forward passes of the toy encoder at two sizes, in CPU time, beside sgemm
#include <benchmark/benchmark.h>

#include <xgrad/ops/kernels/gemm.hpp>
#include <xgrad/xgrad.hpp>

#include "../examples/program.hpp"

using xgrad::Ids, xgrad::Variable;

namespace {

struct Size {
  std::size_t vocab, seq, batch, d_model, heads, d_ff, layers, classes;
};

constexpr Size notebook{6, 8, 1, 4, 2, 8, 1, 2};
constexpr Size medium{1000, 64, 16, 256, 4, 1024, 4, 10};

/// Token and position embedding, post-norm blocks with a padding mask, mean over the sequence, a linear head.
struct Work {
  explicit Work(const Size& size)
      : model({.vocab_size = size.vocab,
               .max_len = size.seq,
               .classes = size.classes,
               .encoder =
                   {.d_model = size.d_model, .heads = size.heads, .d_ff = size.d_ff, .layers = size.layers},
               .pad_id = 0}),
        optimizer(model.parameters(), {.lr = 1e-3}),
        ids(xgrad::randint(1, static_cast<std::int64_t>(size.vocab), {size.batch, size.seq})),
        labels(xgrad::randint(0, static_cast<std::int64_t>(size.classes), {size.batch})) {}

  void step() {
    optimizer.zero_grad();
    cross_entropy(model.class_logits(ids), labels).backward();
    optimizer.step();
  }

  xgrad::ToyEncoder<float> model;
  xgrad::Adam<float> optimizer;
  Ids ids, labels;
};

void training_step(benchmark::State& state, const Size& size) {
  Work work(size);
  for (auto _ : state) work.step();
}

void forward(benchmark::State& state, const Size& size) {
  Work work(size);
  const xgrad::NoGrad guard;
  for (auto _ : state) benchmark::DoNotOptimize(work.model.class_logits(work.ids));
}

/// One thread's share of the machine: the product of two 512 x 512 matrices, which bounds the medium size.
void sgemm(benchmark::State& state) {
  constexpr std::size_t n = 512;
  const xgrad::Array<float> a = xgrad::uniform<float>({n, n}), b = xgrad::uniform<float>({n, n});
  xgrad::Array<float> c = xgrad::Array<float>::from_shape({n, n});
  for (auto _ : state) {
    xgrad::kernels::gemm<float>(false, false, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n);
  }
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * n * n * n, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

BENCHMARK(sgemm)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(training_step, notebook, notebook)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(forward, notebook, notebook)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(training_step, medium, medium)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(forward, medium, medium)->Unit(benchmark::kMillisecond);

int main(int argc, char** argv) {
  xgrad::manual_seed(0);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  return examples::run_program("bench_encoder", [] {
    benchmark::AddCustomContext("openblas_core", xgrad::kernels::blas_core_name());
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  });
}
