#include "training.hpp"

#include <span>
#include <utility>

#include <xgrad/report.hpp>
#include <xgrad/xgrad.hpp>

#include "../apps/cloze_task.hpp"
#include "../apps/training/warmup_and_cosine.hpp"

namespace learn {
namespace {

using apps::Question, apps::Sentence;

/// What does not depend on the settings.
struct Task {
  xgrad::Vocabulary vocabulary = apps::vocabulary_of_language();
  std::vector<Sentence> language = apps::all_sentences();
  apps::SplitLanguage parts = apps::split(language);
  std::vector<Question> questions = apps::all_questions(parts.training);
  std::vector<Question> shown = apps::all_questions({parts.notebook});
};

const Task& task() {
  static const Task one;
  return one;
}

const TrainingSettings& checked(const TrainingSettings& settings) {
  using xgrad::detail::fail, xgrad::ValueError;
  if (settings.heads < 1 || Training::d_model % settings.heads != 0)
    fail<ValueError>("The heads must share ", Training::d_model, " numbers evenly, and are ", settings.heads,
                     ".");
  if (settings.layers < 1 || settings.layers > 8)
    fail<ValueError>("There must be 1 to 8 layers, and are ", settings.layers, ".");
  if (settings.steps < 1 || settings.steps > 100000)
    fail<ValueError>("There must be 1 to 100000 steps, and are ", settings.steps, ".");
  if (!(settings.lr > 0 && settings.lr <= 10))
    fail<ValueError>("The learning rate must be above 0 and at most 10, and is ", settings.lr, ".");
  return settings;
}

PartialEncoder model_of(const TrainingSettings& settings) {
  xgrad::manual_seed(checked(settings).seed);
  return {{.vocab_size = task().vocabulary.size(),
           .max_len = apps::longest_sentence,
           .encoder = {.d_model = Training::d_model,
                       .heads = settings.heads,
                       .d_ff = Training::d_ff,
                       .layers = settings.layers},
           .pad_id = apps::pad_id},
          settings.parts};
}

}  // namespace

struct Training::Impl {
  explicit Impl(const TrainingSettings& chosen)
      : settings(chosen),
        model(model_of(chosen)),
        optimizer(model.parameters(), {.lr = chosen.lr}),
        scheduler(apps::warmup_and_cosine(optimizer, chosen.steps, chosen.steps / 20)),
        draws(xgrad::default_generator()) {}

  TrainingSettings settings;
  PartialEncoder model;
  xgrad::AdamW<float> optimizer;
  xgrad::LRScheduler<float> scheduler;
  xgrad::Generator draws;  // of the batches: other draws in between change nothing
  std::size_t done = 0;
};

Training::Training(const TrainingSettings& settings) : impl_(std::make_unique<Impl>(settings)) {}
Training::~Training() = default;

std::size_t Training::steps_done() const { return impl_->done; }
bool Training::is_done() const { return impl_->done == impl_->settings.steps; }

TrainedStep Training::step() {
  if (is_done()) xgrad::detail::fail<xgrad::ValueError>("The training is at its end.");
  const xgrad::Ids drawn =
      xgrad::randint(0, static_cast<std::int64_t>(task().questions.size()), {Training::batch}, impl_->draws);
  std::vector<Question> picked;
  for (const std::int64_t i : drawn) picked.push_back(task().questions[static_cast<std::size_t>(i)]);
  impl_->optimizer.zero_grad();
  const xgrad::BatchLoss loss = xgrad::backward_mean(
      apps::cloze_loss(impl_->model, task().vocabulary, picked), impl_->optimizer.parameters());
  const double norm = clip_grad_norm(impl_->optimizer.parameters(), 1.0);
  impl_->optimizer.step();
  const double lr = impl_->optimizer.lr();
  impl_->scheduler.step();
  ++impl_->done;
  return {loss.mean(), lr, norm};
}

std::string Training::look(std::size_t question) const {
  const std::vector<Question>& shown = task().shown;
  if (question >= shown.size())
    xgrad::detail::fail<xgrad::ValueError>("There are ", shown.size(), " words to hide, and none at ",
                                           question, ".");
  const xgrad::Vocabulary& vocabulary = task().vocabulary;
  const PartialEncoder& model = impl_->model;
  xgrad::Report report("the toy encoder");
  xgrad::ReportStep step = report.step(impl_->done);
  step.observe({"", {apps::with_mask(shown[question])}}, model,
               [&] { return apps::cloze_loss(model, vocabulary, {shown[question]}).sum; });
  const xgrad::NoGrad guard;
  const xgrad::Variable<float> probabilities =
      softmax(model.token_logits(apps::make_batch(vocabulary, shown).ids));
  for (std::size_t row = 0; row < shown.size(); ++row) {
    const std::size_t hidden = shown[row].cloze.hidden;
    const float* const first = &probabilities.value()(row, hidden, 0);
    step.prediction(std::to_string(hidden),
                    xgrad::most_probable(vocabulary.tokens(), {first, vocabulary.size()}, 3),
                    shown[row].sentence->words[hidden]);
  }
  return report.json();
}

std::vector<std::pair<std::size_t, std::size_t>> Training::questions() {
  std::vector<std::pair<std::size_t, std::size_t>> all;
  for (const Question& question : task().shown) all.emplace_back(question.cloze.hidden, question.cloze.clue);
  return all;
}

}  // namespace learn
