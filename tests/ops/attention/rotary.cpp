// What there is to test of rotary.
#include <xgrad/ops/attention/rotary.hpp>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::rotary_rows {

using naive::at, naive::generated, naive::joined, naive::Numbers, naive::Arguments;

struct Sample {
  Shape x, angles;
  xgrad::RotaryOptions how = {};
};

Reference naive_rotary(xgrad::RotaryOptions how) {
  return [how](const Arguments& x) {
    const std::size_t dim = x[0].shape().back() / how.num_heads, pairs = x[1].shape().back();
    return generated(x[0].shape(), [&](const Shape& index) {
      Shape other = index, angle = index;
      const std::size_t e = index.back() % dim, head = index.back() - e;
      if (e >= 2 * pairs) return at(x[0], index);
      const bool is_first = how.interleaved ? e % 2 == 0 : e < pairs;
      const std::size_t apart = how.interleaved ? 1 : pairs;
      other.back() = head + (is_first ? e + apart : e - apart);
      angle.back() = how.interleaved ? e / 2 : e % pairs;
      const double turned = at(x[0], other) * at(x[2], angle);
      return at(x[0], index) * at(x[1], angle) + (is_first ? -turned : turned);
    });
  };
}

std::vector<Case> cases(const std::vector<Sample>& samples) {
  std::vector<Case> all;
  for (const Sample& sample : samples) {
    const auto call = [how = sample.how](const auto& x) { return xgrad::rotary(x[0], x[1], x[2], how); };
    all.push_back(make_case({sample.x, sample.angles, sample.angles}, call, naive_rotary(sample.how)));
  }
  return all;
}

ErrorCase refused(const std::string& got, Shape of_x, Shape cos, Shape sin, std::size_t heads = 1) {
  return error<ShapeError>(
      "rotary: x must be (..., L, H E), cos and sin (L, r) or (..., L, r) with 2 r <= E, got " + got,
      [=] { xgrad::rotary(x(of_x), x(cos), x(sin), {.num_heads = heads}); });
}

const Rows rows([] {
  Op op{"rotary",
        cases({{{3, 4}, {3, 2}},
               {{3, 4}, {3, 2}, {.interleaved = true}},
               {{2, 3, 12}, {3, 2}, {.num_heads = 3}},
               {{2, 3, 12}, {2, 3, 3}, {.num_heads = 2, .interleaved = true}},
               {{2, 3, 10}, {3, 2}, {.num_heads = 2}},
               {{2, 3, 10}, {2, 3, 1}, {.num_heads = 2, .interleaved = true}},
               {{2, 2, 3, 2}, {3, 1}},
               {{0, 3, 4}, {3, 2}},
               {{2, 0, 4}, {0, 2}},
               {{3, 34}, {3, 17}}}),
        {refused("x (3, 4), cos (2, 2) and sin (2, 2) for 1 heads", {3, 4}, {2, 2}, {2, 2}),
         refused("x (3, 4), cos (3, 2) and sin (3, 1) for 1 heads", {3, 4}, {3, 2}, {3, 1}),
         refused("x (3, 4), cos (3, 2) and sin (3, 2) for 2 heads", {3, 4}, {3, 2}, {3, 2}, 2),
         refused("x (3, 5), cos (3, 1) and sin (3, 1) for 2 heads", {3, 5}, {3, 1}, {3, 1}, 2),
         refused("x (4), cos (4, 2) and sin (4, 2) for 1 heads", {4}, {4, 2}, {4, 2}),
         error<ValueError>("rotary: num_heads must be at least 1, got 0",
                           [] { xgrad::rotary(x(3, 4), x(3, 2), x(3, 2), {.num_heads = 0}); })},
        cases({{{5, 203, 96}, {203, 8}, {.num_heads = 6}},
               {{5, 203, 96}, {5, 203, 6}, {.num_heads = 6, .interleaved = true}}})};
  return std::vector<Op>{op};
});

const Conformance conformance{
    {"rotary", [](const auto& c) {
       return rotary(c.x(), c.x(1), c.x(2),
                     {.num_heads = c.count("num_heads"), .interleaved = c.flag("interleaved")});
     }}};

void draw_rotary(Drawing& d) {
  const std::size_t heads = 1 + d.below(3), pairs = 1 + d.below(2), rest = d.below(2);
  Shape shape = d.shape(2, 4);
  shape.back() = heads * (2 * pairs + rest);
  const Shape of_rows = naive::with(shape, shape.size() - 1, pairs),
              of_positions{shape[shape.size() - 2], pairs};
  const Shape& angles = d.chance(0.5) ? of_rows : of_positions;
  d.call("rotary", {d.numbers(shape), d.numbers(angles), d.numbers(angles)},
         {{"num_heads", static_cast<std::ptrdiff_t>(heads)}, {"interleaved", d.chance(0.5)}});
}

const Draws draws{{"rotary", draw_rotary}};

TEST(RotaryTest, TheOppositeAngleRotatesBack) {
  const Variable<double> x(Array<double>{{1, 2, 3, 4}}), cos(Array<double>{{0.6, 0}}),
      sin(Array<double>{{0.8, 1}});
  const Variable<double> turned = rotary(x, cos, sin);
  EXPECT_NEAR(turned.value()(0, 0), 0.6 * 1 - 0.8 * 3, 1e-15);
  EXPECT_NEAR(turned.value()(0, 1), -4, 1e-15);
  const Variable<double> back = rotary(turned, cos, Variable<double>(-sin.value()));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(back.value()(0, i), x.value()(0, i), 1e-15);
}

}  // namespace xgrad_tests::rotary_rows
