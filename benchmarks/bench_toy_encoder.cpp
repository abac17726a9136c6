// Steps of the toy encoder's training on one thread, for builds with BLAS, without, and for WebAssembly
#include <cstdio>
#include <ctime>

#include <xgrad/xgrad.hpp>

#include "../apps/common/command_line.hpp"
#include "../apps/common/program.hpp"
#include "../apps/toy_language.hpp"

namespace {

constexpr std::size_t batch = 64;

/// As train_toy_encoder trains it, but always on the same sentences of random words.
void run(std::size_t steps) {
  xgrad::set_num_threads(1);
  xgrad::manual_seed(0);
  const auto words = static_cast<std::int64_t>(apps::vocabulary_of_language().size());
  const xgrad::ToyEncoder<float> model({.vocab_size = static_cast<std::size_t>(words),
                                        .max_len = apps::longest_sentence,
                                        .classes = 0,
                                        .encoder = {.d_model = 32, .heads = 4, .d_ff = 64, .layers = 1},
                                        .pad_id = apps::pad_id});
  const xgrad::Ids ids = xgrad::randint(1, words, {batch, apps::longest_sentence});
  xgrad::Ids answers = xgrad::Ids::from_shape({ids.size()});
  answers.fill(-100);
  for (std::size_t i = 0; i < ids.size(); i += apps::longest_sentence) answers(i) = ids.flat(i);
  xgrad::AdamW<float> optimizer(model.parameters());
  double first = 0, last = 0;
  const std::clock_t start = std::clock();
  for (std::size_t step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const auto loss = cross_entropy(reshape(model.token_logits(ids), {answers.size(), -1}), answers);
    last = static_cast<double>(loss.item());
    if (step == 0) first = last;
    loss.backward();
    clip_grad_norm(optimizer.parameters(), 1.0);
    optimizer.step();
  }
  std::printf("%zu steps: %.3f s of the processor, loss from %.6f to %.6f\n", steps,
              static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, first, last);
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t steps = 4000;
  apps::CommandLine app(
      "Prints the time of so many steps of the toy encoder's training, and its first and last losses.");
  app.add_option("--steps", steps, "Steps")
      ->check(apps::in_range<std::size_t>(1, 1000000))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("bench_toy_encoder", [&] {
    run(steps);
    return 0;
  });
}
