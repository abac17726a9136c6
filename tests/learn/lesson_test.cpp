// The lesson behind the page: it shows the notebook's numbers, and trains as train_toy_encoder does.

#include "../../learn/lesson.hpp"

#include <cmath>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../../learn/walk.hpp"
#include "../expect_error.hpp"
#include "../files.hpp"
#include "../notebook.hpp"
#include "../program.hpp"
#include "../report/arrays.hpp"

namespace lesson_test {

using learn::Lesson, learn::Training, learn::TrainingSettings, learn::walk, learn::WalkSettings;
using nlohmann::json;
using xgrad_tests::elements, xgrad_tests::message_of;

/// The tensors of a walk by name.
std::map<std::string, json> tensors_of(const WalkSettings& settings) {
  std::map<std::string, json> tensors;
  const json data = json::parse(walk(settings));
  for (const json& tensor : data.at("runs").at(0).at("tensors")) tensors[tensor.at("name")] = tensor;
  return tensors;
}

xgrad::Array<float> value_of(const json& tensor, const char* which = "value") {
  const json& array = tensor.at(which);
  const std::vector<float> numbers = elements<float>(array);
  xgrad::Array<float> value(xgrad::Shape(array.at("shape").get<std::vector<std::size_t>>()));
  std::copy(numbers.begin(), numbers.end(), value.data());
  return value;
}

/// Some rows of a matrix, of the first of its heads.
xgrad::Array<float> rows(const xgrad::Array<float>& all, std::size_t first, std::size_t count) {
  const std::size_t columns = all.shape().back();
  xgrad::Array<float> chosen(xgrad::Shape{count, columns});
  std::copy_n(all.data() + first * columns, count * columns, chosen.data());
  return chosen;
}

TEST(LessonWalkTest, ShowsTheNotebooksNumbers) {
  const xgrad_tests::Notebook notebook("002_encoder_block");
  const auto one = tensors_of({.heads = 1}), two = tensors_of({.heads = 2});
  const auto expect = [&](const std::string& name, const xgrad::Array<float>& computed) {
    const xgrad::Array<float> expected = notebook.array<float>(name);
    ASSERT_LE(expected.size(), computed.size()) << name;
    if (!notebook.cut_off(name)) {
      ASSERT_EQ(expected.size(), computed.size()) << name;
    }
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(computed.data()[i], expected.data()[i], notebook.tolerance(name)) << name << " " << i;
  };
  for (const auto* const tensors : {&one, &two}) {
    expect("printed_embedded_tokens", value_of(tensors->at("embedded")));
    expect("printed_x_with_pe", value_of(tensors->at("x")));
    expect("printed_single_Q", value_of(tensors->at("Q")));
    expect("printed_shoes_query", rows(value_of(tensors->at("Q")), 1, 1));
    EXPECT_EQ(elements<std::int64_t>(tensors->at("ids").at("value")),
              (std::vector<std::int64_t>{0, 1, 2, 3, 0, 4, 2, 5}));
  }
  expect("printed_shoes_scores", rows(value_of(one.at("scores")), 1, 1));
  expect("printed_shoes_weights", rows(value_of(one.at("weights")), 1, 1));
  expect("printed_shoes_context", rows(value_of(one.at("context")), 1, 1));
  expect("printed_attn_weights_per_head", value_of(two.at("weights")));
  expect("printed_mha_out", value_of(two.at("attended")));
  expect("printed_normed_1", value_of(two.at("normed_1")));
  expect("printed_ffn_out", value_of(two.at("fed")));
  expect("printed_encoder_out", value_of(two.at("encoded")));
}

TEST(LessonWalkTest, HiddenWordsGetNothingAndHandNothingBack) {
  const auto tensors = tensors_of({.hidden = {0, 3}});
  const xgrad::Array<float> scores = value_of(tensors.at("scores")),
                            weights = value_of(tensors.at("weights"));
  const xgrad::Array<float> values = value_of(tensors.at("v"), "gradient");
  for (std::size_t head = 0; head < 2; ++head) {
    for (std::size_t row = 0; row < 8; ++row) {
      float sum = 0;
      for (std::size_t column = 0; column < 8; ++column) {
        const bool hidden = column == 0 || column == 3;
        EXPECT_EQ(std::isinf(scores(head, row, column)), hidden);
        EXPECT_EQ(weights(head, row, column) == 0, hidden);
        sum += weights(head, row, column);
      }
      EXPECT_NEAR(sum, 1, 1e-6);
      EXPECT_EQ(values(head, row, 0) == 0, row == 0 || row == 3);
    }
  }
}

TEST(LessonWalkTest, OnlyTheWordThatIsAskedForHasAttentionWithAGradient) {
  for (const std::size_t asked : {std::size_t{1}, std::size_t{5}}) {
    const xgrad::Array<float> gradient = value_of(tensors_of({.asked = asked}).at("weights"), "gradient");
    for (std::size_t i = 0; i < gradient.size(); ++i)
      EXPECT_EQ(gradient.data()[i] != 0, i / 8 % 8 == asked) << i;
  }
}

TEST(LessonWalkTest, PartsThatAreTakenAwayAreGone) {
  const auto bare = tensors_of({.positions = false, .residual = false});
  EXPECT_EQ(value_of(bare.at("x")), value_of(bare.at("embedded")));
  EXPECT_EQ(value_of(bare.at("sum_1")), value_of(bare.at("attended")));
  EXPECT_EQ(value_of(bare.at("sum_2")), value_of(bare.at("fed")));
  EXPECT_FALSE(bare.at("positions.weight").contains("gradient"));
}

TEST(LessonWalkTest, AnEditChangesItsNumberAndWhatFollows) {
  const auto before = tensors_of({}), after = tensors_of({.edits = {{"W_Q.weight", 6, 1.25F}}});
  const xgrad::Array<float> weight = value_of(after.at("W_Q.weight")), Q = value_of(after.at("Q")),
                            old = value_of(before.at("Q"));
  EXPECT_EQ(weight(1, 2), 1.25F);
  for (std::size_t i = 0; i < Q.size(); ++i) EXPECT_EQ(Q.data()[i] != old.data()[i], i % 4 == 1) << i;
  EXPECT_EQ(value_of(after.at("K")), value_of(before.at("K")));
}

TEST(LessonWalkTest, TheLossIsOfTheWordThatIsAskedFor) {
  for (const std::size_t asked : {std::size_t{1}, std::size_t{4}}) {
    const auto tensors = tensors_of({.asked = asked});
    const xgrad::Array<float> logits = value_of(tensors.at("logits"));
    const auto id = static_cast<std::size_t>(elements<std::int64_t>(tensors.at("ids").at("value"))[asked]);
    double sum = 0;
    for (std::size_t word = 0; word < logits.shape()[1]; ++word)
      sum += std::exp(static_cast<double>(logits(asked, word)));
    EXPECT_NEAR(value_of(tensors.at("loss")).data()[0],
                std::log(sum) - static_cast<double>(logits(asked, id)), 1e-5);
  }
}

TEST(LessonWalkTest, RefusesWhatCannotBe) {
  const auto refusal = [](const WalkSettings& settings) {
    return message_of<xgrad::ValueError>([&] { walk(settings); });
  };
  EXPECT_EQ(refusal({.words = std::vector<std::string>(10, "my"), .d_model = 8}), "no exception");
  EXPECT_EQ(refusal({.words = {}}), "The sentence must have 1 to 10 words, and has 0.");
  EXPECT_EQ(refusal({.words = std::vector<std::string>(11, "my")}),
            "The sentence must have 1 to 10 words, and has 11.");
  EXPECT_EQ(refusal({.d_model = 9}), "d_model must be 1 to 8, and is 9.");
  EXPECT_EQ(refusal({.heads = 3}), "The heads must share d_model evenly: 4 numbers are not 3 equal parts.");
  EXPECT_EQ(refusal({.hidden = {8}}), "There is no word at place 8 of 8 to be hidden.");
  EXPECT_EQ(refusal({.words = {"my", "shoes"}, .hidden = {0, 1}}),
            "All words are hidden: one must be left to look at.");
  EXPECT_EQ(refusal({.asked = 8}), "There is no word at place 8 of 8 to be asked for.");
  EXPECT_EQ(refusal({.edits = {{"W_O.weight", 0, 0}}}), "There are no weights called W_O.weight.");
  EXPECT_EQ(refusal({.edits = {{"W_Q.weight", 16, 0}}}), "W_Q.weight has 16 numbers, and none at 16.");
}

/// The losses of train_toy_encoder, and its report.
struct Reference {
  std::vector<double> losses;
  json report;
};

Reference reference(const std::string& options) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string log = folder.path("log"), report = folder.path("report.json");
  xgrad_tests::output_of("train_toy_encoder " + options + " --log " + log + " --report " + report +
                         " 2>/dev/null");
  Reference result{{}, json::parse(xgrad_tests::read_bytes(report))};
  std::istringstream lines(xgrad_tests::read_bytes(log));
  std::string line;
  std::getline(lines, line);  // about the run
  while (std::getline(lines, line)) result.losses.push_back(json::parse(line).at("loss"));
  return result;
}

