#pragma once

#include <cstddef>

namespace xgrad::kernels {

/// x and y are (rows, heads * head_dim), cos and sin (angle_rows, pairs), with 2 pairs <= head_dim: row r has
/// the angles of row r % angle_rows. A pair is the elements 2 i and 2 i + 1 of a head if interleaved, else i
/// and pairs + i; the elements behind the pairs are not rotated.
struct RotarySizes {
  std::size_t rows, heads, head_dim, angle_rows, pairs;
  bool interleaved;
};

/// Rotates each pair (a, b) of x to (a cos - b sin, b cos + a sin); with `backwards` by the negative angle.
template <typename T>
void rotary(const RotarySizes& sizes, const T* x, const T* cos, const T* sin, bool backwards, T* y);

/// dcos = sum of a da + b db and dsin = sum of a db - b da over the heads, and over the rows that share
/// angles, with (da, db) the gradient of a rotated pair.
template <typename T>
void rotary_grad_angles(const RotarySizes& sizes, const T* dy, const T* x, T* dcos, T* dsin);

}  // namespace xgrad::kernels
