#pragma once

// Everything of xgrad.

#include <xgrad/graph/gradcheck.hpp>
#include <xgrad/graph/random.hpp>
#include <xgrad/graph/record.hpp>
#include <xgrad/graph/variable.hpp>
#include <xgrad/ops/arithmetic.hpp>
#include <xgrad/ops/attention.hpp>
#include <xgrad/ops/cross_entropy.hpp>
#include <xgrad/ops/dropout.hpp>
#include <xgrad/ops/elementwise.hpp>
#include <xgrad/ops/embedding.hpp>
#include <xgrad/ops/indexing.hpp>
#include <xgrad/ops/layer_norm.hpp>
#include <xgrad/ops/linear.hpp>
#include <xgrad/ops/masked_fill.hpp>
#include <xgrad/ops/matmul.hpp>
#include <xgrad/ops/reductions.hpp>
#include <xgrad/ops/shapes.hpp>
#include <xgrad/ops/softmax.hpp>
