#pragma once

// What programs that compare processes of libraries share: asking for times, and how other libraries are run.

#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "configs.hpp"
#include "process.hpp"
#include "protocol.hpp"
#include "temporary_file.hpp"

namespace bench {

/// Asks for batches of calls of a task, after so many ms of it.
inline Times run(Process& process, const std::string& task, std::size_t calls, std::size_t batches,
                 double warm_up) {
  const Times times =
      process.ask<Times>({{"do", task}, {"calls", calls}, {"batches", batches}, {"warm_up", warm_up}});
  const auto are_times = [=](const std::vector<double>& some) {
    return some.size() == batches && std::ranges::all_of(some, [](double time) { return time >= 0; });
  };
  if (!are_times(times.wall) || !are_times(times.cpu)) {
    process.fail("answered " + std::to_string(batches) + " batches of " + task + " with " +
                 nlohmann::json(times).dump());
  }
  return times;
}

inline void append(Times& all, const Times& more) {
  all.wall.insert(all.wall.end(), more.wall.begin(), more.wall.end());
  all.cpu.insert(all.cpu.end(), more.cpu.begin(), more.cpu.end());
}

/// Threads of OpenBLAS, of either kind, and of OpenMP.
inline Environment limited_to(std::size_t threads) {
  const std::string count = std::to_string(threads);
  return {{"OMP_NUM_THREADS", count}, {"OPENBLAS_NUM_THREADS", count}};
}

/// One thread's share of the machine: the product of two 512 x 512 matrices.
class Sgemm {
 public:
  Sgemm() : process_("sgemm", {XGRAD_BENCH_ENCODERS "/bench_encoder_xgrad"}, limited_to(1)) {
    process_.ask({{"do", "start sgemm"}, {"n", n}});
  }

  void round() { append(times_, run(process_, "sgemm", 1, 10, warm_up)); }
  double gflops() const { return 2e-6 * n * n * n / median(times_.cpu); }

 private:
  static constexpr std::size_t n = 512;
  static constexpr double warm_up = 2;  // ms

  Process process_;
  Times times_;
};

/// Why LibTorch cannot be run; empty if it can.
inline std::string missing_libtorch([[maybe_unused]] const std::string& name) {
#ifdef XGRAD_BENCH_LIBTORCH
  return "";
#else
  return name +
         " needs LibTorch, which was not there when this was built (libtorch-dev or pip's torch, and g++)";
#endif
}

/// Whether a line of Python runs, in a folder where nothing is imported by mistake.
inline bool runs_in_python(const std::string& line) {
  return std::system(("cd / && python3 -c '" + line + "' >/dev/null 2>&1").c_str()) == 0;
}

/// Why PyTorch cannot be run; empty if it can.
inline std::string missing_pytorch(const std::string& name) {
  const bool found = runs_in_python(
      "from importlib.metadata import version; assert int(version(\"torch\").split(\".\")[0]) >= 2");
  return found ? "" : name + " needs PyTorch 2, which python3 does not find (pip install torch)";
}

/// Why ONNX Runtime cannot be run; empty if it can.
inline std::string missing_onnxruntime(const std::string& name) {
  const bool found = runs_in_python("import onnx.helper, onnxruntime");
  return found ? ""
               : name + " needs ONNX Runtime, which python3 does not find (pip install onnx onnxruntime)";
}

/// The name that the kernel gives the processor.
inline std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown processor";
}

#ifdef XGRAD_BENCHMARKS
/// Of the process that runs a Python program of the benchmarks.
inline std::vector<std::string> python_command(const std::string& program) {
  return {"python3", XGRAD_BENCHMARKS "/" + program};
}
#endif

/// The environment of a process that runs Python, which writes into the build alone.
inline Environment python_environment(std::size_t threads) {
  Environment environment = limited_to(threads);
  environment["PYTHONDONTWRITEBYTECODE"] = "1";
  environment["TORCHINDUCTOR_CACHE_DIR"] = XGRAD_BENCH_ENCODERS "/torchinductor";
  environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1";  // no more processes than are measured
  return environment;
}

/// What makes LibTorch fastest here: the widest instructions it has, memory that is never given back, and,
/// for Debian's, a BLAS that shares its threads.
inline Environment tuned(std::size_t threads) {
  Environment environment{{"MALLOC_MMAP_THRESHOLD_", "4294967296"},
                          {"MALLOC_TRIM_THRESHOLD_", "8589934592"},
                          {"MALLOC_TOP_PAD_", "67108864"}};
#ifdef __x86_64__
  environment["ATEN_CPU_CAPABILITY"] = __builtin_cpu_supports("avx512f") ? "avx512" : "avx2";
#endif
  if (threads > 1) {
    environment["OMP_PROC_BIND"] = "true";
    const std::string openmp_blas = "/usr/lib/x86_64-linux-gnu/openblas-openmp";
    const char* const path = getenv("LD_LIBRARY_PATH");
    if (std::filesystem::exists(openmp_blas)) {
      environment["LD_LIBRARY_PATH"] = path ? openmp_blas + ":" + path : openmp_blas;
    }
  }
  return environment;
}

/// The environment of a process that runs LibTorch: as it comes for "libtorch", tuned for the others.
inline Environment libtorch_environment(const std::string& name, std::size_t threads) {
  Environment environment = limited_to(threads);
  if (name != "libtorch") environment.merge(tuned(threads));
  return environment;
}

}  // namespace bench
