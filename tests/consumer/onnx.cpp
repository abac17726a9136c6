#include <iostream>

#include <xgrad/onnx.hpp>

int main() {
  try {
    xgrad::onnx::load("missing.onnx");
  } catch (const xgrad::FileError& error) {
    std::cout << error.what() << '\n';
    return 0;
  }
  return 1;
}