TEST(LessonTrainingTest, HasTheBitsOfTheProgram) {
  const std::pair<TrainingSettings, std::string> cases[] = {
      {{.steps = 60}, "--steps 60"},
      {{.seed = 3, .steps = 25, .lr = 0.01, .heads = 2, .layers = 2},
       "--steps 25 --seed 3 --lr 0.01 --heads 2 --layers 2"}};
  for (const auto& [settings, options] : cases) {
    const Reference program = reference(options);
    const json& expected = program.report.at("runs").at(0);
    Training training(settings);
    std::size_t compared = 0;
    for (std::size_t step = 0; step <= settings.steps; ++step) {
      ASSERT_EQ(training.steps_done(), step);
      for (std::size_t notch = 0; notch < expected.at("steps").size(); ++notch) {
        if (expected.at("steps")[notch] != step) continue;
        const json seen = json::parse(training.look(0)).at("runs").at(0);
        ASSERT_EQ(seen.at("attention").size(), settings.layers);
        for (std::size_t layer = 0; layer < settings.layers; ++layer) {
          EXPECT_EQ(seen.at("attention")[layer].at("snapshots")[0].at("weights"),
                    expected.at("attention")[layer].at("snapshots")[notch].at("weights"))
              << options << ", step " << step << ", layer " << layer;
          ++compared;
        }
      }
      if (step == settings.steps) break;
      EXPECT_EQ(training.step().loss, program.losses.at(step)) << options << ", step " << step;
    }
    EXPECT_GE(compared, 6 * settings.layers) << "steps 0, 1, 2, 5, 10, 20";
    EXPECT_TRUE(training.is_done());
    EXPECT_EQ(message_of<xgrad::ValueError>([&] { training.step(); }), "The training is at its end.");
  }
}

