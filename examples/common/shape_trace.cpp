#include "shape_trace.hpp"

#include <algorithm>
#include <exception>
#include <iomanip>
#include <string_view>

#include <xgrad/ops.hpp>

namespace examples {
namespace {

using xgrad::Ids, xgrad::OpEvent, xgrad::OpInfo, xgrad::RunningModule, xgrad::Shape, xgrad::to_string;

/// The value of an attribute that the op has; a default one if it has none of this name and type.
template <class V>
V attribute(std::span<const xgrad::Attribute> attributes, std::string_view name) {
  for (const xgrad::Attribute& one : attributes) {
    if (name != one.name) continue;
    if (const V* const value = std::get_if<V>(&one.value)) return *value;
  }
  return V();
}

bool is_type(const RunningModule* module, std::string_view type) {
  return module != nullptr && module->type == type;
}

/// The name under which its parent knows a module: "W_Q".
std::string_view own_name(const RunningModule& module) {
  const std::string_view name = module.name;
  return name.substr(name.rfind('.') + 1);  // all of it if there is no dot
}

Shape with_last(Shape shape, std::size_t length) {
  shape.back() = length;
  return shape;
}

/// (..., a, b) as (..., b, a, c)
Shape heads_first(const Shape& shape) {
  Shape result = shape;
  std::swap(result[result.size() - 3], result[result.size() - 2]);
  return result;
}

}  // namespace

void ShapeTrace::on_op(const OpEvent<float>& event) { add_op(event); }
void ShapeTrace::on_op(const OpEvent<double>& event) { add_op(event); }

template <class T>
void ShapeTrace::add_op(const OpEvent<T>& event) {
  if (event.in_backward) return;
  last_result_ = event.result.shape();
  const OpInfo& op = event.op;
  const auto shape = [&](std::size_t input) -> const Shape& { return event.inputs[input]->shape(); };
  if (op == xgrad::ops::embedding && is_type(event.module, "Embedding")) {
    const Ids* const ids = attribute<const Ids*>(event.attributes, "ids");
    if (ids == nullptr || ids->dimension() != 2) return;
    rows_.push_back({"", "Input", ids->shape(), "batch, seq"});
    rows_.push_back({"Embedding", "Embedded", last_result_, "batch, seq, d_model"});
  } else if (op == xgrad::ops::linear && is_type(event.module, "Linear")) {
    add_linear(*event.module, shape(0), last_result_);
  } else if (op == xgrad::ops::self_attention || op == xgrad::ops::scaled_dot_product_attention) {
    const bool projects = op == xgrad::ops::self_attention;
    const Shape q = projects ? with_last(shape(0), shape(1)[0]) : shape(0);
    const Shape& k = projects ? shape(0) : shape(1);
    if (is_type(event.module, "MultiHeadAttention"))
      rows_.push_back({"Linear Q/K/V", "Q, K, V", q, "batch, seq, d_model"});
    add_attention(q, k, last_result_.back(),
                  static_cast<std::size_t>(attribute<std::int64_t>(event.attributes, "num_heads")));
  } else if (op == xgrad::ops::softmax && is_type(event.module, "MultiHeadAttention")) {  // with_weights
    rows_.push_back({"Linear Q/K/V", "Q, K, V", queries_, "batch, seq, d_model"});
    add_attention(queries_, {last_result_.back(), 1}, queries_.back(), last_result_[last_result_.size() - 3]);
  } else if (op == xgrad::ops::softmax && is_type(event.module, "SelfAttention")) {
    add_attention(queries_, {last_result_.back(), 1}, queries_.back(), 0);
  }
}

void ShapeTrace::add_linear(const RunningModule& module, const Shape& x, const Shape& y) {
  const std::string_view name = own_name(module);
  if (name == "W_Q" || name == "W_q") queries_ = y;
  if (name == "out_proj" && is_type(module.outer, "MultiHeadAttention"))
    rows_.push_back({"out_proj", "Final", y, "batch, seq, d_model"});
  if (!is_type(module.outer, "ToyEncoder")) return;
  if (name == "token_head") rows_.push_back({"token_head", "Token logits", y, "batch, seq, vocab"});
  if (name == "class_head") {
    rows_.push_back({"Pool", "Pooled", x, "batch, d_model"});
    rows_.push_back({"class_head", "Class logits", y, "batch, classes"});
  }
}

/// What attention's fused kernel goes through without ever making it: q (..., L, D), k (..., S, D).
void ShapeTrace::add_attention(const Shape& q, const Shape& k, std::size_t v_width, std::size_t heads) {
  Shape scores = q;
  if (heads > 0) {
    Shape split = with_last(q, heads);
    split.push_back(q.back() / heads);
    rows_.push_back({"Reshape", "Q_reshaped", split, "batch, seq, heads, d_k"});
    scores = heads_first(split);
    rows_.push_back({"Transpose", "Q_heads", scores, "batch, heads, seq, d_k"});
  }
  scores.back() = k[k.size() - 2];
  rows_.push_back({"Q @ K^T", "Scores", scores, "batch, heads, queries, keys"});
  rows_.push_back({"Softmax", "Weights", scores, "batch, heads, queries, keys"});
  const Shape output = with_last(scores, v_width / std::max<std::size_t>(heads, 1));
  rows_.push_back({"@ V", "Output", output, "batch, heads, seq, d_k"});
  if (heads == 0) return;
  rows_.push_back({"Transpose", "Output_T", heads_first(output), "batch, seq, heads, d_k"});
  rows_.push_back({"Flatten", "Concat", with_last(q, v_width), "batch, seq, d_model"});
}

void ShapeTrace::on_module_end(const RunningModule& module) noexcept {
  if (module.type == "TransformerEncoderLayer" && std::uncaught_exceptions() == 0)
    rows_.push_back({"Feed forward", "Encoded", last_result_, "batch, seq, d_model"});
}

std::ostream& operator<<(std::ostream& out, const ShapeTrace& trace) {
  std::size_t name_width = 0, shape_width = 0;
  for (const ShapeTrace::Row& row : trace.rows_) {
    name_width = std::max(name_width, row.name.size() + 1);
    shape_width = std::max(shape_width, to_string(row.shape).size());
  }
  for (const ShapeTrace::Row& row : trace.rows_) {
    if (!row.step.empty()) out << "↓ " << row.step << '\n';
    out << std::left << std::setw(static_cast<int>(name_width) + 1) << row.name + ":"
        << std::setw(static_cast<int>(shape_width) + 2) << to_string(row.shape) << row.axes << '\n';
  }
  return out;
}

}  // namespace examples
