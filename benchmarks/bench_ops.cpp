// Forward and backward time of every op on one thread, beside LibTorch where it is installed
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#ifdef XGRAD_BENCH_LIBTORCH
#include <torch/torch.h>
#endif

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <xgrad/kernels/gemm.hpp>
#include <xgrad/xgrad.hpp>

#include "../apps/program.hpp"

using xgrad::Array, xgrad::Ids, xgrad::Mask, xgrad::Shape, xgrad::Variable;

namespace {

/// The shape of an op's input, and the range that its elements are drawn from.
struct Input {
  Shape shape;
  double low = -2, high = 2;
};

Input positive(const Shape& shape) { return {shape, 0.1}; }

/// What an op is measured on, the same in both libraries.
struct Data {
  std::vector<Array<float>> x;
  const Ids& ids;    ///< a column for each row
  const Ids& index;  ///< a column for each element
  const Mask& mask;
};

/// What an op is called with: its inputs, all of which require gradients, indices and a mask.
template <class Tensor, class Indices, class Booleans>
struct Arguments {
  std::vector<Tensor> x;
  Indices ids, index;
  Booleans mask;

  const Tensor& operator[](std::size_t input) const { return x[input]; }
};

struct Xgrad {
  using Tensor = Variable<float>;

  static Arguments<Tensor, Ids, Mask> arguments(const Data& data) {
    Arguments<Tensor, Ids, Mask> made{{}, data.ids, data.index, data.mask};
    for (const Array<float>& x : data.x) made.x.emplace_back(x, true);
    return made;
  }
  static Tensor ones_like(const Tensor& y) { return Tensor(xt::ones<float>(y.shape())); }
  static void backward(const Tensor& y, const std::vector<Tensor>& x, const Tensor& dy) {
    for (const Tensor& leaf : x) leaf.zero_grad();
    y.backward(dy, {.retain_graph = true});
  }
};

#ifdef XGRAD_BENCH_LIBTORCH
struct LibTorch {
  using Tensor = torch::Tensor;

  template <class T>
  static Tensor copy(const Array<T>& from) {
    Tensor to = torch::empty(std::vector<std::int64_t>(from.shape().begin(), from.shape().end()),
                             torch::CppTypeToScalarType<T>::value);
    std::copy_n(from.data(), from.size(), to.template data_ptr<T>());
    return to;
  }
  static Arguments<Tensor, Tensor, Tensor> arguments(const Data& data) {
    Arguments<Tensor, Tensor, Tensor> made{{}, copy(data.ids), copy(data.index), copy(data.mask)};
    for (const Array<float>& x : data.x) made.x.push_back(copy(x).requires_grad_());
    return made;
  }
  static Tensor ones_like(const Tensor& y) { return torch::ones_like(y.detach()); }
  static void backward(const Tensor& y, const std::vector<Tensor>& x, const Tensor& dy) {
    for (const Tensor& leaf : x) leaf.mutable_grad() = Tensor();
    y.backward(dy, /*retain_graph=*/true);
    for (const Tensor& leaf : x) {
      if (leaf.grad().defined() && leaf.grad().is_alias_of(dy)) leaf.mutable_grad() = leaf.grad().clone();
    }
  }
};
#endif

/// Something to measure: does it so many times.
using Run = std::function<void(std::size_t calls)>;

template <class Library, class Op>
void add_runs(const Data& data, Op op, std::vector<Run>& runs) {
  const auto arguments = Library::arguments(data);
  runs.push_back([=](std::size_t calls) {
    for (; calls > 0; --calls) op(arguments);
  });
  const auto y = op(arguments);
  runs.push_back([=, dy = Library::ones_like(y)](std::size_t calls) {
    for (; calls > 0; --calls) Library::backward(y, arguments.x, dy);
  });
}

/// A row of the table: an op that is called the same in both libraries, or one call for each.
struct Row {
  template <class Op>
  Row(std::string op_name, std::vector<Input> op_inputs, Op op)
      : Row(std::move(op_name), std::move(op_inputs), op, op) {}

