#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../autograd/profile.hpp"
#include "../graph/variable.hpp"
#include "../models/module.hpp"

namespace xgrad {

/// What ran; all of it may be left out.
struct RunDescription {
  std::string program = {};
  std::map<std::string, std::string> options = {};
  std::optional<std::uint64_t> seed = {};
  std::optional<std::size_t> parameter_count = {};
  std::optional<double> seconds = {};
};

/// What a model is shown, the same at each step that is reported.
struct ReportExample {
  std::string text;  ///< its name on the page
  std::vector<std::vector<std::string>>
      tokens;  ///< of each sequence of the batch; fewer than it is long: padding
};

/// What the axes of a tensor are called, and what the rows and columns of the last two stand for.
struct TensorLabels {
  std::vector<std::string> axes = {}, rows = {}, columns = {};
};

/// A label and how probable it is.
using Answer = std::pair<std::string, double>;

class ReportStep;

/// Notes what this thread computes as long as it lives, for programs that are no training runs: ops, and
/// tensors that are to be shown in an order. ReportStep::recorded() puts it into a report.
template <class T>
class Recording {
 public:
  Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

  /// Shows a tensor, with its gradient where the loss depends on it.
  void tensor(const std::string& section, const std::string& name, const Variable<T>& x,
              const TensorLabels& labels = {});
  void tensor(const std::string& section, const std::string& name, const Ids& ids,
              const TensorLabels& labels = {});

 private:
  friend class ReportStep;
  struct Impl;

  std::unique_ptr<Impl> impl_;
};

/// Collects what happens in a training run and writes it into one HTML file that needs no network: curves,
/// attention with its gradients, the graph, histograms of parameters, predictions.
///
///   xgrad::Report report("toy encoder, seed 0");
///   report.point("loss", step, loss);
///   report.step(400).parameters(model).observe(example, model, [&] { return loss_of(example); });
///   report.write("toy.html");
///
/// A report does not change the run: no parameter, gradient, mode or random number. Of what is larger
/// than 8 MB curves are thinned, large values left out, attention weights rounded to 16 bits, then steps and
/// layers left out, as far as it needs, and the page says so. The data has a format of its own,
/// docs/report_format.md.
class Report {
 public:
  explicit Report(std::string title);
  Report(Report&&) noexcept;
  Report& operator=(Report&&) noexcept;
  ~Report();

  /// Adds what the library knows: its version, the compiler's, threads and memory.
  void describe(const RunDescription& run);

  /// A sentence that the page shows at its beginning.
  void note(std::string text);

  /// Adds a point to a curve, such as "loss" or "learning rate". Throws ValueError if its step does not come
  /// after the last one.
  void point(const std::string& curve, std::size_t step, double value);

  /// Adds every series of a metrics file, as fit() writes it (FitOptions::metrics), and what its first line
  /// says of the run; a last line without its end is left out. Throws FileError for another file.
  void log(const std::string& path);

  /// What there is to tell of a number of steps done, a notch of the page's scrub.
  ReportStep step(std::size_t steps_done);

  void profile(const Profile& profile);

  /// The data, as docs/report_format.md has it.
  std::string json() const;

  /// Writes the page, or the data alone if the path ends in ".json", as an AtomicFile. Throws FileError.
  void write(const std::string& path) const;

 private:
  friend class ReportStep;
  struct Impl;

  std::unique_ptr<Impl> impl_;
};

/// Adds to a report what there is at one step; the report must live as long. Each returns itself.
class ReportStep {
 public:
  /// Histograms of the weights; next_step() adds those of the step that follows.
  template <class T>
  ReportStep& parameters(const Module<T>& model);

  /// After the next step of the optimizer, whose gradients the parameters still have (clipped, if they were):
  /// histograms of the gradients, and of the change since parameters() was called.
  template <class T>
  ReportStep& next_step(const Module<T>& model);

  /// The graph of loss(), which computes a scalar by the model in evaluation mode, with values and gradients,
  /// and the attention weights in it: every softmax over scores of the tokens. Ops that are one kernel are
  /// computed as single ops, so that all of it can be shown; the numbers are the same but for rounding.
  template <class T>
  ReportStep& observe(const ReportExample& example, const Module<T>& model,
                      const std::function<Variable<std::type_identity_t<T>>()>& loss);

  /// The same of what was recorded until now, with its tensors; the graph must not have been released by
  /// backward(). Leaves with a name are parameters. For another loss of the same recording, call it again:
  /// each tensor has the gradient of the first loss that depends on it.
  template <class T>
  ReportStep& recorded(const ReportExample& example, const Recording<T>& recording,
                       const Variable<std::type_identity_t<T>>& loss,
                       const std::vector<NamedParameter<std::type_identity_t<T>>>& names = {});

  /// Answers to a question, the most probable first.
  ReportStep& prediction(const std::string& text, const std::vector<Answer>& answers,
                         const std::string& truth = {});

 private:
  friend class Report;
  ReportStep(Report::Impl& report, std::size_t step) : report_(report), step_(step) {}

  Report::Impl& report_;
  std::size_t step_;
};

/// Writes one page of several runs, to be compared. Each text is the data of a report, as Report::json()
/// gives it. Throws FileError for another text, whose name it tells, and for a file that cannot be written.
void write_comparison(const std::vector<std::pair<std::string, std::string>>& names_and_texts,
                      const std::string& path);

/// The labels with the highest probabilities, the most probable first.
std::vector<Answer> most_probable(const std::vector<std::string>& labels,
                                  std::span<const float> probabilities, std::size_t count = 5);

}  // namespace xgrad