TEST(LessonTrainingTest, LooksChangeNothing) {
  Training looked({}), alone({});
  for (int step = 0; step < 5; ++step) {
    for (std::size_t question = 0; question < Training::questions().size(); ++question) looked.look(question);
    EXPECT_EQ(looked.step().loss, alone.step().loss) << step;
  }
}

TEST(LessonTrainingTest, PartsThatAreTakenAwayAreGone) {
  const auto parameters = [](learn::Parts parts) {
    std::vector<std::string> names;
    const json data = json::parse(Training({.parts = parts}).look(0));
    for (const json& value : data.at("runs").at(0).at("graphs").at(0).at("values")) {
      if (value.at("kind") == "parameter") names.push_back(value.at("name"));
    }
    return names;
  };
  const auto adds = [](learn::Parts parts) {
    std::size_t count = 0;
    const json data = json::parse(Training({.parts = parts}).look(0));
    for (const json& value : data.at("runs").at(0).at("graphs").at(0).at("values"))
      count += value.at("name") == "add" ? 1 : 0;
    return count;
  };
  const std::string places = "position_embedding.pos_embedding.weight";
  const auto all = parameters({}), without = parameters({.positions = false});
  EXPECT_EQ(std::count(all.begin(), all.end(), places), 1);
  EXPECT_EQ(std::count(without.begin(), without.end(), places), 0);
  EXPECT_EQ(without.size() + 1, all.size());
  EXPECT_EQ(adds({.positions = false}) + 1, adds({}));
  EXPECT_EQ(adds({.residual = false}) + 2, adds({})) << "after attention, and after the feed-forward network";
}

TEST(LessonTrainingTest, RefusesWhatCannotBe) {
  const auto refusal = [](const TrainingSettings& settings) {
    return message_of<xgrad::ValueError>([&] { Training training(settings); });
  };
  EXPECT_EQ(refusal({.heads = 5}), "The heads must share 32 numbers evenly, and are 5.");
  EXPECT_EQ(refusal({.layers = 9}), "There must be 1 to 8 layers, and are 9.");
  EXPECT_EQ(refusal({.steps = 0}), "There must be 1 to 100000 steps, and are 0.");
  EXPECT_EQ(refusal({.lr = std::nan("")}), "The learning rate must be above 0 and at most 10, and is nan.");
  EXPECT_EQ(refusal({.lr = 11}), "The learning rate must be above 0 and at most 10, and is 11.");
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { Training({}).look(6); }),
            "There are 6 words to hide, and none at 6.");
}

TEST(LessonTest, AnswersRequests) {
  Lesson lesson;
  const auto answer = [&](const json& request) { return json::parse(lesson.answer(request.dump())); };
  EXPECT_EQ(answer({{"do", "train"}, {"steps", 1}}), (json{{"error", "There is no answer to 'train' now."}}));
  EXPECT_EQ(json::parse(lesson.answer("[")).size(), 1u);
  EXPECT_TRUE(answer({{"do", "walk"}, {"heads", "two"}}).contains("error"));
  EXPECT_EQ(answer({{"do", "walk"}, {"heads", 1}}).at("report"), json::parse(walk({.heads = 1})));
  EXPECT_EQ(answer({{"do", "questions"}}).at("questions").at(0), (json{{"hidden", 1}, {"clue", 3}}));

  const json started = answer({{"do", "start"}, {"seed", 1}, {"steps", 3}});
  EXPECT_EQ(started.at("done"), 0);
  const json two = answer({{"do", "train"}, {"steps", 2}, {"question", 4}});
  EXPECT_EQ(two.at("losses").size(), 2u);
  EXPECT_EQ(two.at("finished"), false);
  const json rest = answer({{"do", "train"}, {"steps", 2}});
  EXPECT_EQ(rest.at("losses").size(), 1u) << "as many as are left";
  EXPECT_EQ(rest.at("finished"), true);
  EXPECT_EQ(rest.at("report").at("runs").at(0).at("steps"), json{3});
  const json& guesses = rest.at("report").at("runs").at(0).at("predictions");
  EXPECT_EQ(guesses.at(0).at("snapshots").at(0).at("answers").size(), 3u);

  Training training({.seed = 1, .steps = 3});
  EXPECT_EQ(two.at("losses"), (json{training.step().loss, training.step().loss}));
}

}  // namespace lesson_test
