// What there is to test of diagonal, diag_embed, diag and trace.
#include <xgrad/ops/linalg/diagonal.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/matrices.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::diagonal_rows {

using naive::Matrix, naive::of_matrices;

using Offset = std::ptrdiff_t;

/// diagonal(), element by element.
Reference naive_diagonal(Offset offset, std::size_t dim1, std::size_t dim2) {
  if (dim1 > dim2) return naive_diagonal(-offset, dim2, dim1);
  return [=](const naive::Arguments& x) {
    const Offset rows = static_cast<Offset>(x[0].shape()[dim1]),
                 columns = static_cast<Offset>(x[0].shape()[dim2]);
    const Offset down = std::max<Offset>(-offset, 0), right = std::max<Offset>(offset, 0);
    const Offset length = std::max<Offset>(std::min(rows - down, columns - right), 0);
    Shape shape = naive::without(naive::without(x[0].shape(), dim2), dim1);
    shape.push_back(static_cast<std::size_t>(length));
    return naive::generated(shape, [&](const Shape& index) {
      Shape from(index.begin(), index.end() - 1);
      const std::size_t i = index.back();
      from.insert(from.begin() + static_cast<Offset>(dim1), i + static_cast<std::size_t>(down));
      from.insert(from.begin() + static_cast<Offset>(dim2), i + static_cast<std::size_t>(right));
      return naive::at(x[0], from);
    });
  };
}

Reference naive_diag_embed(Offset offset, std::size_t dim1, std::size_t dim2) {
  if (dim1 > dim2) return naive_diag_embed(-offset, dim2, dim1);
  return [=](const naive::Arguments& x) {
    const std::size_t n = x[0].shape().back() + static_cast<std::size_t>(std::abs(offset));
    Shape shape(x[0].shape().begin(), x[0].shape().end() - 1);
    shape.insert(shape.begin() + static_cast<Offset>(dim1), n);
    shape.insert(shape.begin() + static_cast<Offset>(dim2), n);
    return naive::generated(shape, [&](const Shape& index) {
      const Offset row = static_cast<Offset>(index[dim1]), column = static_cast<Offset>(index[dim2]);
      if (column - row != offset) return 0.0;
      Shape from = naive::without(naive::without(index, dim2), dim1);
      from.push_back(static_cast<std::size_t>(std::min(row, column)));
      return naive::at(x[0], from);
    });
  };
}

Op diagonal_op() {
  Op op{"diagonal"};
  const auto add = [&](const Shape& shape, Offset offset, int dim1, int dim2, std::size_t first,
                       std::size_t second) {
    op.cases.push_back(make_case(
        {shape}, [=](const auto& x) { return xgrad::diagonal(x[0], offset, dim1, dim2); },
        naive_diagonal(offset, first, second)));
  };
  for (const Offset offset : {0, 1, -1, 2, -5, 7}) {
    add({3, 3}, offset, 0, 1, 0, 1);
    add({2, 4, 3}, offset, -2, -1, 1, 2);
    add({4, 2, 3}, -offset, 2, 0, 2, 0);
  }
  add({0, 3}, 0, 0, 1, 0, 1);
  op.large = make_cases(
      {{{140, 140, 140}}}, [](const auto& x) { return xgrad::diagonal(x[0], 1, 0, -1); },
      naive_diagonal(1, 0, 2));
  op.errors = {error<IndexError>("diagonal: axis 2 is out of range for x (2, 3)",
                                 [] { xgrad::diagonal(x(2, 3), 0, 0, 2); }),
               error<ValueError>("diagonal: dim1 and dim2 must be two axes, got 1 twice",
                                 [] { xgrad::diagonal(x(2, 3), 0, 1, -1); })};
  return op;
}

Op diag_embed_op() {
  Op op{"diagonal.diag_embed"};
  const auto add = [&](const Shape& shape, Offset offset, int dim1, int dim2, std::size_t first,
                       std::size_t second) {
    op.cases.push_back(make_case(
        {shape}, [=](const auto& x) { return xgrad::diag_embed(x[0], offset, dim1, dim2); },
        naive_diag_embed(offset, first, second)));
  };
  for (const Offset offset : {0, 1, -2}) {
    add({3}, offset, -2, -1, 0, 1);
    add({2, 3}, offset, 0, 2, 0, 2);
    add({2, 0}, offset, -2, -1, 1, 2);
    add({2, 3, 2}, -offset, -1, 1, 3, 1);
  }
  op.large = make_cases(
      {{{300, 21}}}, [](const auto& x) { return xgrad::diag_embed(x[0]); }, naive_diag_embed(0, 1, 2));
  op.errors = {
      error<ShapeError>("diag_embed: x must have at least one axis, got ()", [] { xgrad::diag_embed(x()); }),
      error<IndexError>("diag_embed: axis 3 is out of range for the result (2, 3, 3)",
                        [] { xgrad::diag_embed(x(2, 3), 0, 0, 3); }),
      error<ValueError>("diag_embed: dim1 and dim2 must be two axes, got 0 twice",
                        [] { xgrad::diag_embed(x(2), 0, 0, 0); })};
  return op;
}

