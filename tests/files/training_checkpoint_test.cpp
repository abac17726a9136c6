// Checkpoints: a run that stopped goes on as if it had not, and no moment of dying loses one.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include <gtest/gtest.h>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"
#include "failing_memory.hpp"
#include "files.hpp"

namespace training_checkpoint_test {

using xgrad::Array, xgrad::Ids, xgrad::StateDict, xgrad::Variable;
using xgrad_tests::message_of;

/// Where the checkpoint of a test lies.
class TemporaryFile {
 public:
  std::string path() const { return folder_.path("run.safetensors"); }

 private:
  xgrad_tests::TemporaryFolder folder_;
};

enum class Kind { sgd, adam, adamw };

template <class T>
std::unique_ptr<xgrad::Optimizer<T>> make_optimizer(Kind kind, const std::vector<Variable<T>>& parameters) {
  switch (kind) {
    case Kind::sgd:
      return std::make_unique<xgrad::SGD<T>>(
          parameters, xgrad::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-3, .nesterov = true});
    case Kind::adam:
      return std::make_unique<xgrad::Adam<T>>(parameters,
                                              xgrad::AdamOptions{.lr = 0.01, .weight_decay = 1e-3});
    case Kind::adamw:
      break;
  }
  return std::make_unique<xgrad::AdamW<T>>(parameters, xgrad::AdamWOptions{.lr = 0.01});
}

/// A small training run with everything that has a state: dropout, shuffled batches, a schedule, an average
/// of the weights, early stopping.
template <class T>
class SmallRun {
 public:
  explicit SmallRun(Kind kind, std::uint64_t seed = 3)
      : model_((xgrad::manual_seed(seed), config())),
        optimizer_(make_optimizer<T>(kind, model_.parameters())),
        schedule_(*optimizer_, 20),
        batches_(labels().size(), {.batch_size = 3}),
        average_(model_, 0.9),
        stopping_({.patience = 100}) {}

  double step() {
    const std::vector<std::size_t> chosen = batches_.next();
    Ids ids = Ids::from_shape({chosen.size(), sentences().shape(1)});
    Ids answers = Ids::from_shape({chosen.size()});
    for (std::size_t row = 0; row < chosen.size(); ++row) {
      for (std::size_t i = 0; i < ids.shape(1); ++i) ids(row, i) = sentences()(chosen[row], i);
      answers(row) = labels()(chosen[row]);
    }
    optimizer_->zero_grad();
    const Variable<T> loss = cross_entropy(model_.class_logits(ids), answers);
    loss.backward();
    optimizer_->step();
    schedule_.step();
    average_.update();
    if (stopping_.update(-static_cast<double>(loss.item()))) best_ = model_.state_dict();
    return static_cast<double>(loss.item());
  }

  xgrad::TrainingParts parts() {
    return {{"model", model_},       {"optimizer", *optimizer_}, {"average", average_},  {"best", best_},
            {"schedule", schedule_}, {"batches", batches_},      {"stopping", stopping_}};
  }

  /// All numbers that may differ.
  std::string fingerprint() {
    std::string bits;
    const auto add = [&](const StateDict<T>& arrays) {
      for (const auto& [name, array] : arrays)
        bits.append(reinterpret_cast<const char*>(array.data()), array.size() * sizeof(T));
    };
    add(model_.state_dict());
    add(optimizer_->state_dict().template arrays<T>());
    add(average_.state_dict().template arrays<T>());
    add(best_);
    return bits + std::to_string(batches_.epoch()) + xgrad::get_rng_state() +
           std::to_string(optimizer_->lr()) + std::to_string(stopping_.best());
  }

  const xgrad::ToyEncoder<T>& model() const { return model_; }

 private:
  static xgrad::ToyEncoderConfig config() {
    return {.vocab_size = 7,
            .max_len = 4,
            .classes = 2,
            .encoder = {.d_model = 4, .heads = 2, .d_ff = 8, .layers = 2, .dropout = 0.2},
            .pad_id = 0};
  }
  static Ids sentences() {
    return {{1, 2, 3, 0}, {4, 5, 6, 1}, {2, 2, 0, 0}, {6, 1, 1, 3}, {5, 0, 0, 0}, {3, 4, 1, 0}, {1, 6, 0, 0}};
  }
  static Ids labels() { return {0, 1, 0, 1, 1, 0, 0}; }

  xgrad::ToyEncoder<T> model_;
  std::unique_ptr<xgrad::Optimizer<T>> optimizer_;
  xgrad::CosineAnnealingLR<T> schedule_;
  xgrad::BatchSampler batches_;
  xgrad::ExponentialMovingAverage<T> average_;
  xgrad::EarlyStopping stopping_;
  StateDict<T> best_;
};

