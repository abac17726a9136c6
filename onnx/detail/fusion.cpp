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

#include "../../base/detail/text/parse.hpp"
#include "../../ops/attention/attention.hpp"
#include "../../ops/index/embedding.hpp"
#include "../../ops/norm/layer_norm.hpp"
#include "../../ops/product/linear.hpp"

namespace xgrad::onnx::detail {
namespace {

// ---- Patterns ----

/// "Add(MatMul(x, Transpose[1,0](w)), 0.5)": a node with the number or the numbers of its attribute perm,
/// axis or to, a value that may be any but is the same wherever the name stands, and a number. The operands
/// of Add and Mul may be swapped. "Split#1(x)" is output 1 of a node, which may be read elsewhere, too.
/// "{Neg(x); x}" is the first of these that matches.
struct Pattern {
  enum class Kind { node, value, number, first_of };

  explicit Pattern(std::string_view text) { read(text); }

  Kind kind = Kind::value;
  std::string name;  // of the operator, or of the value
  double number = 0;
  std::optional<std::size_t> output;
  std::vector<std::int64_t> axes;
  std::vector<Pattern> inputs;

 private:
  /// Takes a pattern from the front of the text.
  void read(std::string_view& text) {
    if (text.starts_with('{')) {
      kind = Kind::first_of;
      read_inputs(text, "; ", '}');
      return;
    }
    const std::size_t end = std::min(text.find_first_of("#[](), ;}"), text.size());
    name = text.substr(0, end);
    text.remove_prefix(end);
    if (text.starts_with('#')) {
      output = static_cast<std::size_t>(text[1] - '0');
      text.remove_prefix(2);
    }
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
    read_inputs(text, ", ", ')');
  }
  void read_inputs(std::string_view& text, std::string_view separator, char end) {
    while (!text.starts_with(end)) {
      text.remove_prefix(text.starts_with(separator) ? separator.size() : 1);
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
  std::vector<const char*> tensors = {};          // attributes that hold constants of the pattern
  bool is_of_floats = false;                      // only where T is float

  bool makes(const OpInfo& one) const { return domain == fused_domain && std::string_view(op) == one.name; }
};

/// The product of attention weights and values in heads, as exporters write it.
std::string attention_product() {
  const auto in_heads = [](const std::string& x) {
    return "Transpose[0,2,1,3](Reshape(" + x + ", " + x + "_heads))";
  };
  const auto first_of = [](const std::string& pattern, const std::string& other) {
    return "{" + other + "; " + pattern + "}";
  };
  const std::string q = in_heads("q"), keys = in_heads("k");
  const std::string k = "{Transpose[0,2,3,1](Reshape(k, k_heads)); Transpose[0,1,3,2](" + keys +
                        "); Reshape(Transpose[0,2,1](Reshape(" + keys + ", k_rows)), k_columns)}";
  const std::string product = "MatMul(" + first_of(q, "Mul(" + q + ", q_scale)") + ", " +
                              first_of(k, "Mul(" + k + ", k_scale)") + ")";
  const std::string scores = "{Mul(" + product + ", scale); Div(" + product + ", divisor); " + product + "}";
  const std::string masked = "{Where(mask, " + scores + ", lowest); Add(Add(" + scores +
                             ", attn_bias), more_bias); Add(" + scores + ", attn_bias); " + scores + "}";
  const std::string weights = "Softmax[-1](" + masked + ")";
  return "MatMul(" + first_of(weights, std::string(without_nan) + "(" + weights + ", nan)") + ", " +
         in_heads("v") + ")";
}

// What attention reads besides the inputs of xgrad's op.
constexpr const char* others_of_attention[] = {"q_heads", "k_heads",   "v_heads", "joined",    "scale",
                                               "divisor", "q_scale",   "k_scale", "mask",      "lowest",
                                               "k_rows",  "k_columns", "nan",     "more_bias", "apart"};

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
    add("Reshape(Transpose[0,2,1,3]({" + attention_product() + "; Reshape(" + attention_product() +
            ", apart)}), joined)",
        ops::scaled_dot_product_attention, {std::begin(others_of_attention), std::end(others_of_attention)});
    add("Relu(Add(MatMul(x, Transpose[1,0](weight)), bias))", ops::linear_relu);
    add("Add(MatMul(x, Transpose[1,0](weight)), bias)", ops::linear);
    add("MatMul(x, Transpose[1,0](weight))", ops::linear);
    add("LayerNormalization(Add(x, residual), weight, bias)", ops::add_layer_norm);
    const auto gelu = [&](const std::string& factor, const std::map<std::string, const char*>& texts) {
      for (const std::string& text : {"Mul(Mul(x, " + factor + "), 0.5)", "Mul(Mul(x, 0.5), " + factor + ")"})
        list.push_back({Pattern(text), "Gelu", "", {"x"}, texts});
    };
    gelu("Add(Erf({Div(x, 1.4142135623730951); Mul(x, 0.7071067811865476)}), 1)", {});
    const auto integers = [&](const std::string& product) {
      for (const std::string& text : {"Add(" + product + ", bias)", product})
        list.push_back({Pattern(text),
                        integer_linear,
                        fused_domain,
                        {"x", "weight_scale", "bias", "x_scale"},
                        {},
                        {"weight", "weight_zero", "x_zero"},
                        true});
    };
    const std::string q = "DynamicQuantizeLinear#0(x)", q_scale = "DynamicQuantizeLinear#1(x)",
                      q_zero = "DynamicQuantizeLinear#2(x)";
    integers("Mul(Cast[1](MatMulInteger(" + q + ", weight, " + q_zero + ", weight_zero)), Mul(" + q_scale +
             ", weight_scale))");
    integers("com.microsoft.MatMulIntegerToFloat(" + q + ", weight, " + q_scale + ", weight_scale, " +
             q_zero + ", weight_zero)");
    integers("com.microsoft.MatMulIntegerToFloat(" + q + ", weight, " + q_scale + ", weight_scale, " +
             q_zero + ", weight_zero, bias)");
    integers("com.microsoft.DynamicQuantizeMatMul(x, weight, weight_scale, weight_zero)");
    integers("com.microsoft.DynamicQuantizeMatMul(x, weight, weight_scale, weight_zero, bias)");
    const auto from_integers = [](const std::string& of) {
      return "{DequantizeLinear[1](" + of + "); DequantizeLinear(" + of + ")}";
    };
    integers("MatMul(DequantizeLinear#0(QuantizeLinear#0(x, x_scale, x_zero), x_scale, x_zero), " +
             from_integers("weight, weight_scale, weight_zero") + ")");
    gelu("Add(Tanh(Mul(Add(x, Mul({Pow(x, 3); Mul(Mul(x, x), x)}, 0.044715)), 0.7978845608028654)), 1)",
         {{"approximate", "tanh"}});
    return list;
  }();
  return all;
}

// ---- Where they are ----

class Fuser {
 public:
  Fuser(const Model& model, bool are_floats)
      : nodes_(model.nodes), is_gone_(model.nodes.size()), are_floats_(are_floats) {
    for (const Tensor& tensor : model.initializers)
      if (tensor.is_supported) constants_.emplace(tensor.view.name, &tensor);
    for (const ValueInfo& output : model.outputs) ++uses_[output.name];
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const std::string& input : nodes_[i].inputs) ++uses_[input];
      for (const std::string& output : nodes_[i].outputs)
        if (!output.empty()) makers_.emplace(output, i);
      if (nodes_[i].op != "Constant" || nodes_[i].outputs.size() != 1) continue;
      for (const Attribute& attribute : model.nodes[i].attributes)
        if (attribute.tensor && attribute.tensor->is_supported)
          constants_.emplace(nodes_[i].outputs[0], &*attribute.tensor);
    }
  }

