#pragma once

// Everything of xgrad::files, a library of its own: link to it after find_package(xgrad COMPONENTS files).

#include "files/checkpoint.hpp"
#include "files/npy.hpp"
#include "files/safetensors.hpp"
#include "files/tensor_view.hpp"
