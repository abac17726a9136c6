#pragma once

// What --report asks a training for.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include <xgrad/files/safetensors.hpp>
#include <xgrad/report/report.hpp>
#include <xgrad/train/trainer.hpp>

#include "training_options.hpp"

namespace apps {

/// The page of a training; without the option nothing is done.
class RunReport {
 public:
  /// Throws xgrad::FileError if the file cannot be written.
  RunReport(const RunOptions& options, const xgrad::Module<float>& model);

  bool is_asked_for() const { return report_.has_value(); }

  /// Shows an example: loss() computes its loss, and show() adds more at a step, such as predictions.
  void show(xgrad::ReportExample example, std::function<xgrad::Variable<float>()> loss,
            std::function<void(xgrad::ReportStep&)> show);

  void resumed_after(std::size_t steps);

  /// Looks at the model.
  void observe(std::size_t done);

  /// Looks at the step after that.
  void observe_step(std::size_t done);

  void add(std::size_t step, const xgrad::StepResult& result);

  /// Measures what the example takes.
  void profile();

  void note(const std::string& text);

  /// Writes the file, if there was a step: a run that had ended before keeps its page. What is wrong is said
  /// on stderr, for it must not cost what the training has learned; false if there was something.
  bool write(const xgrad::Metadata& options, std::optional<double> seconds);

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
