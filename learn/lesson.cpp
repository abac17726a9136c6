#include "lesson.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <nlohmann/json.hpp>
#include <xgrad/base/error.hpp>

#include "walk.hpp"

namespace learn {
namespace {

using Json = nlohmann::json;

/// Sets what the request has.
template <class V>
void read(const Json& request, const char* name, V& value) {
  if (request.contains(name)) request.at(name).get_to(value);
}

WalkSettings walk_settings(const Json& request) {
  WalkSettings settings;
  read(request, "words", settings.words);
  read(request, "d_model", settings.d_model);
  read(request, "heads", settings.heads);
  read(request, "positions", settings.positions);
  read(request, "residual", settings.residual);
  read(request, "hidden", settings.hidden);
  read(request, "asked", settings.asked);
  for (const Json& edit : request.value("edits", Json::array()))
    settings.edits.push_back({edit.at("parameter"), edit.at("index"), edit.at("value")});
  return settings;
}

TrainingSettings training_settings(const Json& request) {
  TrainingSettings settings;
  read(request, "seed", settings.seed);
  read(request, "steps", settings.steps);
  read(request, "lr", settings.lr);
  read(request, "heads", settings.heads);
  read(request, "layers", settings.layers);
  read(request, "positions", settings.parts.positions);
  read(request, "residual", settings.parts.residual);
  return settings;
}

/// A reply with the data of a report, which is JSON already.
std::string with_report(const Json& reply, const std::string& report) {
  std::string text = reply.dump();
  text.back() = reply.empty() ? ' ' : ',';
  return text + "\"report\":" + report + "}";
}

}  // namespace

std::string Lesson::answer(const std::string& request) {
  try {
    const Json asked = Json::parse(request);
    const std::string what = asked.at("do");
    if (what == "walk") return with_report(Json::object(), walk(walk_settings(asked)));
    if (what == "start") {
      training_ = std::make_unique<Training>(training_settings(asked));
      return trained(0, asked.value("question", std::size_t{0}));
    }
    if (what == "train" && training_ != nullptr)
      return trained(asked.at("steps"), asked.value("question", std::size_t{0}));
    if (what == "questions") {
      Json list = Json::array();
      for (const auto& [hidden, clue] : Training::questions())
        list.push_back({{"hidden", hidden}, {"clue", clue}});
      return Json{{"questions", list}}.dump();
    }
    xgrad::detail::fail<xgrad::ValueError>("There is no answer to '", what, "' now.");
  } catch (const std::exception& error) {
    return Json{{"error", error.what()}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

std::string Lesson::trained(std::size_t steps, std::size_t question) {
  Json reply{{"losses", Json::array()}};
  for (std::size_t i = 0; i < steps && !training_->is_done(); ++i) {
    const TrainedStep step = training_->step();
    reply["losses"].push_back(step.loss);
    reply["lr"] = step.lr;
    reply["grad_norm"] = step.grad_norm;
  }
  reply["done"] = training_->steps_done();
  reply["finished"] = training_->is_done();
  return with_report(reply, training_->look(question));
}

}  // namespace learn