template <class T>
void expect_to_go_on_bit_for_bit(Kind kind) {
  constexpr int steps = 12;
  for (const int stop : {0, 1, 5, 7}) {
    const TemporaryFile file;
    std::vector<double> expected, losses;
    SmallRun<T> whole(kind);
    for (int i = 0; i < steps; ++i) expected.push_back(whole.step());
    const std::string end = whole.fingerprint();

    {
      SmallRun<T> stopped(kind);
      for (int i = 0; i < stop; ++i) losses.push_back(stopped.step());
      save_checkpoint(stopped.parts(), file.path(), static_cast<std::size_t>(stop));
    }
    SmallRun<T> resumed(kind, 99);
    resumed.step();
    EXPECT_EQ(load_checkpoint(file.path(), resumed.parts()), static_cast<std::size_t>(stop));
    for (int i = stop; i < steps; ++i) losses.push_back(resumed.step());
    EXPECT_EQ(losses, expected);
    EXPECT_TRUE(resumed.fingerprint() == end);
  }
}

TEST(CheckpointTest, SGDGoesOnBitForBit) {
  expect_to_go_on_bit_for_bit<float>(Kind::sgd);
  expect_to_go_on_bit_for_bit<double>(Kind::sgd);
}

TEST(CheckpointTest, AdamGoesOnBitForBit) {
  expect_to_go_on_bit_for_bit<float>(Kind::adam);
  expect_to_go_on_bit_for_bit<double>(Kind::adam);
}

TEST(CheckpointTest, AdamWGoesOnBitForBit) {
  expect_to_go_on_bit_for_bit<float>(Kind::adamw);
  expect_to_go_on_bit_for_bit<double>(Kind::adamw);
}

TEST(CheckpointTest, ItsModelCanBeReadByItself) {
  const TemporaryFile file;
  SmallRun<float> run(Kind::adamw);
  save_checkpoint(run.parts(), file.path(), 7, {{"--lr", "0.01"}}, {{"task", "text"}});
  const xgrad::SafetensorsFile saved(file.path());
  EXPECT_EQ(saved.metadata().at("config.--lr"), "0.01");
  EXPECT_EQ(saved.metadata().at("task"), "text");
  EXPECT_TRUE(xgrad::is_checkpoint(saved.metadata()));
  EXPECT_FALSE(xgrad::is_checkpoint({{"format", "pt"}}));
  EXPECT_EQ(load_checkpoint(file.path(), run.parts(), {{"--lr", "0.01"}}), 7u) << "it compares no task";
  StateDict<float> model;
  for (const xgrad::TensorView& tensor : saved.tensors()) {
    if (tensor.name.starts_with("model.")) model[tensor.name.substr(6)] = xgrad::to_array<float>(tensor);
  }
  EXPECT_EQ(model, run.model().state_dict());
}

/// What loading this run's checkpoint says, which must not have changed the run.
template <class T>
std::string refusal(const std::string& path, SmallRun<T>& run, const xgrad::Metadata& config = {}) {
  const std::string before = run.fingerprint();
  const std::string text = message_of([&] { load_checkpoint(path, run.parts(), config); });
  EXPECT_TRUE(run.fingerprint() == before);
  return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
}