Op diag_op() {
  Op op{"diagonal.diag"};
  for (const Offset offset : {0, 1, -2}) {
    op.cases.push_back(make_case(
        {{3, 4}}, [=](const auto& x) { return xgrad::diag(x[0], offset); }, naive_diagonal(offset, 0, 1)));
    op.cases.push_back(make_case(
        {{3}}, [=](const auto& x) { return xgrad::diag(x[0], offset); }, naive_diag_embed(offset, 0, 1)));
  }
  op.large = make_cases(
      {{{400}}}, [](const auto& x) { return xgrad::diag(x[0]); }, naive_diag_embed(0, 0, 1));
  op.errors = {error<ShapeError>("diag: x must be a vector or a matrix, got (2, 3, 3)",
                                 [] { xgrad::diag(x(2, 3, 3)); })};
  return op;
}

Op trace_op() {
  Op op{"diagonal.trace"};
  const auto f = [](const auto& x) { return xgrad::trace(x[0]); };
  const Reference reference = of_matrices(
      [](const auto& x) {
        Matrix y(1, 1);
        for (std::size_t i = 0; i < std::min(x[0].rows, x[0].cols); ++i) y(0, 0) += x[0](i, i);
        return y;
      },
      naive::no_axes);
  op.cases = make_cases({{{3, 3}}, {{2, 3}}, {{4, 2, 3}}, {{0, 3}}, {{2, 0, 0}}}, f, reference);
  op.large = make_cases({{{5000, 4, 4}}, {{300, 500}}}, f, reference);
  op.errors = {
      error<ShapeError>("trace: x must be matrices (..., m, n), got (3)", [] { xgrad::trace(x(3)); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{diagonal_op(), diag_embed_op(), diag_op(), trace_op()}; });

template <class C>
Offset offset_of(const C& c, const char* name) {
  return c.has_attr(name) ? c.integer(name) : 0;
}

template <class C>
int dim_of(const C& c, const char* name, int absent) {
  return c.has_attr(name) ? c.dim(name) : absent;
}

const Conformance conformance{
    {"diagonal",
     [](const auto& c) {
       return diagonal(c.x(), offset_of(c, "offset"), dim_of(c, "dim1", 0), dim_of(c, "dim2", 1));
     }},
    {"diag_embed",
     [](const auto& c) {
       return diag_embed(c.x(), offset_of(c, "offset"), dim_of(c, "dim1", -2), dim_of(c, "dim2", -1));
     }},
    {"diag", [](const auto& c) { return diag(c.x(), offset_of(c, "diagonal")); }},
    {"trace", [](const auto& c) { return trace(c.x()); }}};

Offset drawn_offset(Drawing& d) { return static_cast<Offset>(d.below(5)) - 2; }

const Draws draws{
    {"diagonal",
     [](Drawing& d) {
       const Name x = d.numbers(2);
       const std::vector<Offset> order = d.order(d.rank(x));
       d.call("diagonal", {x}, {{"offset", drawn_offset(d)}, {"dim1", order[0]}, {"dim2", order[1]}});
     }},
    {"diag_embed",
     [](Drawing& d) {
       const Name x = d.numbers(1);
       if (d.shape(x).back() > 20) return;
       const std::vector<Offset> order = d.order(d.rank(x) + 1);
       d.call("diag_embed", {x}, {{"offset", drawn_offset(d)}, {"dim1", order[0]}, {"dim2", order[1]}});
     }},
    {"diag",
     [](Drawing& d) {
       const Name x = d.numbers(1);
       if (d.rank(x) <= 2 && d.shape(x).back() <= 20) d.call("diag", {x}, {{"diagonal", drawn_offset(d)}});
     }},
    {"trace", [](Drawing& d) { d.call("trace", {d.numbers(2)}); }}};

TEST(DiagonalTest, AnyOffsetMayBeGiven) {
  constexpr Offset most = std::numeric_limits<Offset>::max(), least = std::numeric_limits<Offset>::min();
  for (const Offset offset : {most, least, -most})
    EXPECT_EQ(diagonal(x(2, 3), offset).shape(), (Shape{0})) << offset;
  for (const Offset offset : {most, least, most / 4})
    EXPECT_NE(message_of<ShapeError>([&] { diag_embed(x(2), offset); }), "no exception") << offset;
}

}  // namespace xgrad_tests::diagonal_rows
