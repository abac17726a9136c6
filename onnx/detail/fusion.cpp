#include "fusion.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "../../base/detail/parse.hpp"
#include "../../ops/attention/attention.hpp"
#include "../../ops/norm/layer_norm.hpp"
#include "../../ops/product/linear.hpp"

namespace xgrad::onnx::detail {
namespace {

// ---- Patterns ----

/// "Add(MatMul(x, Transpose[1,0](w)), 0.5)": a node with the axes of its attribute perm or axis, a value that
/// may be any but is the same wherever the name stands, and a number. The operands of Add and Mul may be
/// swapped.
struct Pattern {
  enum class Kind { node, value, number };

  explicit Pattern(std::string_view text) { read(text); }

  Kind kind = Kind::value;
  std::string name;  // of the operator, or of the value
  double number = 0;
  std::vector<std::int64_t> axes;
  std::vector<Pattern> inputs;

 private:
  /// Takes a pattern from the front of the text.
  void read(std::string_view& text) {
    const std::size_t end = std::min(text.find_first_of("[](), "), text.size());
    name = text.substr(0, end);
    text.remove_prefix(end);
    if (name[0] >= '0' && name[0] <= '9') {
      kind = Kind::number;
      number = xgrad::detail::parsed<double>(name).value();
    }
    if (text.starts_with('[')) {
      for (text.remove_prefix(1); !text.starts_with('('); text.remove_prefix(1)) {
        const char* const after =
            std::from_chars(text.data(), text.data() + text.size(), axes.emplace_back()).ptr;
        text.remove_prefix(static_cast<std::size_t>(after - text.data()));
      }
    }
    if (!text.starts_with('(')) return;
    kind = Kind::node;
    while (!text.starts_with(')')) {
      text.remove_prefix(text.starts_with(", ") ? 2 : 1);
      inputs.emplace_back(Pattern(text, 0));
    }
    text.remove_prefix(1);
  }
  Pattern(std::string_view& text, int) { read(text); }
};

/// The names of values by their names in a pattern.
using Captures = std::map<std::string, std::string>;

/// What takes the place of a pattern's nodes: an operator of these values, which are empty where the pattern
/// has none of that name.
struct Rule {
  Pattern pattern;
  const char *op, *domain;
  std::vector<const char*> inputs;
  std::map<std::string, const char*> texts = {};  // attributes; LayerNormalization's own are kept

  bool makes(const OpInfo& one) const { return domain == fused_domain && std::string_view(op) == one.name; }
};

/// Larger patterns stand before their parts.
const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> list;
    // the inputs of the op have its own names in a pattern
    const auto add = [&](const std::string& text, const OpInfo& op, std::vector<const char*> others = {}) {
      std::vector<const char*> inputs(op.inputs.begin(), op.inputs.end());
      inputs.insert(inputs.end(), others.begin(), others.end());
      list.push_back({Pattern(text), op.name, fused_domain, std::move(inputs)});
    };
    const auto attention = [&](const std::string& scores) {
      add("Reshape(Transpose[0,2,1,3](MatMul(Softmax[-1](" + scores +
              "), Transpose[0,2,1,3](Reshape(v, heads)))), joined)",
          ops::scaled_dot_product_attention, {"heads", "scale", "mask", "lowest"});
    };
    const std::string scores =
        "Mul(MatMul(Transpose[0,2,1,3](Reshape(q, heads)), Transpose[0,2,3,1](Reshape(k, heads))), scale)";
    attention("Where(mask, " + scores + ", lowest)");
    attention("Add(" + scores + ", attn_bias)");
    attention(scores);
    add("Relu(Add(MatMul(x, Transpose[1,0](weight)), bias))", ops::linear_relu);
    add("Add(MatMul(x, Transpose[1,0](weight)), bias)", ops::linear);
    add("MatMul(x, Transpose[1,0](weight))", ops::linear);
    add("LayerNormalization(Add(x, residual), weight, bias)", ops::add_layer_norm);
    list.push_back({Pattern("Mul(Mul(x, Add(Erf(Div(x, 1.4142135623730951)), 1)), 0.5)"), "Gelu", "", {"x"}});
    list.push_back(
        {Pattern("Mul(Mul(x, Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.7978845608028654)), 1)), 0.5)"),
         "Gelu",
         "",
         {"x"},
         {{"approximate", "tanh"}}});
    return list;
  }();
  return all;
}

