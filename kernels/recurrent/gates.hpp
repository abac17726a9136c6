#pragma once

#include <cstddef>

// The gates of one step of a recurrent layer. A row of `cols` elements, or of several gates of as many, is of
// one sequence; `state` is what a step changes.
namespace xgrad::kernels {

/// state = y = tanh(y), or max(0, y).
template <typename T>
void rnn_tanh_step(T* y, T* state, std::size_t rows, std::size_t cols);
template <typename T>
void rnn_relu_step(T* y, T* state, std::size_t rows, std::size_t cols);

/// dgates = dy f'(.), which y = f(.) gives.
template <typename T>
void rnn_tanh_step_grad(const T* dy, const T* y, T* dgates, std::size_t rows, std::size_t cols);
template <typename T>
void rnn_relu_step_grad(const T* dy, const T* y, T* dgates, std::size_t rows, std::size_t cols);

/// The gates r, z and n of a GRU (rows, 3 cols): those of the input become r = sigmoid(. + recurrent),
/// z = sigmoid(. + recurrent) and n = tanh(. + r recurrent); `candidate` is the last third of `recurrent`,
/// and state = y = (1 - z) n + z state.
template <typename T>
void gru_step(T* gates, const T* recurrent, T* candidate, T* state, T* y, std::size_t rows, std::size_t cols);

/// The gradients of the two sums, dgates and drecurrent (rows, 3 cols), for the state before the step.
/// dstate, the gradient of the state after it, becomes what z passes on to that before.
template <typename T>
void gru_step_grad(const T* gates, const T* candidate, const T* before, T* dstate, T* dgates, T* drecurrent,
                   std::size_t rows, std::size_t cols);

/// The gates i, f, g and o of an LSTM (rows, 4 cols): the sums become i = sigmoid(.), f = sigmoid(.),
/// g = tanh(.) and o = sigmoid(.); state = cell = f state + i g, and h = o tanh(cell).
template <typename T>
void lstm_step(T* gates, T* state, T* cell, T* h, std::size_t rows, std::size_t cols);

/// The gradient of the sums, for the cell after the step and that before. dstate, the gradient of the cell
/// from later steps, becomes that of the cell before.
template <typename T>
void lstm_step_grad(const T* dh, const T* gates, const T* cell, const T* before, T* dstate, T* dgates,
                    std::size_t rows, std::size_t cols);

}  // namespace xgrad::kernels
