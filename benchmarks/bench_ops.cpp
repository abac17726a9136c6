// Forward and backward time of every op on one thread, beside LibTorch where it is installed
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <xgrad/xgrad.hpp>

#include "../apps/common/command_line.hpp"
#include "../apps/common/program.hpp"
#include "../tests/ops/common/bench.hpp"
#include "in_turns.hpp"

using bench::Row, bench::Sizes;
using xgrad::Ids, xgrad::Mask;

namespace bench {
namespace {

/// The rows of each header of ops/.
std::map<std::string, std::vector<Row> (*)(const Sizes&)>& headers() {
  static std::map<std::string, std::vector<Row> (*)(const Sizes&)> known;
  return known;
}

}  // namespace

Rows::Rows(std::string header, std::vector<Row> (*rows)(const Sizes&)) { headers()[header] = rows; }

}  // namespace bench

namespace {

std::vector<Row> table(const Sizes& sizes) {
  std::vector<Row> all;
  for (const auto& [header, rows] : bench::headers()) {
    for (Row& row : rows(sizes)) all.push_back(std::move(row));
  }
  return all;
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
                              {"openblas_core", xgrad::blas_core_name()},
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
    std::printf("OpenBLAS core: %s\n", xgrad::blas_core_name());
    if (with_torch) std::printf("LibTorch %s, with at::set_num_threads(1)\n", torch_version);
  }

  for (const std::size_t elements : options.elements) {
    const Sizes sizes(elements);
    const auto columns = static_cast<std::int64_t>(sizes.columns);
    const Ids ids = xgrad::randint(0, columns, {sizes.rows});
    const Ids index = xgrad::randint(0, columns, sizes.matrix);
    const Mask mask = xgrad::bernoulli<float>(sizes.matrix, 0.3) > 0.5f;
    Misses too_slow, above_one_us;
    if (show_table) print_head(elements);
    for (const Row& row : table(sizes)) {
      if (!std::regex_search(row.name, filter)) continue;
      bench::Data data{{}, ids, index, mask};
      for (const bench::Input& input : row.inputs) {
        data.x.push_back(xgrad::uniform<float>(input.shape, input.low, input.high));
      }
      const Times times(bench::measure(row.runs(data), options.seconds));
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
  apps::CommandLine app(
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
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("bench_ops", [&] { return run(options); });
}