TEST(CheckpointTest, OfAnotherRunIsRefused) {
  const TemporaryFile file;
  SmallRun<float> run(Kind::adamw);
  run.step();
  save_checkpoint(run.parts(), file.path(), 1, {{"--lr", "0.01"}});
  EXPECT_EQ(refusal(file.path(), run, {{"--lr", "0.02"}}),
            "--lr must be as in the checkpoint, '0.01', got '0.02'");
  EXPECT_EQ(refusal(file.path(), run), "--lr must be as in the checkpoint, '0.01', got nothing");

  save_checkpoint(run.parts(), file.path(), 1);
  SmallRun<float> other(Kind::sgd);
  EXPECT_NE(refusal(file.path(), other).find("'optimizer.state.0.exp_avg' is unexpected"), std::string::npos);
  SmallRun<double> wider(Kind::adamw);
  for (const char* name : {"average.module.class_head.bias", "model.class_head.bias"}) {
    EXPECT_NE(refusal(file.path(), wider)
                  .find("'" + std::string(name) + "' must be an array of double, got an array of float"),
              std::string::npos);
  }

  const auto damaged = [&](auto change) {
    const xgrad::SafetensorsFile saved(file.path());
    std::vector<xgrad::TensorView> tensors = saved.tensors();
    xgrad::Metadata metadata = saved.metadata();
    change(tensors, metadata);
    const TemporaryFile copy;
    write_safetensors(tensors, copy.path(), metadata);
    return refusal(copy.path(), run);
  };
  const auto named = [](std::vector<xgrad::TensorView>& tensors, const std::string& name) {
    return std::find_if(tensors.begin(), tensors.end(), [&](const auto& one) { return one.name == name; });
  };
  EXPECT_EQ(damaged([&](auto& tensors, auto&) { tensors.erase(named(tensors, "numbers.step")); }),
            "load_state_dict: 'step' is missing");
  EXPECT_EQ(damaged([&](auto& tensors, auto&) { tensors.erase(named(tensors, "numbers.batches.seed")); }),
            "load_state_dict: 'batches.seed' is missing");
  EXPECT_EQ(damaged([&](auto& tensors, auto&) {
              named(tensors, "numbers.batches.seed")->name = "numbers.x";
              named(tensors, "model.class_head.bias")->name = "bias";
            }),
            "load_state_dict: 'batches.seed' is missing; 'model.class_head.bias' is missing; 'bias' is "
            "unexpected; 'x' is unexpected");
  EXPECT_EQ(damaged([&](auto& tensors, auto&) { named(tensors, "numbers.step")->shape = {1}; }),
            "'numbers.step' must be one number, got shape (1)");
  EXPECT_EQ(damaged([&](auto& tensors, auto&) {
              named(tensors, "model.class_head.bias")->dtype = xgrad::DType::I32;
            }),
            "'model.class_head.bias' must be F32 or F64, got I32");
  EXPECT_EQ(damaged([](auto&, auto& metadata) { metadata["random_state"] = "heads or tails"; }).substr(0, 9),
            "set_state");
  EXPECT_EQ(damaged([](auto&, auto& metadata) { metadata.erase("format"); }),
            "must be a checkpoint of a training run");
  EXPECT_EQ(damaged([](auto&, auto& metadata) { metadata["format"] = "xgrad checkpoint 1"; }),
            "must be of the format 'xgrad checkpoint 2', got 'xgrad checkpoint 1'");
  EXPECT_EQ(damaged([](auto&, auto& metadata) { metadata.erase("random_state"); }).substr(0, 9), "set_state");
  for (const std::string name : {"", "numbers", "a.b"}) {
    EXPECT_EQ(
        message_of<xgrad::ValueError>([&] {
          xgrad::save_checkpoint({{name, run.model()}}, file.path(), 1);
        }),
        "checkpoint: a part's name must have no dot, and not be 'numbers' or empty, got '" + name + "'");
  }
}

