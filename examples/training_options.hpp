#pragma once

// What the training programs have in common: their options, the step of training and their metrics file.

#include <cstdint>
#include <iostream>
#include <optional>
#include <span>
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

/// A linear warm-up, then half a cosine wave down to 0.
inline xgrad::SequentialLR<float> warmup_and_cosine(xgrad::Optimizer<float>& optimizer, std::size_t warmup,
                                                    std::size_t steps) {
  const std::size_t rise = std::max<std::size_t>(warmup, 1), fall = steps > rise ? steps - rise : 1;
  return {optimizer,
          {xgrad::LinearLR<float>(optimizer,
                                  {.start_factor = 1 / static_cast<double>(rise), .total_iters = rise}),
           xgrad::CosineAnnealingLR<float>(optimizer, fall)},
          {rise}};
}

/// One step of training: the gradients of the loss, clipped, the change of the parameters and of the
/// learning rate.
inline xgrad::StepResult update(xgrad::Optimizer<float>& optimizer, xgrad::LRScheduler<float>& scheduler,
                                const xgrad::Variable<float>& loss, std::size_t tokens) {
  optimizer.zero_grad();
  loss.backward();
  const double norm = clip_grad_norm(optimizer.parameters(), 1.0);
  optimizer.step();
  const double lr = optimizer.lr();
  scheduler.step();
  return {.loss = static_cast<double>(loss.item()), .lr = lr, .grad_norm = norm, .tokens = tokens};
}

/// The file of --metrics. It is opened at once: a path that cannot be written is an error before the
/// training, not after it.
class MetricsFile {
 public:
  /// An empty path: nothing will be written.
  explicit MetricsFile(const std::string& path) {
    if (!path.empty()) file_.emplace(path);
  }

  void write(const nlohmann::json& metrics) {
    if (!file_) return;
    const std::string text = metrics.dump(2) + "\n";
    file_->write(std::as_bytes(std::span(text)));
    file_->commit();
  }

 private:
  std::optional<xgrad::AtomicFile> file_;
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
