#pragma once

// What --report asks a training for.

#include <cstddef>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <xgrad/report.hpp>
#include <xgrad/xgrad.hpp>

#include "program.hpp"
#include "training_options.hpp"

namespace apps {

/// The page of a training; without the option nothing is done.
class RunReport {
 public:
  /// Throws xgrad::FileError if the file cannot be written.
  RunReport(const RunOptions& options, const xgrad::Module<float>& model) : options_(options), model_(model) {
    if (options.report.empty()) return;
    check_writable(options.report);
    report_.emplace(options.program + ", seed " + std::to_string(options.seed));
  }

  bool is_asked_for() const { return report_.has_value(); }

  /// Shows an example: loss() computes its loss, and show() adds more at a step, such as predictions.
  void show(xgrad::ReportExample example, std::function<xgrad::Variable<float>()> loss,
            std::function<void(xgrad::ReportStep&)> show) {
    if (report_) example_ = {std::move(example), std::move(loss), std::move(show)};
  }

  void resumed_after(std::size_t steps) {
    note("The run was resumed after step " + std::to_string(steps) + "; what came before is not shown.");
  }

  /// Looks at the model.
  void observe(std::size_t done) {
    xgrad::ReportStep step = report_->step(done);
    step.parameters(model_);
    if (!example_) return;
    step.observe(example_->example, model_, example_->loss);
    const xgrad::EvalMode eval(model_);
    const xgrad::NoGrad no_grad;
    if (example_->show) example_->show(step);
  }

  /// Looks at the step after that.
  void observe_step(std::size_t done) { report_->step(done).next_step(model_); }

  void add(std::size_t step, const xgrad::StepResult& result) {
    if (!report_) return;
    ++steps_;
    report_->point("loss", step, result.loss);
    if (result.lr) report_->point("learning rate", step, *result.lr);
    if (result.grad_norm) report_->point("gradient norm", step, *result.grad_norm);
  }

  /// Measures what the example takes.
  void profile() {
    if (!report_ || !example_) return;
    const xgrad::EvalMode eval(model_);
    report_->profile(
        xgrad::profile([this] { grad(example_->loss(), model_.parameters(), {.allow_unused = true}); }));
  }

  void note(const std::string& text) {
    if (report_) report_->note(text);
  }

  /// Writes the file, if there was a step: a run that had ended before keeps its page. What is wrong is said
  /// on stderr, for it must not cost what the training has learned; false if there was something.
  bool write(const xgrad::Metadata& options, std::optional<double> seconds) {
    if (!report_ || steps_ == 0) return true;
    report_->describe({.program = options_.program,
                       .options = options,
                       .seed = options_.seed,
                       .parameter_count = model_.parameter_count(),
                       .seconds = seconds});
    try {
      report_->write(options_.report);
    } catch (const xgrad::FileError& error) {
      std::fprintf(stderr, "%s: the report is lost: %s\n", options_.program.c_str(), error.what());
      return false;
    }
    tell_where_it_is(options_.report);
    return true;
  }

 private:
  struct Example {
    xgrad::ReportExample example;
    std::function<xgrad::Variable<float>()> loss;
    std::function<void(xgrad::ReportStep&)> show;
  };

  const RunOptions options_;
  xgrad::Module<float> model_;
  std::optional<xgrad::Report> report_;
  std::optional<Example> example_;
  std::size_t steps_ = 0;
};

}  // namespace apps
