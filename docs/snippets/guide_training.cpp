// The page "Training", section by section
#include <cstdio>
#include <iostream>
#include <span>

#include <xgrad/xgrad.hpp>

namespace {

using xgrad::Variable;

using Batch = std::pair<xgrad::Ids, xgrad::Ids>;  // ids and labels

xgrad::ToyEncoder<float> make_model() {
  xgrad::manual_seed(0);
  return xgrad::ToyEncoder<float>(
      {.vocab_size = 8, .max_len = 4, .classes = 2, .encoder = {.d_model = 8, .heads = 2, .d_ff = 16}});
}

void loop() {
  std::cout << "# loop\n";
  const xgrad::ToyEncoder<float> model = make_model();
  const xgrad::Ids ids{{1, 2, 3, 4}, {4, 3, 2, 1}}, labels{0, 1};
  const double first = cross_entropy(model.class_logits(ids), labels).item();
  // [loop]
  xgrad::Adam<float> optimizer(model.parameters(), {.lr = 1e-2});
  for (int step = 0; step < 50; ++step) {
    optimizer.zero_grad();
    const xgrad::Variable<float> loss = cross_entropy(model.class_logits(ids), labels);
    loss.backward();
    optimizer.step();
  }
  // [loop]
  const double last = cross_entropy(model.class_logits(ids), labels).item();
  std::cout << (last < 0.1 * first ? "the loss fell below a tenth" : "the loss did not fall") << '\n';
}

void everything() {
  std::cout << "# everything\n";
  const xgrad::ToyEncoder<float> model = make_model();
  const auto classify = [&](const xgrad::Ids& ids) { return model.class_logits(ids); };
  std::vector<Variable<float>> weights, biases;
  for (const auto& [name, parameter] : model.named_parameters()) {
    (name.ends_with("bias") ? biases : weights).push_back(parameter);
  }
  const std::vector<Batch> small_batches{{xgrad::Ids{{1, 2, 3, 4}}, xgrad::Ids{0}},
                                         {xgrad::Ids{{4, 3, 2, 1}}, xgrad::Ids{1}}};
  // [everything]
  xgrad::AdamW<float> optimizer({{.parameters = weights, .options = {.lr = 1e-3}},
                                 {.parameters = biases, .options = {.lr = 1e-3, .weight_decay = 0}}});
  xgrad::SequentialLR<float> scheduler(
      optimizer,
      {xgrad::LinearLR<float>(optimizer, {.start_factor = 0.01, .total_iters = 20}),
       xgrad::CosineAnnealingLR<float>(optimizer, 180)},
      {20});
  xgrad::ExponentialMovingAverage<float> average(model);
  for (std::size_t step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    for (const auto& [ids, labels] : small_batches) {  // gradients add up
      (cross_entropy(classify(ids), labels) / static_cast<float>(small_batches.size())).backward();
    }
    clip_grad_norm(optimizer.parameters(), 1.0);
    optimizer.step();
    scheduler.step();
    average.update();
  }
  const auto applied = average.apply();  // the model has its averaged weights as long as this lives
  // [everything]
  std::cout << optimizer.group_count() << " groups, last rate below 1e-9: " << std::boolalpha
            << (optimizer.lr() < 1e-9) << '\n';
}

void fitting() {
  std::cout << "# fit\n";
  const xgrad::ToyEncoder<float> model = make_model();
  const xgrad::Ids ids{{1, 2, 3, 4}, {4, 3, 2, 1}}, labels{0, 1};
  xgrad::Adam<float> optimizer(model.parameters(), {.lr = 1e-2});
  // [fit]
  const auto step = [&](std::size_t) -> xgrad::StepResult {
    optimizer.zero_grad();
    const Variable<float> loss = cross_entropy(model.class_logits(ids), labels);
    loss.backward();
    const double norm = clip_grad_norm(optimizer.parameters(), 1.0);
    optimizer.step();
    return {.loss = loss.item(), .lr = optimizer.lr(), .grad_norm = norm, .tokens = ids.size()};
  };
  xgrad::EarlyStopping stopping({.patience = 3, .better = xgrad::Better::lower});
  const auto evaluate = [&](std::size_t) {
    const xgrad::NoGrad guard;
    stopping.update(cross_entropy(model.class_logits(ids), labels).item());
    return !stopping.should_stop();  // false ends the run
  };
  const xgrad::TrainingLog log = xgrad::fit(
      100, step, {.progress = false, .metrics = "steps.jsonl", .evaluate = evaluate, .evaluate_every = 25});
  // [fit]
  std::cout << log.steps << " steps, " << log.losses.size() << " losses\n";
  std::remove("steps.jsonl");
}

}  // namespace

int main() {
  loop();
  everything();
  fitting();
}
