// Every parameter of an encoder checked against finite differences, and a wrong backward refused
#include <iostream>

#include <xgrad/xgrad.hpp>

using xgrad::Grads, xgrad::Needs, xgrad::Variable;

constexpr xgrad::Op wrong_square_op("wrong_square", {"x"});

/// y = x^2 with a mistake in its backward: dx should be 2 x dy.
Variable<double> wrong_square(const Variable<double>& x) {
  return xgrad::record<double>(
      wrong_square_op, x.detach() * x.detach(), xgrad::Inputs(x), xgrad::Saved(x),
      [](Variable<double> dy, Needs, Variable<double> x) -> Grads<double, 1> { return {dy * x}; });
}

int main() {
  xgrad::manual_seed(0);
  const xgrad::ToyEncoder<double> model(
      {.vocab_size = 7,
       .max_len = 4,
       .classes = 3,
       .encoder = {
           .d_model = 8, .heads = 2, .d_ff = 16, .layers = 1, .activation = xgrad::Activation::gelu}});
  const xgrad::Ids sentences{{1, 2, 3, 0}, {4, 5, 6, 2}};
  const xgrad::Ids labels{0, 2};

  // gradcheck moves the elements of the listed leaves; the function reads them through the model.
  const auto loss = [&](const std::vector<Variable<double>>&) {
    return cross_entropy(model.class_logits(sentences), labels) + mean(model.token_logits(sentences));
  };
  const xgrad::GradcheckReport report = xgrad::gradcheck(loss, model.parameters());
  std::cout << model.parameter_count() << " parameters: " << (report ? "right" : report.worst) << '\n';

  const Variable<double> x(xgrad::Array<double>{1, 2, 3}, true);
  const auto wrong = [](const std::vector<Variable<double>>& inputs) { return wrong_square(inputs[0]); };
  const xgrad::GradcheckReport refused = xgrad::gradcheck(wrong, {x}, {.seed = 1});
  std::cout << "wrong_square: " << (refused ? "right" : refused.worst) << '\n';
}
