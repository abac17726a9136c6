// Draws the graph of a formula, with the gradient that a backward pass brings to each node, for Graphviz
#include <iostream>
#include <map>
#include <sstream>

#include <xgrad/xgrad.hpp>

using xgrad::Variable;

/// Collects the ops and the gradients of their results; to be printed in the language of Graphviz's dot.
class GraphPicture : public xgrad::Watcher {
 public:
  void add_leaf(const std::string& name, const Variable<double>& leaf) {
    names_[&leaf.value()] = name;
    titles_[name] = name;
    values_[name] = leaf.item();
  }
  void add_gradient(const std::string& name, double gradient) { gradients_[name] = gradient; }

  friend std::ostream& operator<<(std::ostream& out, const GraphPicture& picture) {
    out << "digraph {\n  rankdir=LR\n  node [shape=box, style=\"rounded,filled\", fillcolor=\"#eff6ff\"]\n";
    for (const auto& [name, title] : picture.titles_) {
      out << "  " << name << " [label=\"" << title << "\\n"
          << picture.values_.at(name) << "\\ngradient " << picture.gradients_.at(name) << "\"]\n";
    }
    return out << picture.edges_.str() << "}\n";
  }

 private:
  static std::string name_of(std::uint64_t number) { return "node" + std::to_string(number); }

  void on_op(const xgrad::OpEvent<double>& event) override {
    if (event.in_backward) return;
    const std::string name = name_of(event.number);
    titles_[name] = event.op.name;
    values_[name] = event.result.item();
    for (const Variable<double>* input : event.inputs) {
      edges_ << "  " << names_.at(&input->value()) << " -> " << name << '\n';
    }
    names_[&event.result.value()] = name;  // the latest that has its value there
  }
  void on_backward_begin(const xgrad::BackwardEvent<double>& event) override {
    add_gradient(name_of(event.number), event.dy.item());
  }

  std::map<const xgrad::Array<double>*, std::string> names_;
  std::map<std::string, std::string> titles_;
  std::map<std::string, double> values_, gradients_;
  std::ostringstream edges_;
};

int main() {
  const Variable<double> x(2.0, true), w(-3.0, true), b(5.5, true);
  GraphPicture picture;
  picture.add_leaf("x", x);
  picture.add_leaf("w", w);
  picture.add_leaf("b", b);
  const Variable<double> left = tanh(x * w + b);  // compilers may differ in which operand they compute first
  const Variable<double> y = left + x * x;
  y.backward();
  picture.add_gradient("x", x.grad().item());
  picture.add_gradient("w", w.grad().item());
  picture.add_gradient("b", b.grad().item());
  std::cout << picture;
}
