#pragma once

// Everything of xgrad::onnx, a library of its own: link to it after find_package(xgrad COMPONENTS onnx).

#include "onnx/export.hpp"
#include "onnx/graph.hpp"
#include "onnx/value.hpp"
