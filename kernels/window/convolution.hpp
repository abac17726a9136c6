#pragma once

#include "windows.hpp"

// The three products of a convolution: each is linear in its two operands, and their gradients are the
// others.
namespace xgrad::kernels {

/// Of images (batch, groups in, image), weight (groups out, in, windows' size) and maps (batch, groups out,
/// windows' count), where `in` and `out` are channels of a group.
struct ConvolutionSizes {
  std::size_t batch, groups, in, out;
  Windows windows;
};

/// How many multiplications cost as much as an addition to memory.
inline constexpr std::size_t products_per_addition = 8;

/// maps[b, g o, w] = sum over c and k of weight[g o, c, k] times element k of window w of images[b, g c].
template <typename T>
void convolution(const ConvolutionSizes& sizes, const T* images, const T* weight, T* maps);

/// The same sum for images: the gradient for the images if that of the maps is `maps`.
template <typename T>
void transposed_convolution(const ConvolutionSizes& sizes, const T* maps, const T* weight, T* images);

/// Elements of scratch memory that convolution_weight needs.
template <typename T>
std::size_t convolution_weight_scratch(const ConvolutionSizes& sizes);

/// The same for weight: its gradient if that of the maps is `maps`.
template <typename T>
void convolution_weight(const ConvolutionSizes& sizes, const T* images, const T* maps, T* weight, T* scratch);

}  // namespace xgrad::kernels