  template <class Op, class TorchOp>
  Row(std::string op_name, std::vector<Input> op_inputs, Op op, [[maybe_unused]] TorchOp torch_op)
      : name(std::move(op_name)), inputs(std::move(op_inputs)), runs([=](const Data& data) {
          std::vector<Run> all;
          add_runs<Xgrad>(data, op, all);
          all.insert(all.begin(), [forward = all[0]](std::size_t calls) {
            const xgrad::NoGrad guard;
            forward(calls);
          });
#ifdef XGRAD_BENCH_LIBTORCH
          add_runs<LibTorch>(data, torch_op, all);
#endif
          return all;
        }) {
  }

  std::string name;
  std::vector<Input> inputs;
  std::function<std::vector<Run>(const Data&)> runs;  ///< in the order of Times
};

std::size_t integer_root(std::size_t n) {
  return static_cast<std::size_t>(std::sqrt(static_cast<double>(n)) + 1e-9);
}

/// About n elements as a matrix, with rows of at most 1000: 10 x 10, 1000 x 1000.
struct Sizes {
  explicit Sizes(std::size_t n) : columns(std::min<std::size_t>(integer_root(n), 1000)), rows(n / columns) {}

  std::size_t columns, rows;
};

/// The table for n elements. Where LibTorch returns a view, its time includes the copy that xgrad makes; in
/// backward, too, where it would hand a leaf a view of the seed: every leaf gets an array of its own.
std::vector<Row> table(std::size_t n) {
  const auto [columns, rows] = Sizes(n);
  const Shape flat{n}, matrix{rows, columns};

  const std::size_t side = integer_root(n);
  const Shape square_matrix{side, side};

  const std::size_t heads = std::max<std::size_t>(integer_root(columns * 2 / 5), 1), width = columns / heads;
  const Shape split_heads{std::max<std::size_t>(rows / width, 1), width, heads, width};

  const std::size_t key = std::min<std::size_t>(columns, 64), length = std::min<std::size_t>(n / key, 500);
  const Shape queries{n / (length * key), length, key};

  const std::size_t edge = std::min<std::size_t>(columns, 100);
  const Shape squares{n / (edge * edge), edge, edge};

  const auto half = static_cast<std::ptrdiff_t>(columns / 2);
  return {
      {"exp", {{flat}}, [](auto& a) { return exp(a[0]); }},
      {"log", {positive(flat)}, [](auto& a) { return log(a[0]); }},
      {"sqrt", {positive(flat)}, [](auto& a) { return sqrt(a[0]); }},
      {"rsqrt", {positive(flat)}, [](auto& a) { return rsqrt(a[0]); }},
      {"reciprocal", {positive(flat)}, [](auto& a) { return reciprocal(a[0]); }},
      {"square", {{flat}}, [](auto& a) { return square(a[0]); }},
      {"abs", {{flat}}, [](auto& a) { return abs(a[0]); }},
      {"tanh", {{flat}}, [](auto& a) { return tanh(a[0]); }},
      {"sigmoid", {{flat}}, [](auto& a) { return sigmoid(a[0]); }},
      {"erf", {{flat}}, [](auto& a) { return erf(a[0]); }},
      {"relu", {{flat}}, [](auto& a) { return relu(a[0]); }},
      {"silu", {{flat}}, [](auto& a) { return silu(a[0]); }},
      {"softplus", {{flat}}, [](auto& a) { return softplus(a[0]); }},
      {"clamp", {{flat}}, [](auto& a) { return clamp(a[0], -1.0f, 1.0f); }},
      {"gelu none", {{flat}}, [](auto& a) { return gelu(a[0]); }},
      {"gelu tanh",
       {{flat}},
       [](auto& a) { return gelu(a[0], xgrad::Gelu::tanh); },
       [](auto& a) { return gelu(a[0], "tanh"); }},

      {"add", {{flat}, {flat}}, [](auto& a) { return add(a[0], a[1]); }},
      {"sub", {{flat}, {flat}}, [](auto& a) { return sub(a[0], a[1]); }},
      {"mul", {{flat}, {flat}}, [](auto& a) { return mul(a[0], a[1]); }},
      {"div", {{flat}, positive(flat)}, [](auto& a) { return div(a[0], a[1]); }},
      {"pow", {positive(flat), {flat}}, [](auto& a) { return pow(a[0], a[1]); }},
      {"pow 3", {{flat}}, [](auto& a) { return pow(a[0], 3); }},
      {"maximum", {{flat}, {flat}}, [](auto& a) { return maximum(a[0], a[1]); }},
      {"minimum", {{flat}, {flat}}, [](auto& a) { return minimum(a[0], a[1]); }},
      {"where", {{matrix}, {matrix}}, [](auto& a) { return where(a.mask, a[0], a[1]); }},
      {"add a row", {{matrix}, {{columns}}}, [](auto& a) { return add(a[0], a[1]); }},
      {"add a column", {{matrix}, {{rows, 1}}}, [](auto& a) { return add(a[0], a[1]); }},

      {"sum", {{flat}}, [](auto& a) { return sum(a[0]); }},
      {"sum over last axis", {{matrix}}, [](auto& a) { return sum(a[0], {-1}); }},
      {"sum over first axis", {{matrix}}, [](auto& a) { return sum(a[0], {0}); }},
      {"mean", {{flat}}, [](auto& a) { return mean(a[0]); }},

      {"amax over last axis", {{matrix}}, [](auto& a) { return amax(a[0], {-1}); }},
      {"amax over first axis", {{matrix}}, [](auto& a) { return amax(a[0], {0}); }},
      {"amin over last axis", {{matrix}}, [](auto& a) { return amin(a[0], {-1}); }},
      {"amin over first axis", {{matrix}}, [](auto& a) { return amin(a[0], {0}); }},
      {"logsumexp over last axis", {{matrix}}, [](auto& a) { return logsumexp(a[0], {-1}); }},
      {"logsumexp over first axis", {{matrix}}, [](auto& a) { return logsumexp(a[0], {0}); }},
      {"var", {{flat}}, [](auto& a) { return var(a[0]); }},
      {"var over last axis",
       {{matrix}},
       [](auto& a) { return var(a[0], xgrad::Dims{-1}); },
       [](auto& a) { return var(a[0], {-1}, /*unbiased=*/true); }},

      {"softmax", {{matrix}}, [](auto& a) { return softmax(a[0], -1); }},
      {"log_softmax", {{matrix}}, [](auto& a) { return log_softmax(a[0], -1); }},
      {"layer_norm",
       {{matrix}, {{columns}}, {{columns}}},
       [](auto& a) { return layer_norm(a[0], a[1].shape(), a[1], a[2]); },
       [](auto& a) { return layer_norm(a[0], a[1].sizes(), a[1], a[2]); }},

      {"reshape",
       {{flat}},
       [=](auto& a) { return reshape(a[0], matrix); },
       [rows = static_cast<std::int64_t>(rows)](auto& a) {
         return reshape(a[0], {rows, -1}).clone();
       }},
      {"flatten",
       {{matrix}},
       [](auto& a) { return flatten(a[0]); },
       [](auto& a) { return flatten(a[0]).clone(); }},
      {"unsqueeze",
       {{matrix}},
       [](auto& a) { return unsqueeze(a[0], 1); },
       [](auto& a) { return unsqueeze(a[0], 1).clone(); }},
      {"squeeze",
       {{{rows, 1, columns}}},
       [](auto& a) { return squeeze(a[0], 1); },
       [](auto& a) { return squeeze(a[0], 1).clone(); }},
      {"expand a row",
       {{{columns}}},
       [=](auto& a) { return expand(a[0], matrix); },
       [rows = static_cast<std::int64_t>(rows)](auto& a) {
         return a[0].expand({rows, -1}).contiguous();
       }},
      {"expand a column",
       {{{rows, 1}}},
       [=](auto& a) { return expand(a[0], matrix); },
       [columns = static_cast<std::int64_t>(columns)](auto& a) {
         return a[0].expand({-1, columns}).contiguous();
       }},
      {"transpose",
       {{matrix}},
       [](auto& a) { return transpose(a[0], 0, 1); },
       [](auto& a) { return transpose(a[0], 0, 1).contiguous(); }},
      {"permute 0 2 1 3",
       {{split_heads}},
       [](auto& a) {
         return permute(a[0], {0, 2, 1, 3});
       },
       [](auto& a) {
         return permute(a[0], {0, 2, 1, 3}).contiguous();
       }},
      {"permute 3 2 1 0",
       {{split_heads}},
       [](auto& a) {
         return permute(a[0], {3, 2, 1, 0});
       },
       [](auto& a) {
         return permute(a[0], {3, 2, 1, 0}).contiguous();
       }},
      {"cat first axis", {{matrix}, {matrix}}, [](auto& a) { return cat(a.x, 0); }},
      {"cat last axis", {{matrix}, {matrix}}, [](auto& a) { return cat(a.x, -1); }},
      {"stack", {{matrix}, {matrix}}, [](auto& a) { return stack(a.x); }},
      {"split",
       {{matrix}},
       [=](auto& a) { return split(a[0], half, 1).back(); },
       [=](auto& a) {
         auto parts = split(a[0], half, 1);
         for (auto& part : parts) part = part.contiguous();
         return parts.back();
       }},
      {"narrow",
       {{matrix}},
       [=](auto& a) { return narrow(a[0], 1, 1, half); },
       [=](auto& a) { return narrow(a[0], 1, 1, half).contiguous(); }},
      {"slice",
       {{matrix}},
       [=](auto& a) { return slice(a[0], 1, 0, half); },
       [=](auto& a) { return slice(a[0], 1, 0, half).contiguous(); }},
      {"select",
       {{{rows, 2, columns / 2}}},
       [](auto& a) { return select(a[0], 1, 1); },
       [](auto& a) { return select(a[0], 1, 1).contiguous(); }},
      {"index_select first axis",
       {{{columns, columns}}},
       [](auto& a) { return index_select(a[0], 0, a.ids); }},
      {"index_select last axis", {{matrix}}, [](auto& a) { return index_select(a[0], 1, a.ids); }},
      {"gather", {{matrix}}, [](auto& a) { return gather(a[0], 1, a.index); }},
      {"tril", {{matrix}}, [](auto& a) { return tril(a[0]); }},
      {"triu", {{matrix}}, [](auto& a) { return triu(a[0]); }},
      {"masked_fill", {{matrix}}, [](auto& a) { return masked_fill(a[0], a.mask, 0.0f); }},
      {"embedding",
       {{{columns, columns}}},
       [](auto& a) { return embedding(a.ids, a[0]); },
       [](auto& a) { return embedding(a[0], a.ids); }},

      {"matmul", {{square_matrix}, {square_matrix}}, [](auto& a) { return matmul(a[0], a[1]); }},
      {"bmm", {{squares}, {squares}}, [](auto& a) { return bmm(a[0], a[1]); }},
      {"gemm",
       {{square_matrix}, {square_matrix}, {square_matrix}},
       [](auto& a) { return gemm(a[0], a[1], a[2], {.alpha = 0.5}); },
       [](auto& a) { return addmm(a[2], a[0], a[1], /*beta=*/1, /*alpha=*/0.5); }},
      {"linear",
       {{matrix}, {{columns, columns}}, {{columns}}},
       [](auto& a) { return linear(a[0], a[1], a[2]); }},
      {"cross_entropy",
       {{matrix}},
       [](auto& a) { return cross_entropy(a[0], a.ids); },
       [](auto& a) { return cross_entropy_loss(a[0], a.ids); }},
      {"cross_entropy weights, smoothing",
       {{matrix}, positive({columns})},
       [](auto& a) { return cross_entropy(a[0], a.ids, {.weight = a[1].detach(), .label_smoothing = 0.1}); },
       [](auto& a) {
         return cross_entropy_loss(a[0], a.ids, a[1].detach(), /*reduction: mean*/ 1, -100, 0.1);
       }},
      {"cross_entropy probabilities",
       {{matrix}, positive(matrix)},
       [](auto& a) { return cross_entropy(a[0], a[1].detach()); },
       [](auto& a) { return cross_entropy_loss(a[0], a[1].detach()); }},
      {"mse_loss", {{flat}, {flat}}, [](auto& a) { return mse_loss(a[0], a[1]); }},
      {"nll_loss", {{matrix}}, [](auto& a) { return nll_loss(a[0], a.ids); }},
      {"scaled_dot_product_attention",
       {{queries}, {queries}, {queries}},
       [](auto& a) { return scaled_dot_product_attention(a[0], a[1], a[2]); },
       [scale = 1 / std::sqrt(static_cast<double>(key))](auto& a) {
         return matmul(softmax(matmul(a[0] * scale, a[1].transpose(-2, -1)), -1), a[2]);
       }},
      {"scaled_dot_product_attention, dropout 0.1",
       {{queries}, {queries}, {queries}},
       [](auto& a) { return scaled_dot_product_attention(a[0], a[1], a[2], {}, {.dropout_p = 0.1}); },
       [scale = 1 / std::sqrt(static_cast<double>(key))](auto& a) {
         return matmul(dropout(softmax(matmul(a[0] * scale, a[1].transpose(-2, -1)), -1), 0.1, true), a[2]);
       }},
      {"dropout 0.1", {{flat}}, [](auto& a) { return dropout(a[0], 0.1, true); }},
  };
}

/// CPU time of this thread.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const Run& run, std::size_t calls) {
  const double start = now();
  run(calls);
  return now() - start;
}

