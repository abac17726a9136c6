#include "recipe.hpp"

#include <cstdio>

#include <xgrad/base/folder.hpp>
#include <xgrad/pretrained/heads/fine_tuning.hpp>
#include <xgrad/pretrained/model.hpp>
#include <xgrad/train/lr_scheduler.hpp>

namespace apps {

TrainingRecipe hugging_face_recipe(const RunOptions& options,
                                   const std::vector<xgrad::NamedParameter<float>>& parameters) {
  const std::size_t steps = options.steps;
  return {.groups = xgrad::pretrained::decay_groups(parameters, {.lr = options.lr, .weight_decay = 0.01}),
          .schedule = [steps](xgrad::Optimizer<float>& optimizer) -> xgrad::LRScheduler<float> {
            return xgrad::LinearWarmupLR<float>(optimizer, steps / 10, steps);
          }};
}

std::vector<std::string> tokens_of(const xgrad::tokenizers::Tokenizer& tokenizer,
                                   const std::vector<std::int64_t>& ids) {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int64_t id : ids) tokens.push_back(tokenizer.token(id));
  return tokens;
}

void check_save(const xgrad::tokenizers::Tokenizer& tokenizer, const std::string& folder) {
  if (folder.empty()) return;  // as on all ranks but the first
  xgrad::pretrained::check_save(folder);
  tokenizer.check_save(folder);
  check_writable_folder(folder);
}

void save_with_tokenizer(const std::function<void(const std::string&)>& save_model,
                         const xgrad::tokenizers::Tokenizer& tokenizer, const std::string& folder) {
  xgrad::pretrained::check_save(folder);
  tokenizer.check_save(folder);
  xgrad::write_folder(folder, [&](const std::string& other) {
    save_model(other);
    tokenizer.save(other);
  });
}

std::function<void(const std::string&)> note_of(const RunOptions& options) {
  return [leads = options.leads()](const std::string& text) {
    if (leads) std::fprintf(stderr, "%s\n", text.c_str());
  };
}

}  // namespace apps
