#pragma once

// What the notebook programs share: words as Python prints them, and the backward section at their end.

#include <optional>
#include <string>
#include <vector>

#include <xgrad/report.hpp>
#include <xgrad/xgrad.hpp>

namespace examples {

/// What --report FILE asks a notebook for: a page with the tensors that it prints, in their order, and with
/// the graphs of its losses. Without that option nothing is done.
class NotebookReport {
 public:
  /// Reads the command line, and ends the program if there is something wrong with it.
  NotebookReport(int argc, char** argv, const std::string& title);

  /// Tensors with a row for each word get its name.
  void show(const std::string& section, const std::vector<xgrad::NamedParameter<float>>& tensors,
            const std::vector<std::string>& words = {});
  void show(const std::string& section, const std::string& name, const xgrad::Ids& ids);

  /// Shows the loss, what it was computed from, and the gradients of the parameters; call it before
  /// backward(), and without sequences if none attends.
  void show_loss(const std::string& name, const xgrad::Variable<float>& loss,
                 const std::vector<xgrad::NamedParameter<float>>& parameters,
                 const std::vector<std::vector<std::string>>& sequences);

  /// To be called after the last loss: what follows is not recorded.
  void write();

 private:
  std::string path_;
  std::optional<xgrad::Report> report_;
  std::optional<xgrad::Recording<float>> recording_;
};

/// ['my', 'shoes']
std::string quoted(const std::vector<std::string>& words);

/// sum(y[i] cos(i)) over the flat index i: a loss in which every element counts differently.
template <class T>
xgrad::Variable<T> cosine_sum(const xgrad::Variable<T>& y) {
  const xgrad::Variable<T> weights(
      xt::cast<T>(xt::cos(xt::arange<double>(0, static_cast<double>(y.size())))));
  return sum(y * reshape(weights, y.shape()));
}

void print_gradients(const std::vector<xgrad::NamedParameter<float>>& gradients);

/// The gradients that backward() left in leaves.
void print_leaf_gradients(const std::vector<xgrad::NamedParameter<float>>& leaves);

/// The same values as a leaf in double, which gradient checks need.
xgrad::Variable<double> in_double(const xgrad::Variable<float>& x);

/// Loads a module with weights of float.
void load_in_double(const xgrad::Module<double>& module, const xgrad::StateDict<float>& weights);

/// Checks the gradients of a loss, as a function of weights in double, against finite differences, and that
/// it is the loss whose gradients were printed. Returns whether both hold.
bool report_gradcheck(const xgrad::Variable<float>& printed, const xgrad::CheckedFunction& loss,
                      const std::vector<xgrad::Variable<double>>& weights);

/// Says whether a module of the library gives what the steps gave, and returns it.
bool report_same(const std::string& module, const xgrad::Variable<double>& steps,
                 const xgrad::Variable<double>& output);

}  // namespace examples