/// How many calls take so long.
std::size_t calls_in(double seconds, const Run& run) {
  run(1);  // the first call fills the pools
  std::size_t calls = 1;
  double taken = seconds_of(run, calls);
  while (taken < seconds / 8) {
    calls *= 2;
    taken = seconds_of(run, calls);
  }
  return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(calls) * seconds / taken));
}

/// Microseconds per call of each: the median of short batches, which alternate so that all see the same
/// machine.
std::vector<double> measure(const std::vector<Run>& runs, double seconds) {
  constexpr std::size_t rounds = 7;
  std::vector<std::size_t> calls;
  for (const Run& run : runs) calls.push_back(calls_in(seconds / rounds, run));
  std::vector<std::vector<double>> times(runs.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (calls[i] > 1) runs[i](1);  // takes the caches back from the one before
      times[i].push_back(1e6 * seconds_of(runs[i], calls[i]) / static_cast<double>(calls[i]));
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& all : times) {
    std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
    medians.push_back(all[rounds / 2]);
  }
  return medians;
}

#ifdef XGRAD_BENCH_LIBTORCH
constexpr bool with_torch = true;
constexpr const char* torch_version = TORCH_VERSION;
#else
constexpr bool with_torch = false;
constexpr const char* torch_version = "";
#endif

