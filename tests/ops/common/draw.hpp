#pragma once

// How an op's file tells random_programs to draw calls of the op: of inputs that suit it, and attributes.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "call.hpp"
#include "op.hpp"

namespace xgrad_tests {

using xgrad::Array, xgrad::Ids, xgrad::Mask, xgrad::Shape;

/// What a program names: a leaf x0, x1, ... or a result y0, y1, ...; empty for an operand that is not there.
using Name = std::string;

/// An attribute of a drawn call.
struct Attr {
  using Value =
      std::variant<std::nullptr_t, bool, std::ptrdiff_t, double, std::string, std::vector<std::ptrdiff_t>>;

  const char* name;
  Value value;
};

/// A constant or a variable that a program begins with: numbers, ids or a mask.
struct Leaf {
  Value<double> value;
  bool requires_grad = false;
};

/// A call of a program.
struct Step {
  std::string op;
  std::vector<Name> inputs;
  std::vector<Attr> attrs;
  std::vector<Name> results;
};

/// A straight line of calls. The last result is a scalar.
struct Program {
  std::map<Name, Leaf> leaves;
  std::vector<Step> steps;
  std::set<Name> of_any_sign = {};  ///< that another library may give with other signs, rightly

  const Name& loss() const { return steps.back().results.front(); }
};

/// The attributes as the cases of the conformance program have them.
nlohmann::json as_json(const std::vector<Attr>& attrs);

/// The program without what its loss does not depend on.
Program pruned(const Program& program);

/// Values by their names.
template <class T>
using Values = std::map<Name, Value<T>>;

/// Adds the results of the step.
template <class T>
void run(const Step& step, Values<T>& values);

/// A program that grows: each call is computed in double as it is drawn, so that the next one knows its
/// inputs. What is chosen is the same for the same seed.
class Drawing {
 public:
  /// Of axes, and of all elements of what is drawn; results may be larger.
  struct Sizes {
    std::size_t longest, most;
    double often;  ///< the share of axes that are longer than a few elements
  };

  /// Program number `number` of a seed.
  Drawing(std::uint64_t seed, std::uint64_t number, Sizes sizes);

  // Chance

  /// From 0 to n - 1.
  std::size_t below(std::size_t n);
  bool chance(double probability);
  double uniform(double low, double high);

  template <class V>
  V one_of(std::initializer_list<V> values) {
    return values.begin()[below(values.size())];
  }

  // Shapes

  Shape shape(std::size_t least_rank = 0, std::size_t most_rank = 4);
  std::size_t length();
  /// One that broadcasts to this shape, perhaps itself.
  Shape narrowed(const Shape& shape);
  /// An axis of x, counted from either end; 0 or -1 if it has none.
  std::ptrdiff_t axis(const Name& x);
  /// Some axes of x in any order, counted from either end, or null for all.
  Attr::Value axes(const Name& x);
  /// The numbers from 0 to n - 1 in any order.
  std::vector<std::ptrdiff_t> order(std::size_t n);

  // Operands

  /// Numbers that are there, most often a result that nothing has used, or a new leaf; of at least so many
  /// axes.
  Name numbers(std::size_t least_rank = 0);
  /// The same, of this shape.
  Name numbers(const Shape& shape);
  /// Numbers, an axis of theirs as a call may name it, and its length.
  struct Cut {
    Name x;
    std::ptrdiff_t dim;
    std::size_t length;
  };
  Cut cut();
  /// x, or a function of it whose elements lie in the range.
  Name within(const Name& x, Range range);
  /// Numbers that need no gradient.
  Name constant(const Shape& shape, Range range = {});
  /// From 0 to end - 1.
  Name ids(const Shape& shape, std::size_t end);
  Name mask(const Shape& shape);
  Name leaf(Leaf leaf);

  // Values

  const Values<double>& values() const { return values_; }
  const Array<double>& value(const Name& x) const;
  const Shape& shape(const Name& x) const { return value(x).shape(); }
  std::size_t rank(const Name& x) const { return shape(x).size(); }

  /// Whether no element is so near to `place`, where a function of it has a kink, that in float or in a
  /// finite difference it could be on the other side. One that is there came from a constant or a kink, and
  /// stays.
  static bool is_clear_of(double place, const Array<double>& x);

  // Calls

  /// Adds the call and gives the names of its results. Throws what the op throws.
  std::vector<Name> call(const std::string& op, const std::vector<Name>& inputs,
                         const std::vector<Attr>& attrs = {}, std::size_t results = 1);

  /// The first result of the call, which is not added.
  Array<double> result(const std::string& op, const std::vector<Name>& inputs,
                       const std::vector<Attr>& attrs = {}) const;

  /// No call that is drawn later uses x.
  void hide(const Name& x);
  /// The same for x with signs that the op leaves open, as those of eigenvectors.
  void hide_of_any_sign(const Name& x);

  /// The program, ended with a weighted sum of all results that nothing used.
  Program finished();
  std::size_t size() const { return program_.steps.size(); }

 private:
  Array<double> elements(const Shape& shape, Range range);
  /// One of the numbers that are there and fit, or "".
  template <class Fits>
  Name existing(const Fits& fits);

  std::mt19937_64 random_;
  Sizes sizes_;
  std::size_t results_ = 0;
  Program program_;
  Values<double> values_;
  std::vector<Name> usable_;  // numbers that are finite and of moderate size
  std::vector<Name> unused_;  // results
};

/// The result of a call with one.
inline Name drawn(Drawing& d, const std::string& op, const std::vector<Name>& inputs,
                  const std::vector<Attr>& attrs = {}) {
  return d.call(op, inputs, attrs).front();
}

/// How calls of an op are drawn; f(drawing) calls it, or does not where that does not suit.
struct Draw {
  std::string op;
  std::function<void(Drawing&)> add;
};

/// Makes draws known.
struct Draws {
  Draws(std::initializer_list<Draw> draws);
};

/// All draws, by name.
const std::vector<Draw>& draw_table();

// What several ops need

/// Two operands that broadcast.
std::pair<Name, Name> broadcasting(Drawing& d);

/// A shape or axes.
template <class Lengths>
std::vector<std::ptrdiff_t> listed(const Lengths& lengths) {
  return {lengths.begin(), lengths.end()};
}

}  // namespace xgrad_tests
