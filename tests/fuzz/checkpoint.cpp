// Checkpoints: a refused one changes nothing
#include <xgrad/base/random.hpp>
#include <xgrad/files/training_checkpoint.hpp>
#include <xgrad/models/layers/linear.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/train/data.hpp>
#include <xgrad/train/lr_scheduler.hpp>
#include <xgrad/train/optimizers/adam.hpp>

#include "safetensors_mutator.hpp"

namespace {

/// A small training run.
struct Run {
  xgrad::Linear<float> model{2, 1};
  xgrad::Adam<float> optimizer{model.parameters()};
  xgrad::StepLR<float> scheduler{optimizer, 2};
  xgrad::BatchSampler batches{5, {.batch_size = 2}};
  xgrad::StateDict<float> best;
  xgrad::TrainingParts parts{{"model", model},
                             {"optimizer", optimizer},
                             {"scheduler", scheduler},
                             {"batches", batches},
                             {"best", best}};

  Run() {
    sum(model(xgrad::Variable<float>(xgrad::Array<float>{{1, 2}}))).backward();
    optimizer.step();
    scheduler.step();
    batches.next();
    best = model.state_dict();
  }
};

const xgrad::Metadata config{{"--seed", "1"}};

/// All that loading may change.
auto state_of(Run& run) {
  return std::tuple(run.model.state_dict(), run.optimizer.state_dict(), run.scheduler.state_dict(),
                    run.batches.state_dict(), run.best, xgrad::get_rng_state());
}

std::string saved_run() {
  xgrad::manual_seed(1);
  Run run;
  return fuzz::written([&](const std::string& path) { save_checkpoint(run.parts, path, 1, config); });
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  static const std::string valid = saved_run();
  return fuzz::mutate_safetensors(data, size, most, seed, valid);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Run run;
  const fuzz::InputFile input(data, size);
  const auto before = state_of(run);
  const bool loaded = fuzz::accepts<xgrad::FileError, xgrad::ValueError>(
      [&] { load_checkpoint(input.path(), run.parts, config); });
  if (!loaded) fuzz::require(state_of(run) == before, "a refused checkpoint changes nothing");
  return 0;
}
