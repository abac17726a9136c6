#pragma once

// What the training programs have in common: their options, the step of training and their metrics file.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <xgrad/xgrad.hpp>

namespace examples {

struct TrainingOptions {
  std::uint64_t seed = 0;
  std::size_t steps, batch, d_model, heads, d_ff, layers;
  double lr;
  std::string metrics = {};
};

/// Adds the options to a program's command line; the values that `options` holds are the defaults.
inline void add_options(CLI::App& app, TrainingOptions& options) {
  const CLI::Range sizes(1, 4096);
  app.add_option("--seed", options.seed, "Seed of the initial weights and the batches")
      ->capture_default_str();
  app.add_option("--steps", options.steps, "Training steps")
      ->check(CLI::Range(1, 100000000))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "Examples in a batch")->check(sizes)->capture_default_str();
  app.add_option("--d-model", options.d_model, "Width of the encoder")->check(sizes)->capture_default_str();
  app.add_option("--heads", options.heads, "Attention heads; they divide the width")
      ->check(sizes)
      ->capture_default_str();
  app.add_option("--d-ff", options.d_ff, "Width of the feed-forward layers")
      ->check(sizes)
      ->capture_default_str();
  app.add_option("--layers", options.layers, "Encoder layers")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--lr", options.lr, "Highest learning rate")
      ->check(CLI::Range(1e-9, 10.0))
      ->capture_default_str();
  app.add_option("--metrics", options.metrics, "Write what was reached to this JSON file");
}

/// One step of training: the gradients of the loss, clipped, and the change of the parameters.
inline xgrad::StepResult update(xgrad::Optimizer<float>& optimizer, const xgrad::Variable<float>& loss,
                                std::size_t tokens) {
  optimizer.zero_grad();
  loss.backward();
  const double norm = clip_grad_norm(optimizer.parameters(), 1.0);
  optimizer.step();
  return {
      .loss = static_cast<double>(loss.item()), .lr = optimizer.lr(), .grad_norm = norm, .tokens = tokens};
}

/// A file that is written beside its name and renamed, so that nothing is lost if writing fails. The file
/// beside is made at once: a path that cannot be written is an error before the training, not after it.
class MetricsFile {
 public:
  /// An empty path: nothing will be written.
  explicit MetricsFile(const std::string& path)
      : path_(path), beside_(path + ".tmp" + std::to_string(::getpid())) {
    if (path_.empty()) return;
    if (std::filesystem::is_directory(path_)) fail("it is a directory");
    file_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file_ < 0) fail(std::strerror(errno));
  }
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  ~MetricsFile() {
    if (file_ < 0) return;
    ::close(file_);
    ::unlink(beside_.c_str());
  }

  void write(const nlohmann::json& metrics) {
    if (file_ < 0) return;
    const std::string text = metrics.dump(2) + "\n";
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t written = ::write(file_, text.data() + done, text.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(std::strerror(errno));
      done += static_cast<std::size_t>(written);
    }
    if (::fsync(file_) != 0 || ::rename(beside_.c_str(), path_.c_str()) != 0) fail(std::strerror(errno));
    ::close(file_);
    file_ = -1;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error("--metrics: cannot write '" + path_ + "': " + why);
  }

  std::string path_, beside_;
  int file_ = -1;
};

/// Runs a program's body; an exception becomes one line on stderr and exit code 1.
template <class Body>
int run_program(const char* name, Body&& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace examples