/// Microseconds per call.
struct Times {
  explicit Times(const std::vector<double>& us) : no_grad(us[0]), forward(us[1]), backward(us[2]) {
    if (!with_torch) return;
    torch_forward = us[3];
    torch_backward = us[4];
  }

  double no_grad, forward, backward, torch_forward = 0, torch_backward = 0;
};

nlohmann::ordered_json json_line(const std::string& op, std::size_t elements, const Times& times) {
  nlohmann::ordered_json line{{"op", op},
                              {"elements", elements},
                              {"openblas_core", xgrad::kernels::blas_core_name()},
                              {"no_grad_us", times.no_grad},
                              {"forward_us", times.forward},
                              {"backward_us", times.backward}};
  if (with_torch) {
    line["torch"] = torch_version;
    line["torch_forward_us"] = times.torch_forward;
    line["torch_backward_us"] = times.torch_backward;
  }
  return line;
}

void print_head(std::size_t elements) {
  std::printf("\n%-30s %29s", (std::to_string(elements) + " elements, us per call").c_str(), "xgrad");
  if (with_torch) std::printf(" %20s %20s", "LibTorch", "LibTorch / xgrad");
  std::printf("\n%-30s %9s %9s %9s", "op", "no grad", "forward", "backward");
  if (with_torch) std::printf(" %10s %9s %10s %9s", "forward", "backward", "forward", "backward");
  std::printf("\n");
}

