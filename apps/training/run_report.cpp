#include "run_report.hpp"

#include <cstdio>
#include <utility>

#include <xgrad/xgrad.hpp>

#include "../common/program.hpp"

namespace apps {

RunReport::RunReport(const RunOptions& options, const xgrad::Module<float>& model)
    : options_(options), model_(model) {
  if (options.report.empty()) return;
  check_writable(options.report);
  report_.emplace(options.program + ", seed " + std::to_string(options.seed));
}

void RunReport::show(xgrad::ReportExample example, std::function<xgrad::Variable<float>()> loss,
                     std::function<void(xgrad::ReportStep&)> show) {
  if (report_) example_ = {std::move(example), std::move(loss), std::move(show)};
}

void RunReport::resumed_after(std::size_t steps) {
  note("The run was resumed after step " + std::to_string(steps) + "; earlier steps are not shown.");
}

void RunReport::observe(std::size_t done) {
  xgrad::ReportStep step = report_->step(done);
  step.parameters(model_);
  if (!example_) return;
  step.observe(example_->example, model_, example_->loss);
  const xgrad::EvalMode eval(model_);
  const xgrad::NoGrad no_grad;
  if (example_->show) example_->show(step);
}

void RunReport::observe_step(std::size_t done) { report_->step(done).next_step(model_); }

void RunReport::add(std::size_t step, const xgrad::StepResult& result) {
  if (!report_) return;
  ++steps_;
  report_->point("loss", step, result.loss);
  if (result.lr) report_->point("learning rate", step, *result.lr);
  if (result.grad_norm) report_->point("gradient norm", step, *result.grad_norm);
}

void RunReport::profile() {
  if (!report_ || !example_) return;
  const xgrad::EvalMode eval(model_);
  std::vector<xgrad::Variable<float>> trained = model_.parameters();
  std::erase_if(trained, [](const auto& parameter) { return !parameter.requires_grad(); });
  report_->profile(xgrad::profile([&] { return grad(example_->loss(), trained, {.allow_unused = true}); }));
}

void RunReport::note(const std::string& text) {
  if (report_) report_->note(text);
}

bool RunReport::write(const xgrad::Metadata& options, std::optional<double> seconds) {
  if (!report_ || steps_ == 0) return true;
  report_->describe({.program = options_.program,
                     .options = options,
                     .seed = options_.seed,
                     .parameter_count = model_.parameter_count(),
                     .seconds = seconds});
  try {
    report_->write(options_.report);
  } catch (const xgrad::FileError& error) {
    std::fprintf(stderr, "%s: the report was not written: %s\n", options_.program.c_str(), error.what());
    return false;
  }
  tell_where_it_is(options_.report);
  return true;
}

}  // namespace apps
