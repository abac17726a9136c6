// What there is to test of einsum.
#include <xgrad/ops/product/einsum.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::einsum_rows {

using naive::at, naive::filled, naive::for_each_index, naive::Numbers, naive::Arguments;

Reference naive_einsum(std::vector<std::string> operands, std::string output) {
  return [operands, output](const Arguments& x) {
    std::string letters = output;
    for (const std::string& operand : operands)
      for (const char letter : operand)
        if (letters.find(letter) == letters.npos) letters += letter;
    Shape lengths(letters.size(), 1);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t axis = 0; axis < operands[i].size(); ++axis) {
        if (x[i].shape()[axis] != 1) lengths[letters.find(operands[i][axis])] = x[i].shape()[axis];
      }
    }
    const auto chosen = [&](const std::string& axes, const Shape& index) {
      Shape result;
      for (const char letter : axes) result.push_back(index[letters.find(letter)]);
      return result;
    };
    Numbers y =
        filled(Shape(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(output.size())), 0);
    for_each_index(lengths, [&](const Shape& index) {
      double product = 1;
      for (std::size_t i = 0; i < x.size(); ++i) product *= at(x[i], chosen(operands[i], index));
      at(y, chosen(output, index)) += product;
    });
    return y;
  };
}

Op einsum_op() {
  Op op{"einsum"};
  const auto add = [&op](const char* equation, std::vector<Input> inputs, std::vector<std::string> operands,
                         const char* output) {
    op.cases.push_back(make_case(
        std::move(inputs), [equation](const auto& x) { return xgrad::einsum(equation, x); },
        naive_einsum(std::move(operands), output)));
  };
  add("ij,jk->ik", {{2, 3}, {3, 4}}, {"ij", "jk"}, "ik");
  add("bhqd,bhkd->bhqk", {{2, 3, 4, 2}, {2, 3, 5, 2}}, {"bhqd", "bhkd"}, "bhqk");
  add("ij->ji", {{2, 3}}, {"ij"}, "ji");
  add("ij->", {{2, 3}}, {"ij"}, "");
  add("ij,ij->i", {{2, 3}, {2, 3}}, {"ij", "ij"}, "i");
  add("i,j->ij", {{2}, {3}}, {"i", "j"}, "ij");
  add("ij,ij->ji", {{2, 3}, {2, 3}}, {"ij", "ij"}, "ji");
  add("ii->i", {{3, 3}}, {"ii"}, "i");
  add("ii", {{3, 3}}, {"ii"}, "");
  add("ijkji,kl->lj", {{2, 3, 2, 3, 2}, {2, 4}}, {"ijkji", "kl"}, "lj");
  add("iii->i", {{2, 2, 2}}, {"iii"}, "i");
  add("ba", {{2, 3}}, {"ba"}, "ab");
  add(" i j , j k ", {{2, 3}, {3, 4}}, {"ij", "jk"}, "ik");
  add("...ij,...jk->...ik", {{4, 1, 2, 3}, {5, 3, 2}}, {"abij", "bjk"}, "abik");
  add("i...->...", {{2, 3, 4}}, {"iab"}, "ab");
  add("...i->i", {{2, 3, 4}}, {"abi"}, "i");
  add("i...j,j", {{2, 3, 4}, {4}}, {"iaj", "j"}, "ai");
  add("ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}, {"ij", "jk", "kl"}, "il");
  add("i,ij,j->", {{2}, {2, 3}, {3}}, {"i", "ij", "j"}, "");
  add("ij,kj->ik", {{2, 1}, {3, 4}}, {"ij", "kj"}, "ik");
  add("ij,jk->ik", {{1, 3}, {3, 1}}, {"ij", "jk"}, "ik");
  add("ij,jk->ik", {{2, 0}, {0, 3}}, {"ij", "jk"}, "ik");
  add("ij,ij->ij", {{0, 1}, {1, 3}}, {"ij", "ij"}, "ij");
  add(",i->i", {{}, {3}}, {"", "i"}, "i");
  add("ab,cd->", {{2, 3}, {3, 2}}, {"ab", "cd"}, "");

  op.large = {make_case(
      {{45, 30, 33}, {45, 31, 33}}, [](const auto& x) { return xgrad::einsum("bij,bkj->bki", x); },
      naive_einsum({"bij", "bkj"}, "bki"))};

  const auto refused = [&op]<class Error>(Error, const char* message, const char* equation,
                                          std::vector<Shape> shapes) {
    op.errors.push_back(error<Error>(message, [equation, shapes] {
      Inputs<float> operands;
      for (const Shape& shape : shapes) operands.push_back(x(shape));
      xgrad::einsum(equation, operands);
    }));
  };
  const ShapeError shape("");
  const ValueError value("");
  refused(shape, "einsum: operand 0 must have 3 axes for 'ijk', got (2, 3)", "ijk,jk->ik", {{2, 3}, {3, 4}});
  refused(shape, "einsum: operand 1 must have at least 2 axes for '...jk', got (3)", "ij,...jk->ik",
          {{2, 3}, {3}});
  refused(shape,
          "einsum: axes with the same letter must have the same length, got operand 1 (4, 5) after length 3",
          "ij,jk->ik", {{2, 3}, {4, 5}});
  refused(shape, "einsum: axes with the same letter must have the same length, got axes 0 and 1 of (2, 3)",
          "ii->i", {{2, 3}});
  refused(value, "einsum: 'ij,jk->ik' must have as many terms as operands, got 2 and 1", "ij,jk->ik",
          {{2, 3}});
  refused(value, "einsum: 'ij' must have as many terms as operands, got 1 and 0", "ij", {});
  refused(value, "einsum: axes must be letters or one '...', got 'i1' in 'i1->i'", "i1->i", {{2, 3}});
  refused(value, "einsum: axes must be letters or one '...', got 'i..' in 'i..->i'", "i..->i", {{2, 3}});
  refused(value, "einsum: axes must be letters or one '...', got 'i->i' in 'i->i->i'", "i->i->i", {{2}});
  refused(value, "einsum: axes must be letters or one '...', got '......' in '......'", "......", {{2}});
  refused(value, "einsum: axes must be letters or one '...', got '...1' in '...1'", "...1", {{2}});
  refused(value, "einsum: an axis may occur in the output only once, got 'i->ii'", "i->ii", {{2}});
  refused(value, "einsum: every axis of the output must occur in an operand, got 'i->j'", "i->j", {{2}});
  return op;
}

const Rows rows([] { return std::vector<Op>{einsum_op()}; });

const Conformance conformance{{"einsum", [](const auto& c) { return einsum(c.text("equation"), c.all()); }}};

/// Operands whose axes have letters of their lengths, some of them several times, and an output of some.
void draw_einsum(Drawing& d) {
  std::string letters, equation;
  Shape lengths;
  std::vector<Name> operands;
  const auto letter_of = [&](std::size_t length) {
    for (std::size_t i = 0; i < letters.size(); ++i)
      if (lengths[i] == length && d.chance(0.4)) return letters[i];
    lengths.push_back(length);
    letters += static_cast<char>('a' + letters.size());
    return letters.back();
  };
  const bool batched = d.chance(0.2);
  Shape batch;
  for (std::size_t count = 1 + d.below(3); count > 0; --count) {
    if (operands.empty()) {
      const Name x = d.numbers(1);
      const Shape& shape = d.shape(x);
      const std::size_t free = batched ? d.below(shape.size()) : 0;
      batch.assign(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(free));
      equation = batched ? "..." : "";
      for (std::size_t axis = free; axis < shape.size(); ++axis) equation += letter_of(shape[axis]);
      operands.push_back(x);
      continue;
    }
    Shape shape = batched ? d.narrowed(batch) : Shape();
    equation += batched ? ",..." : ",";
    for (std::size_t axes = d.below(4); axes > 0 && shape.size() < 4; --axes) {
      if (d.chance(0.7)) {
        const std::size_t chosen = d.below(letters.size());
        equation += letters[chosen];
        shape.push_back(lengths[chosen]);
      } else {
        shape.push_back(d.length());
        equation += letter_of(shape.back());
      }
    }
    operands.push_back(d.numbers(shape));
  }
  equation += batched ? "->..." : "->";
  for (const std::ptrdiff_t i : d.order(letters.size()))
    if (d.chance(0.5)) equation += letters[static_cast<std::size_t>(i)];
  d.call("einsum", operands, {{"equation", equation}});
}

const Draws draws{{"einsum", draw_einsum}};

}  // namespace xgrad_tests::einsum_rows