  std::vector<Node> fused() {
    for (Node& node : nodes_) {
      spare_padding(node);
      read_turned_shape(node);
      join_nan_guard(node);
    }
    for (Node& node : nodes_) read_attention_shape(node);
    for (std::size_t i = nodes_.size(); i-- > 0;)
      if (!is_gone_[i]) fuse(i);
    std::vector<Node> left;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!is_gone_[i]) left.push_back(std::move(nodes_[i]));
    return left;
  }

 private:
  /// The node that makes a value, if it is one of this operator.
  const Node* maker_of(const std::string& value, const char* op) const {
    const auto maker = makers_.find(value);
    if (maker == makers_.end()) return nullptr;
    const Node& node = nodes_[maker->second];
    return node.op == op && node.domain.empty() && !node.inputs.empty() ? &node : nullptr;
  }

  void replace_inputs(Node& node, std::vector<std::string> inputs) {
    node.domain = fused_domain;
    for (const std::string& input : inputs) ++uses_[input];
    node.inputs.swap(inputs);
    for (const std::string& input : inputs) release(input);
  }

  /// Shape(Transpose(x)) is the shape of x in another order, which needs no Transpose, and where x is made by
  /// a Reshape also not that.
  void read_turned_shape(Node& node) {
    if (node.op != "Shape" || !node.domain.empty() || node.inputs.size() != 1) return;
    const Node* const turned = maker_of(node.inputs[0], "Transpose");
    if (turned == nullptr || turned->attributes.size() != 1 || turned->attributes[0].name != "perm") return;
    node.op = turned_shape;
    node.attributes.push_back(turned->attributes[0]);
    const Node* const reshaped = maker_of(turned->inputs[0], "Reshape");
    replace_inputs(node, reshaped != nullptr ? reshaped->inputs : turned->inputs);
  }

  /// Shape of a product of attention weights and values, in heads, without the product.
  void read_attention_shape(Node& node) {
    if (node.op != "Shape" || !node.domain.empty() || node.inputs.size() != 1) return;
    if (maker_of(node.inputs[0], "MatMul") == nullptr) return;
    static const Pattern pattern(attention_product());
    Captures captures;
    if (!matches(pattern, makers_.at(node.inputs[0]), captures, true)) return;
    std::vector<const char*> names(ops::scaled_dot_product_attention.inputs.begin(),
                                   ops::scaled_dot_product_attention.inputs.end());
    names.insert(names.end(), std::begin(others_of_attention), std::end(others_of_attention));
    std::vector<std::string> inputs;
    for (const char* name : names) {
      const auto captured = captures.find(name);
      inputs.push_back(captured == captures.end() ? "" : captured->second);
    }
    node.op = attention_shape;
    replace_inputs(node, std::move(inputs));
  }

  /// The only row of zeros of a table of embeddings is that of padding: like PyTorch's padding_idx, which
  /// leaves such a row, it gets no gradient.
  void spare_padding(Node& node) {
    if (node.op != "Gather" || !node.domain.empty() || node.inputs.size() != 2) return;
    for (const Attribute& attribute : node.attributes)
      if (attribute.name != "axis" || attribute.integer != 0) return;
    const Shape* const shape = shape_of_floats(node.inputs[0]);
    if (shape == nullptr || shape->size() != 2 || (*shape)[0] < 2 || (*shape)[1] == 0) return;
    if (constants_.contains(node.inputs[1]) || makers_.contains(node.inputs[0])) return;
    const std::span<const std::byte> bytes = constants_.at(node.inputs[0])->view.bytes;
    const std::size_t width = bytes.size() / (*shape)[0];
    std::optional<std::size_t> padding;
    for (std::size_t row = 0; row < (*shape)[0]; ++row) {
      const auto of_row = bytes.subspan(row * width, width);
      if (std::any_of(of_row.begin(), of_row.end(), [](std::byte b) { return b != std::byte{0}; })) continue;
      if (padding) return;
      padding = row;
    }
    if (!padding) return;
    node.op = ops::embedding.name;
    node.domain = fused_domain;
    node.attributes.clear();
    Attribute& attribute = node.attributes.emplace_back();
    attribute.name = "padding_idx";
    attribute.type = 2;  // AttributeProto.INT
    attribute.integer = static_cast<std::int64_t>(*padding);
  }

  /// Where(IsNaN(x), 0, x) is one node.
  void join_nan_guard(Node& node) {
    if (node.op != "Where" || !node.domain.empty() || node.inputs.size() != 3) return;
    const Node* const guard = maker_of(node.inputs[0], "IsNaN");
    if (guard == nullptr || guard->inputs[0] != node.inputs[2] || !is_zero(node.inputs[1])) return;
    node.op = without_nan;
    replace_inputs(node, {node.inputs[2], node.inputs[1]});
  }

  /// Puts what the first rule says in the place of the node and of those before it.
  void fuse(std::size_t number) {
    for (const Rule& rule : rules()) {
      Captures captures;
      if (rule.is_of_floats && !are_floats_) continue;
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
      for (const char* name : rule.tensors) {
        const auto captured = captures.find(name);
        if (captured == captures.end()) continue;
        Attribute& attribute = node.attributes.emplace_back();
        attribute.name = name;
        attribute.type = 4;  // AttributeProto.TENSOR
        attribute.tensor = *constants_.at(captured->second);
      }
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
      if (--uses_[name] > 0 || maker == makers_.end() || is_gone_[maker->second]) continue;
      const std::vector<std::string>& outputs = nodes_[maker->second].outputs;
      if (std::any_of(outputs.begin(), outputs.end(),
                      [&](const std::string& output) { return !output.empty() && uses_[output] > 0; }))
        continue;
      is_gone_[maker->second] = true;
      const std::vector<std::string>& inputs = nodes_[maker->second].inputs;
      names.insert(names.end(), inputs.begin(), inputs.end());
    }
  }

  bool matches(const Pattern& pattern, std::size_t number, Captures& captures, bool is_root) const {
    const Node& node = nodes_[number];
    const bool has_attributes = node.op == "LayerNormalization" || are_axes(node, pattern.axes);
    const bool is_named = node.op == without_nan
                              ? pattern.name == without_nan
                              : pattern.name.ends_with(node.op) && pattern.name == node.operator_name();
    if (!is_named || !has_attributes || (node.outputs.size() != 1 && !pattern.output) ||
        node.inputs.size() != pattern.inputs.size())
      return false;
    // a value that others read is made anyhow, unless making it is nothing but turning a weight
    const bool is_turned_weight = node.op == "Transpose" && constants_.contains(node.inputs[0]);
    if (!is_root && !pattern.output && uses_.at(node.outputs[0]) != 1 && !is_turned_weight) return false;
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
      case Pattern::Kind::first_of: {
        const Captures before = captures;
        for (const Pattern& one : pattern.inputs) {
          if (matches(one, value, captures)) return true;
          captures = before;
        }
        return false;
      }
      default:
        const auto maker = makers_.find(value);
        if (maker == makers_.end()) return false;
        if (pattern.output) {
          const std::vector<std::string>& outputs = nodes_[maker->second].outputs;
          if (*pattern.output >= outputs.size() || outputs[*pattern.output] != value) return false;
        }
        return matches(pattern, maker->second, captures, false);
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
    return rule.op != integer_linear || are_integer_factors(captures);
  }

  /// Whether the kernel takes them: a matrix of bytes with one scale and one zero point, or with those of
  /// each column, and one of each for x, if they are given.
  bool are_integer_factors(const Captures& captures) const {
    // so many products of bytes, each without its zero point, have a sum of 32 bits
    constexpr std::size_t most = std::size_t{0x7fffffff} / (255 * 255);
    const Tensor *const weight = bytes_of(captures, "weight"), *const zero =
                                                                   bytes_of(captures, "weight_zero");
    if (weight == nullptr || zero == nullptr || zero->type != weight->type) return false;
    const Shape& shape = weight->view.shape;
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0 || shape[0] > most) return false;
    const auto fits = [&](const Shape* one) {
      return one != nullptr && one->size() <= 1 &&
             (element_count(*one) == 1 || element_count(*one) == shape[1]);
    };
    if (!fits(&zero->view.shape) || !fits(shape_of_floats(captures.at("weight_scale")))) return false;
    if (captures.contains("bias")) {
      const Shape* const bias = shape_of_floats(captures.at("bias"));
      if (bias == nullptr || *bias != Shape{shape[1]}) return false;
    }
    if (!captures.contains("x_scale")) return true;
    const Tensor* const x_zero = bytes_of(captures, "x_zero");
    const Shape* const x_scale = shape_of_floats(captures.at("x_scale"));
    return x_zero != nullptr && x_zero->view.shape.empty() && x_scale != nullptr && x_scale->empty();
  }

  /// The constant of this name, if it holds bytes.
  const Tensor* bytes_of(const Captures& captures, const char* name) const {
    const auto found = constants_.find(captures.at(name));
    if (found == constants_.end()) return nullptr;
    const DType dtype = found->second->view.dtype;
    return dtype == DType::U8 || dtype == DType::I8 ? found->second : nullptr;
  }

  static bool are_axes(const Node& node, const std::vector<std::int64_t>& axes) {
    if (axes.empty()) {
      return std::all_of(node.attributes.begin(), node.attributes.end(), [&](const Attribute& one) {
        return node.op == "Reshape" && one.name == "allowzero";
      });
    }
    if (node.attributes.size() != 1) return false;
    const Attribute& attribute = node.attributes[0];
    if (attribute.name == "perm") return attribute.integers == axes;
    const bool is_one = attribute.name == "axis" || attribute.name == "to";
    return is_one && axes.size() == 1 && attribute.integer == axes[0];
  }

  const Shape* shape_of_floats(const std::string& value) const {
    const auto found = constants_.find(value);
    if (found == constants_.end()) return nullptr;
    return has_floats(*found->second) ? &found->second->view.shape : nullptr;
  }

  /// Whether a value is one 0, which does not stretch an array.
  bool is_zero(const std::string& value) const {
    const Shape* const shape = shape_of_floats(value);
    if (shape == nullptr || shape->size() > 1 || element_count(*shape) != 1) return false;
    return to_array<double>(constants_.at(value)->view).data()[0] == 0;
  }

  std::optional<double> number_of(const std::string& value) const {
    const Shape* const shape = shape_of_floats(value);
    if (shape == nullptr || !shape->empty()) return std::nullopt;
    return to_array<double>(constants_.at(value)->view).data()[0];
  }

  std::vector<Node> nodes_;
  std::vector<bool> is_gone_;
  bool are_floats_;
  std::unordered_map<std::string, const Tensor*> constants_;
  std::unordered_map<std::string, std::size_t> uses_, makers_;
};

}  // namespace

std::vector<Node> fused(const Model& model, bool are_floats) { return Fuser(model, are_floats).fused(); }

}  // namespace xgrad::onnx::detail
