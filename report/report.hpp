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
#include "../graph/detail/returns_variable.hpp"
#include "../graph/variable.hpp"
#include "../models/module.hpp"

namespace xgrad {

/// Description of a run; all fields are optional.
struct RunDescription {
  std::string program = {};
  std::map<std::string, std::string> options = {};
  std::optional<std::uint64_t> seed = {};
  std::optional<std::size_t> parameter_count = {};
  std::optional<double> seconds = {};
};

/// An input of the model, the same at each reported step.
struct ReportExample {
  std::string text;                              ///< name on the page
  std::vector<std::vector<std::string>> tokens;  ///< of each sequence; the rest is padding
};

/// Names of a tensor's axes, and labels of the rows and columns of the last two.
struct TensorLabels {
  std::vector<std::string> axes = {}, rows = {}, columns = {};
};

/// A label and its probability.
using Answer = std::pair<std::string, double>;

class ReportStep;

/// Records the ops of this thread for the lifetime of the object, and tensors to show in order, for programs
/// other than training runs. ReportStep::recorded() adds it to a report.
template <class T>
class Recording {
 public:
  Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

  /// Shows a tensor, with its gradient if the loss depends on it.
  void tensor(const std::string& section, const std::string& name, const Variable<T>& x,
              const TensorLabels& labels = {});
  void tensor(const std::string& section, const std::string& name, const Ids& ids,
              const TensorLabels& labels = {});

 private:
  friend class ReportStep;
  struct Impl;

  std::unique_ptr<Impl> impl_;
};

/// Collects data of a training run and writes it into one HTML file that needs no network: curves, attention
/// with its gradients, the graph, histograms of parameters, predictions.
///
///   xgrad::Report report("toy encoder, seed 0");
///   report.point("loss", step, loss);
///   report.step(400).parameters(model).observe(example, model, [&] { return loss_of(example); });
///   report.write("toy.html");
///
/// A report does not change the run: no parameter, gradient, mode or random number. Above 8 MB, curves are
/// thinned, large values omitted, attention weights rounded to 16 bits, then steps and layers omitted, as far
/// as needed, with a note on the page. The data format is docs/report_format.md.
class Report {
 public:
  explicit Report(std::string title);
  Report(Report&&) noexcept;
  Report& operator=(Report&&) noexcept;
  ~Report();

  /// Adds a description of the run and the library: its version, the compiler's, threads and memory.
  void describe(const RunDescription& run);

  /// Adds a sentence at the top of the page.
  void note(std::string text);

  /// Adds a point to a curve, such as "loss" or "learning rate". Throws ValueError unless its step is after
  /// the last one.
  void point(const std::string& curve, std::size_t step, double value);

  /// Adds every series of a metrics file of fit() (FitOptions::metrics), and the description in its first
  /// line; ignores an incomplete last line. Throws FileError for another file.
  void log(const std::string& path);

  /// The data of one number of completed steps, a position of the page's slider.
  ReportStep step(std::size_t steps_done);

  void profile(const Profile& profile);

  /// The data in the format of docs/report_format.md.
  std::string json() const;

  /// Writes the page, or only the data if the path ends in ".json", as an AtomicFile. Throws FileError.
  void write(const std::string& path) const;

 private:
  friend class ReportStep;
  struct Impl;

  std::unique_ptr<Impl> impl_;
};

/// Adds data of one step to a report, which must outlive it. Each function returns *this.
class ReportStep {
 public:
  /// Histograms of the weights and buffers; next_step() adds those of the next step.
  template <class T>
  ReportStep& parameters(const Module<T>& model);

  /// Call after the next step of the optimizer, before its gradients are reset: histograms of the gradients
  /// (clipped, if they were), and of the change since parameters() was called.
  template <class T>
  ReportStep& next_step(const Module<T>& model);

  /// The graph of loss(), which computes a scalar with the model in evaluation mode, with values and
  /// gradients, and its attention weights: every softmax over scores of the tokens. Fused ops are computed as
  /// single ops to show all of them; results are equal up to rounding.
  template <class T>
  ReportStep& observe(const ReportExample& example, const Module<T>& model,
                      const detail::VariableFunction<std::type_identity_t<T>>& loss);

  /// As observe(), for the ops recorded so far, with the tensors of the recording; the graph must not have
  /// been released by backward(). Named leaves are parameters, or constants such as buffers. For another loss
  /// of the same recording, call it again: each tensor has the gradient of the first loss that depends on it.
  template <class T>
  ReportStep& recorded(const ReportExample& example, const Recording<T>& recording,
                       const Variable<std::type_identity_t<T>>& loss,
                       const std::vector<NamedParameter<std::type_identity_t<T>>>& names = {});

  /// Answers to a question, in descending order of probability.
  ReportStep& prediction(const std::string& text, const std::vector<Answer>& answers,
                         const std::string& truth = {});

 private:
  friend class Report;
  ReportStep(Report::Impl& report, std::size_t step) : report_(report), step_(step) {}

  Report::Impl& report_;
  std::size_t step_;
};

/// Writes one page that compares several runs. Each text is the data of a report, from Report::json(). Throws
/// FileError, with the name, for any other text, and for a file that cannot be written.
void write_comparison(const std::vector<std::pair<std::string, std::string>>& names_and_texts,
                      const std::string& path);

/// The labels with the highest probabilities, in descending order.
std::vector<Answer> most_probable(const std::vector<std::string>& labels,
                                  std::span<const float> probabilities, std::size_t count = 5);

}  // namespace xgrad
