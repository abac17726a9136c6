#include "emitters.hpp"

#include <algorithm>

#include "../../../ops/window/convolution.hpp"
#include "../../../ops/window/interpolate.hpp"
#include "../../../ops/window/pooling.hpp"

namespace xgrad::onnx::detail {
namespace {

using Numbers = std::vector<std::int64_t>;

/// An attribute of one number for all axes, or one for each.
template <class T>
Numbers per_axis_of(const OpPair<T>& op, const char* name, std::size_t axes) {
  Numbers list = op.template attribute<Numbers>(name);
  if (list.size() == 1) list.resize(axes, list.front());
  return list;
}

/// At the begins of all axes, then at their ends.
Numbers both_ends(const Numbers& before, const Numbers& after) {
  Numbers all = before;
  all.insert(all.end(), after.begin(), after.end());
  return all;
}

/// An operator of images (batch, channels, ...), of which x may be one without a batch.
template <class T>
void emit_of_images(Exporter<T>& to, const OpPair<T>& op, const char* name, GraphWriter::Names inputs,
                    std::size_t axes, const AttributeWriter& attributes) {
  const bool is_single = op.shape(0).size() == axes + 1;
  const std::string batch_axis = to.graph().integers({0});
  if (is_single) inputs[0] = to.graph().node("Unsqueeze", {inputs[0], batch_axis});
  const std::string y = to.graph().node(name, inputs, attributes);
  to.result(op, is_single ? to.graph().node("Squeeze", {y, batch_axis}) : y);
}

template <class T>
GraphWriter::Names convolution_inputs(Exporter<T>& to, const OpPair<T>& op) {
  GraphWriter::Names inputs{to.name_of(op, "x"), to.name_of(op, "weight")};
  if (op.has("bias")) inputs.push_back(to.name_of(op, "bias"));
  return inputs;
}

template <class T>
void emit_convolution(Exporter<T>& to, const OpPair<T>& op) {
  const std::size_t axes = op.shape("weight").size() - 2;
  const Numbers stride = per_axis_of(op, "stride", axes), before = per_axis_of(op, "padding", axes),
                dilation = per_axis_of(op, "dilation", axes);
  Numbers after = before, kernel;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    kernel.push_back(static_cast<std::int64_t>(op.shape("weight")[axis + 2]));
    // padding that keeps the lengths may be longer at the end
    const std::size_t place = op.shape("x").size() - axes + axis;
    const auto longer = static_cast<std::int64_t>(op.first.result.shape()[place]) -
                        static_cast<std::int64_t>(op.shape("x")[place]);
    if (stride[axis] == 1) after[axis] = longer + (kernel[axis] - 1) * dilation[axis] - before[axis];
  }
  emit_of_images(to, op, "Conv", convolution_inputs(to, op), axes,
                 AttributeWriter()
                     .integers("kernel_shape", kernel)
                     .integers("strides", stride)
                     .integers("pads", both_ends(before, after))
                     .integers("dilations", dilation)
                     .integer("group", op.template attribute<std::int64_t>("groups")));
}

template <class T>
void emit_transposed_convolution(Exporter<T>& to, const OpPair<T>& op) {
  const Shape& weight = op.shape("weight");
  const std::size_t axes = weight.size() - 2;
  const Numbers padding = per_axis_of(op, "padding", axes);
  emit_of_images(to, op, "ConvTranspose", convolution_inputs(to, op), axes,
                 AttributeWriter()
                     .integers("kernel_shape", Numbers(weight.begin() + 2, weight.end()))
                     .integers("strides", per_axis_of(op, "stride", axes))
                     .integers("pads", both_ends(padding, padding))
                     .integers("output_padding", per_axis_of(op, "output_padding", axes))
                     .integers("dilations", per_axis_of(op, "dilation", axes))
                     .integer("group", op.template attribute<std::int64_t>("groups")));
}

template <class T>
void emit_average(Exporter<T>& to, const OpPair<T>& op) {
  const std::size_t axes = op.info() == ops::avg_pool1d ? 1 : 2;
  // the runtimes disagree about the last window then
  if (op.template attribute<bool>("ceil_mode")) refuse("with ceil_mode");
  if (op.has_attribute("divisor_override")) refuse("with divisor_override");
  const Numbers padding = per_axis_of(op, "padding", axes);
  emit_of_images(to, op, "AveragePool", {to.name_of(op, "x")}, axes,
                 AttributeWriter()
                     .integers("kernel_shape", per_axis_of(op, "kernel_size", axes))
                     .integers("strides", per_axis_of(op, "stride", axes))
                     .integers("pads", both_ends(padding, padding))
                     .integer("count_include_pad", op.template attribute<bool>("count_include_pad") ? 1 : 0));
}

template <class T>
void emit_maximum(Exporter<T>& to, const OpPair<T>& op) {
  const std::size_t axes = op.info() == ops::max_pool1d ? 1 : 2;
  // the runtimes disagree about the last window then
  if (op.template attribute<bool>("ceil_mode")) refuse("with ceil_mode");
  const Numbers padding = per_axis_of(op, "padding", axes);
  emit_of_images(to, op, "MaxPool", {to.name_of(op, "x")}, axes,
                 AttributeWriter()
                     .integers("kernel_shape", per_axis_of(op, "kernel_size", axes))
                     .integers("strides", per_axis_of(op, "stride", axes))
                     .integers("pads", both_ends(padding, padding))
                     .integers("dilations", per_axis_of(op, "dilation", axes)));
}

/// As many windows as fit side by side, or one of all elements.
template <class T>
void emit_adaptive(Exporter<T>& to, const OpPair<T>& op) {
  const bool is_mean = op.info() == ops::adaptive_avg_pool1d || op.info() == ops::adaptive_avg_pool2d;
  const std::size_t axes =
      op.info() == ops::adaptive_avg_pool1d || op.info() == ops::adaptive_max_pool1d ? 1 : 2;
  const Shape &x = op.shape("x"), &y = op.first.result.shape();
  const auto is_one = [&](const Shape& shape) {
    return std::all_of(shape.end() - static_cast<std::ptrdiff_t>(axes), shape.end(),
                       [](std::size_t length) { return length == 1; });
  };
  if (is_one(y) && is_one(op.second.result.shape()))
    return emit_of_images(to, op, is_mean ? "GlobalAveragePool" : "GlobalMaxPool", {to.name_of(op, "x")},
                          axes, AttributeWriter());
  const SymbolicShape shape = to.explained(x, op.second.inputs[0].shape());
  Numbers kernel;
  for (std::size_t place = x.size() - axes; place < x.size(); ++place) {
    if (!shape[place].is_fixed() || x[place] % y[place] != 0)
      refuse("whose windows of " + std::to_string(x[place]) + " elements differ");
    kernel.push_back(static_cast<std::int64_t>(x[place] / y[place]));
  }
  emit_of_images(to, op, is_mean ? "AveragePool" : "MaxPool", {to.name_of(op, "x")}, axes,
                 AttributeWriter().integers("kernel_shape", kernel).integers("strides", kernel));
}

template <class T>
void emit_interpolation(Exporter<T>& to, const OpPair<T>& op) {
  const auto& mode = op.template attribute<std::string>("mode");
  AttributeWriter attributes;
  if (mode == "nearest") {
    attributes.text("mode", "nearest")
        .text("coordinate_transformation_mode", "asymmetric")
        .text("nearest_mode", "floor");
  } else {
    attributes.text("mode", mode == "bicubic" ? "cubic" : "linear")
        .text("coordinate_transformation_mode",
              op.template attribute<bool>("align_corners") ? "align_corners" : "half_pixel");
    if (mode == "bicubic") attributes.number("cubic_coeff_a", -0.75F);
  }
  const std::string sizes = to.list(to.explained(op.first.result.shape(), op.second.result.shape()));
  to.result(op, to.graph().node("Resize", {to.name_of(op, "x"), "", "", sizes}, attributes));
}

}  // namespace

template <class T>
void add_window_emitters(EmitterTable<T>& all) {
  add_emitter(all, &emit_convolution<T>, {&ops::conv1d, &ops::conv2d});
  add_emitter(all, &emit_transposed_convolution<T>, {&ops::conv_transpose1d, &ops::conv_transpose2d});
  add_emitter(all, &emit_average<T>, {&ops::avg_pool1d, &ops::avg_pool2d});
  add_emitter(all, &emit_maximum<T>, {&ops::max_pool1d, &ops::max_pool2d});
  add_emitter(all, &emit_adaptive<T>,
              {&ops::adaptive_avg_pool1d, &ops::adaptive_avg_pool2d, &ops::adaptive_max_pool1d,
               &ops::adaptive_max_pool2d});
  add_emitter(all, &emit_interpolation<T>, {&ops::interpolate});
}

template void add_window_emitters(EmitterTable<float>&);
template void add_window_emitters(EmitterTable<double>&);

}  // namespace xgrad::onnx::detail