void print_row(const std::string& op, const Times& times) {
  std::printf("%-30s %9.3f %9.3f %9.3f", op.c_str(), times.no_grad, times.forward, times.backward);
  if (with_torch) {
    std::printf(" %10.3f %9.3f %10.2f %9.2f", times.torch_forward, times.torch_backward,
                times.torch_forward / times.forward, times.torch_backward / times.backward);
  }
  std::printf("\n");
  std::fflush(stdout);
}

constexpr double noise = 0.97;  ///< ratios from here to 1 come and go between two runs

/// The ops that miss a target, with what they reach.
class Misses {
 public:
  void add(const std::string& what, double figure) {
    char text[32];
    std::snprintf(text, sizeof text, " %.2f", figure);
    list_ += (list_.empty() ? "" : ", ") + what + text;
  }
  void print(const char* title) const {
    std::printf("%s: %s\n", title, list_.empty() ? "none" : list_.c_str());
  }

 private:
  std::string list_;
};

struct Options {
  std::string filter;
  std::optional<std::string> json;
  std::vector<std::size_t> elements{100, 1000000};
  double seconds = 0.1;
};

int run(const Options& options) {
  const std::regex filter(options.filter);
  const bool show_table = options.json != "-";
  std::ofstream file;
  if (options.json && show_table) {
    file.open(*options.json);
    if (!file) throw std::runtime_error("--json: cannot write '" + *options.json + "'");
  }
  std::ostream& lines = show_table ? file : std::cout;

  xgrad::manual_seed(0);
  xgrad::set_num_threads(1);
#ifdef XGRAD_BENCH_LIBTORCH
  torch::manual_seed(0);
  at::set_num_threads(1);
#endif
  if (show_table) {
    std::printf("OpenBLAS core: %s\n", xgrad::kernels::blas_core_name());
    if (with_torch) std::printf("LibTorch %s, with at::set_num_threads(1)\n", torch_version);
  }

  for (const std::size_t elements : options.elements) {
    const auto [columns, rows] = Sizes(elements);
    const Ids ids = xgrad::randint(0, static_cast<std::int64_t>(columns), {rows});
    const Ids index = xgrad::randint(0, static_cast<std::int64_t>(columns), {rows, columns});
    const Mask mask = xgrad::bernoulli<float>({rows, columns}, 0.3) > 0.5f;
    Misses too_slow, above_one_us;
    if (show_table) print_head(elements);
    for (const Row& row : table(elements)) {
      if (!std::regex_search(row.name, filter)) continue;
      Data data{{}, ids, index, mask};
      for (const Input& input : row.inputs) {
        data.x.push_back(xgrad::uniform<float>(input.shape, input.low, input.high));
      }
      const Times times(measure(row.runs(data), options.seconds));
      if (show_table) print_row(row.name, times);
      if (options.json) lines << json_line(row.name, elements, times) << std::endl;

      if (with_torch && times.torch_forward < noise * times.forward) {
        too_slow.add(row.name + " forward", times.torch_forward / times.forward);
      }
      if (with_torch && times.torch_backward < noise * times.backward) {
        too_slow.add(row.name + " backward", times.torch_backward / times.backward);
      }
      if (times.no_grad > 1) above_one_us.add(row.name + " no grad", times.no_grad);
      if (times.forward > 1) above_one_us.add(row.name + " forward", times.forward);
    }
    if (show_table && with_torch) too_slow.print("slower than LibTorch by over 3 %");
    if (show_table && elements <= 100) above_one_us.print("above 1 us");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Prints the time per call of every op, forward without and with recording, and backward, on one "
      "thread.");
  app.add_option("--filter", options.filter, "Only the ops whose name matches this regular expression");
  app.add_option("--json", options.json,
                 "Write one JSON object per op to this file, or instead of the table to stdout")
      ->expected(0, 1)
      ->default_str("-");
  app.add_option("--elements", options.elements, "Elements of the arrays")
      ->check(apps::in_range<std::size_t>(4, 100000000))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "CPU time of each measurement")
      ->check(apps::in_range(1e-4, 100.0))
      ->capture_default_str();
  if (const std::optional<int> exit_code = apps::parse(app, argc, argv)) return *exit_code;
  return apps::run_program("bench_ops", [&] { return run(options); });
}