TEST(CheckpointTest, WithoutMemoryALoadChangesNothing) {
  const TemporaryFile file;
  SmallRun<float> saved(Kind::adam);
  for (int i = 0; i < 3; ++i) saved.step();
  save_checkpoint(saved.parts(), file.path(), 3);
  const std::string expected = saved.fingerprint();
  SmallRun<float> other(Kind::adam, 4);
  other.step();
  const std::string before = other.fingerprint();
  const xgrad::TrainingParts parts = other.parts();
  const auto loads = [&](std::size_t allocations) {
    const xgrad_tests::FailingMemory memory(allocations, true);
    try {
      xgrad::load_checkpoint(file.path(), parts);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  };
  std::size_t count = 0;
  for (; !loads(count); count += 7) ASSERT_TRUE(other.fingerprint() == before) << count;
  EXPECT_GT(count, 100U);
  EXPECT_TRUE(other.fingerprint() == expected);
}

TEST(CheckpointTest, EveryOptionThatDiffersIsNamed) {
  const TemporaryFile file;
  SmallRun<float> run(Kind::sgd);
  save_checkpoint(run.parts(), file.path(), 1, {{"--lr", "0.01"}, {"--heads", "2"}});
  EXPECT_EQ(
      refusal(file.path(), run, {{"--lr", "0.02"}, {"--heads", "4"}}),
      "--heads must be as in the checkpoint, '2', got '4'; --lr must be as in the checkpoint, '0.01', got "
      "'0.02'");
  EXPECT_EQ(refusal(file.path(), run, {{"--lr", "0.01"}, {"--heads", "2"}, {"--seed", "1"}}),
            "--seed must be as in the checkpoint, nothing, got '1'");
  EXPECT_EQ(
      refusal(file.path(), run, {{"--seed", "1"}}),
      "--heads must be as in the checkpoint, '2', got nothing; --lr must be as in the checkpoint, '0.01', "
      "got nothing; --seed must be as in the checkpoint, nothing, got '1'");
  EXPECT_EQ(refusal(file.path(), run, {{"--lr", "0.01"}, {"--heads", "2"}}), "no exception");
}

/// A child process saves checkpoint after checkpoint, in which every number is the step's.
[[noreturn]] void save_for_ever(const std::string& path, std::size_t step, int report) {
  const xgrad::Linear<float> model(64, 64);
  xgrad::SGD<float> optimizer(model.parameters());
  for (;; ++step) {
    for (const Variable<float>& parameter : model.parameters())
      parameter.assign(Array<float>(parameter.shape(), static_cast<float>(step)));
    xgrad::save_checkpoint({{"model", model}, {"optimizer", optimizer}}, path, step);
    const char done = 1;
    if (::write(report, &done, 1) != 1) ::_exit(1);
  }
}

TEST(CheckpointTest, AKilledProcessLeavesTheLastOneWhole) {
  const TemporaryFile file;
  const xgrad::Linear<float> model(64, 64);
  xgrad::SGD<float> optimizer(model.parameters());
  const xgrad::TrainingParts parts{{"model", model}, {"optimizer", optimizer}};
  save_checkpoint(parts, file.path(), 0);
  std::size_t step = 0;
  for (int round = 0; round < 100; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_for_ever(file.path(), step + 1, pipe[1]);
    ::close(pipe[1]);
    std::size_t reported = 0;
    for (char done; reported < 2 && ::read(pipe[0], &done, 1) == 1;) ++reported;
    for (volatile int i = 0; i < 2000 * round;) i = i + 1;  // another moment in each round
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (char done; ::read(pipe[0], &done, 1) == 1;) ++reported;
    ::close(pipe[0]);
    ASSERT_GE(reported, 2u);

    const std::size_t found = load_checkpoint(file.path(), parts);
    ASSERT_GE(found, step + reported);
    ASSERT_LE(found, step + reported + 1);
    for (const float weight : model.weight().value()) ASSERT_EQ(weight, static_cast<float>(found));
    step = found;
  }
}

/// A class as a user would write it.
class Mean : public xgrad::Stateful {
 public:
  std::size_t count = 0;
  Array<float> mean = {0, 0};

 protected:
  void list_state(xgrad::StateArchive& state) override {
    state.number("count", count, 100);
    state.array("mean", mean);
  }
};

TEST(CheckpointTest, HasClassesOfOnesOwnAndSeveralModels) {
  const TemporaryFile file;
  xgrad::manual_seed(2);
  const xgrad::Linear<float> a(2, 2), loaded_a(2, 2);
  const xgrad::Linear<double> b(2, 3), loaded_b(2, 3);
  Mean object, loaded;
  object.count = 7;
  object.mean = Array<float>{3, 4};
  xgrad::save_checkpoint({{"a", a}, {"b", b}, {"object", object}}, file.path(), 3);
  EXPECT_EQ(xgrad::load_checkpoint(file.path(), {{"a", loaded_a}, {"b", loaded_b}, {"object", loaded}}), 3u);
  EXPECT_EQ(loaded_a.state_dict(), a.state_dict());
  EXPECT_EQ(loaded_b.state_dict(), b.state_dict());
  EXPECT_EQ(loaded.state_dict(), object.state_dict());
}

TEST(CheckpointTest, HasLBFGS) {
  const TemporaryFile file;
  const xgrad::LBFGSOptions options{.max_iter = 4, .line_search_fn = xgrad::LineSearch::strong_wolfe};
  const Variable<double> x(Array<double>{2, -1}, true), loaded_x(Array<double>{0, 0}, true);
  xgrad::LBFGS<double> saved({x}, options), loaded({loaded_x}, options);
  const auto step = [](xgrad::LBFGS<double>& optimizer, const Variable<double>& at) {
    optimizer.step([&] {
      optimizer.zero_grad();
      const Variable<double> loss = sum(exp(at) - 3 * at + square(square(at)));
      loss.backward();
      return loss;
    });
  };
  step(saved, x);
  xgrad::save_checkpoint({{"optimizer", saved}}, file.path(), 1);
  xgrad::load_checkpoint(file.path(), {{"optimizer", loaded}});
  loaded_x.assign(x.value());
  for (int i = 0; i < 2; ++i) {
    step(saved, x);
    step(loaded, loaded_x);
  }
  EXPECT_EQ(loaded_x.value(), x.value());
}

}  // namespace training_checkpoint_test