// ---- Where they are ----

class Fuser {
 public:
  explicit Fuser(const Model& model) : nodes_(model.nodes), is_gone_(model.nodes.size()) {
    for (const Tensor& tensor : model.initializers) constants_.emplace(tensor.view.name, &tensor);
    for (const ValueInfo& output : model.outputs) ++uses_[output.name];
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const std::string& input : nodes_[i].inputs) ++uses_[input];
      for (const std::string& output : nodes_[i].outputs)
        if (!output.empty()) makers_.emplace(output, i);
      if (nodes_[i].op != "Constant" || nodes_[i].outputs.size() != 1) continue;
      for (const Attribute& attribute : model.nodes[i].attributes)
        if (attribute.tensor) constants_.emplace(nodes_[i].outputs[0], &*attribute.tensor);
    }
  }

  std::vector<Node> fused() {
    for (std::size_t i = nodes_.size(); i-- > 0;)
      if (!is_gone_[i]) fuse(i);
    std::vector<Node> left;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!is_gone_[i]) left.push_back(std::move(nodes_[i]));
    return left;
  }

 private:
  /// Puts what the first rule says in the place of the node and of those before it.
  void fuse(std::size_t number) {
    for (const Rule& rule : rules()) {
      Captures captures;
      if (!matches(rule.pattern, number, captures, true) || !fits(rule, captures)) continue;
      Node& node = nodes_[number];
      const std::vector<std::string> before = std::move(node.inputs);
      node.inputs.clear();
      for (const char* input : rule.inputs) {
        const auto captured = captures.find(input);
        node.inputs.push_back(captured == captures.end() ? "" : captured->second);
        ++uses_[node.inputs.back()];
      }
      for (const std::string& input : before) release(input);
      if (node.op != "LayerNormalization") node.attributes.clear();
      for (const auto& [name, text] : rule.texts) {
        Attribute& attribute = node.attributes.emplace_back();
        attribute.name = name;
        attribute.type = 3;  // AttributeProto.STRING
        attribute.text = text;
      }
      node.op = rule.op;
      node.domain = rule.domain;
      return;
    }
  }

  /// One reader less; a node that nobody reads any more goes, too.
  void release(const std::string& first) {
    std::vector<std::string> names{first};
    while (!names.empty()) {
      const std::string name = std::move(names.back());
      names.pop_back();
      const auto maker = makers_.find(name);
      if (--uses_[name] > 0 || maker == makers_.end()) continue;
      is_gone_[maker->second] = true;
      const std::vector<std::string>& inputs = nodes_[maker->second].inputs;
      names.insert(names.end(), inputs.begin(), inputs.end());
    }
  }

  bool matches(const Pattern& pattern, std::size_t number, Captures& captures, bool is_root) const {
    const Node& node = nodes_[number];
    const bool has_attributes = node.op == "LayerNormalization" || are_axes(node, pattern.axes);
    if (node.op != pattern.name || !node.domain.empty() || !has_attributes || node.outputs.size() != 1 ||
        node.inputs.size() != pattern.inputs.size())
      return false;
    // a value that others read is made anyhow, unless making it is nothing but turning a weight
    const bool is_turned_weight = node.op == "Transpose" && constants_.contains(node.inputs[0]);
    if (!is_root && uses_.at(node.outputs[0]) != 1 && !is_turned_weight) return false;
    const Captures before = captures;
    if (all_match(pattern, node.inputs, captures)) return true;
    captures = before;
    if (node.op != "Add" && node.op != "Mul") return false;
    return all_match(pattern, {node.inputs[1], node.inputs[0]}, captures);
  }

  bool all_match(const Pattern& pattern, const std::vector<std::string>& inputs, Captures& captures) const {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!matches(pattern.inputs[i], inputs[i], captures)) return false;
    return true;
  }

  bool matches(const Pattern& pattern, const std::string& value, Captures& captures) const {
    switch (pattern.kind) {
      case Pattern::Kind::value:
        return !value.empty() && captures.emplace(pattern.name, value).first->second == value;
      case Pattern::Kind::number: {
        const std::optional<double> number = number_of(value);
        // as near as the file's floats can be
        const bool is_double = number && constants_.at(value)->view.dtype == DType::F64;
        return number && std::abs(*number - pattern.number) <= (is_double ? 1e-15 : 1e-7) * pattern.number;
      }
      default:
        const auto maker = makers_.find(value);
        return maker != makers_.end() && matches(pattern, maker->second, captures, false);
    }
  }

  /// What a pattern cannot say: of which kind constants are.
  bool fits(const Rule& rule, const Captures& captures) const {
    if (rule.makes(ops::linear) || rule.makes(ops::linear_relu)) {
      const Shape* const weight = shape_of_floats(captures.at("weight"));
      if (weight == nullptr || weight->size() != 2) return false;
      if (!captures.contains("bias")) return true;
      const Shape* const bias = shape_of_floats(captures.at("bias"));
      return bias != nullptr && bias->size() == 1 && (*bias)[0] == (*weight)[0];
    }
    if (!rule.makes(ops::scaled_dot_product_attention)) return true;
    const auto heads = list_of(captures.at("heads")), joined = list_of(captures.at("joined"));
    if (heads.size() != 4 || heads[0] != 0 || heads[1] != 0 || heads[2] < 1 || heads[3] != -1) return false;
    if (joined != std::vector<std::int64_t>{0, 0, -1} || !number_of(captures.at("scale"))) return false;
    if (!captures.contains("mask")) return true;
    const std::optional<double> lowest = number_of(captures.at("lowest"));
    return lowest && *lowest < -1e30;
  }

  static bool are_axes(const Node& node, const std::vector<std::int64_t>& axes) {
    if (axes.empty() || node.attributes.size() != 1) return axes.empty() && node.attributes.empty();
    const Attribute& attribute = node.attributes[0];
    if (attribute.name == "perm") return attribute.integers == axes;
    return attribute.name == "axis" && axes.size() == 1 && attribute.integer == axes[0];
  }

  const Shape* shape_of_floats(const std::string& value) const {
    const auto found = constants_.find(value);
    if (found == constants_.end()) return nullptr;
    const TensorView& view = found->second->view;
    const bool is_float = view.dtype == DType::F32 || view.dtype == DType::F64 || view.dtype == DType::F16 ||
                          view.dtype == DType::BF16;
    return is_float ? &view.shape : nullptr;
  }

  std::optional<double> number_of(const std::string& value) const {
    const Shape* const shape = shape_of_floats(value);
    if (shape == nullptr || !shape->empty()) return std::nullopt;
    return to_array<double>(constants_.at(value)->view).data()[0];
  }

  std::vector<std::int64_t> list_of(const std::string& value) const {
    const auto found = constants_.find(value);
    if (found == constants_.end() || found->second->view.dtype != DType::I64 ||
        found->second->view.shape.size() != 1)
      return {};
    const Ids ids = to_array<std::int64_t>(found->second->view);
    return {ids.begin(), ids.end()};
  }

  std::vector<Node> nodes_;
  std::vector<bool> is_gone_;
  std::unordered_map<std::string, const Tensor*> constants_;
  std::unordered_map<std::string, std::size_t> uses_, makers_;
};

}  // namespace

std::vector<Node> fused(const Model& model) { return Fuser(model).fused(); }

}  // namespace xgrad::onnx::detail
