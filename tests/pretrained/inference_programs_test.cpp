// tokenize, embed, fill_mask, classify and fine_tune, on the folders of tests/data.

#include <algorithm>
#include <list>
#include <memory>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/files.hpp>
#include <xgrad/pretrained.hpp>

#include "../program.hpp"
#include "folder.hpp"

namespace inference_programs_test {

using xgrad_tests::model_folder, xgrad_tests::output_of, xgrad_tests::ProgramResult, xgrad_tests::read_bytes,
    xgrad_tests::run_program;

std::string error_of(const std::string& command) {
  const ProgramResult result = run_program(command + " 2>&1 >/dev/null </dev/null");
  EXPECT_NE(result.exit_code, 0) << command;
  return result.output;
}

TEST(TokenizeTest, PrintsTokensIdsAndPlaces) {
  const std::string folder = model_folder("bert_sentence");
  EXPECT_EQ(output_of("tokenize " + folder + " 'my shoes' 'Café'"),
            "[CLS] my shoe ##s [SEP]\n[CLS] cafe [SEP]\n");
  EXPECT_EQ(output_of("tokenize " + folder + " --ids 'my shoes'"), "2 75 86 61 3\n");
  EXPECT_EQ(output_of("tokenize " + folder + " --second feet 'my shoes'"),
            "[CLS] my shoe ##s [SEP] feet [SEP]\n");
  EXPECT_EQ(output_of("tokenize " + folder + " --max-length 3 'my shoes'"), "[CLS] my [SEP]\n");
  EXPECT_EQ(output_of("tokenize " + folder + " '[MASK] my, [MASK]'"), "[CLS] [MASK] my , [MASK] [SEP]\n")
      << "no list";
  EXPECT_EQ(output_of("tokenize " + folder + " '[a, b]' my --second '[feet]'"),
            output_of("tokenize " + folder + " --second='[feet]' '[a, b]' my"));
  EXPECT_EQ(output_of("tokenize " + folder + " '[my, feet]' my | wc -l"), "2\n");
  const ProgramResult marked =
      xgrad_tests::run_command("printf '\\357\\273\\277my\\n' | " XGRAD_PROGRAMS_DIR "/tokenize " + folder);
  EXPECT_EQ(marked.output, "[CLS] my [SEP]\n");
  const ProgramResult piped =
      xgrad_tests::run_command("printf 'my\\r\\n\\nfeet' | " XGRAD_PROGRAMS_DIR "/tokenize " + folder);
  EXPECT_EQ(piped.output, "[CLS] my [SEP]\n[CLS] [SEP]\n[CLS] feet [SEP]\n");
  EXPECT_EQ(output_of("tokenize " + folder + " --table 'é my'"),
            "token       id characters   word type\n"
            "[CLS]        2                      0\n"
            "e           21        0-1      0    0\n"
            "my          75        2-4      1    0\n"
            "[SEP]        3                      0\n");
  EXPECT_EQ(error_of("tokenize " + folder + " \"$(printf 'a\\377')\"")
                .rfind("tokenize: Tokenizer: the text must be UTF-8, got an invalid byte at 1", 0),
            0U);
}

TEST(TokenizeTest, LinesBeforeOneThatIsTooLongAreAnswered) {
  const ProgramResult result = xgrad_tests::run_command(
      "(echo my; head -c 17000000 /dev/zero | tr '\\0' a) | " XGRAD_PROGRAMS_DIR "/tokenize " +
      model_folder("bert_sentence") + " 2>&1");
  EXPECT_EQ(result.exit_code, 1);
  const std::string expected = "[CLS] my [SEP]\ntokenize: input:2: a line must have at most 16777216 bytes\n";
  EXPECT_EQ(result.output, expected);
  const xgrad_tests::TemporaryFolder folder;
  const std::string file = folder.write("lines", "my\n" + std::string(17000000, 'a'));
  EXPECT_EQ(run_program("tokenize " + model_folder("bert_sentence") + " 2>&1 <" + file).output, expected)
      << "where reading never waits";
}

TEST(QuantizeTest, ASentenceEncoderStaysOneAndHeadsMustBeThere) {
  const xgrad_tests::FolderCopy copy("bert_sentence");
  copy.configure([](nlohmann::json& all) { all["architectures"] = {"BertForMaskedLM"}; });
  const xgrad_tests::TemporaryFolder folder;
  output_of("quantize " + copy.path() + " " + folder.path("out"));
  const auto embedder = xgrad::pretrained::SentenceEmbedder<float>::from_folder(folder.path("out"));
  EXPECT_EQ(embedder.encoder().precision(), xgrad::pretrained::Precision::int8);
  EXPECT_EQ(read_bytes(folder.path("out/1_Pooling/config.json")),
            read_bytes(copy.path("1_Pooling/config.json")));
  std::filesystem::remove(copy.path("modules.json"));
  EXPECT_NE(
      error_of("quantize " + copy.path() + " " + folder.path("other")).find("must hold BertForMaskedLM"),
      std::string::npos);
}

TEST(QuantizeTest, ATokenizersFileOfAnotherModelIsRefused) {
  const xgrad_tests::FolderCopy copy("bert_sentence");
  std::filesystem::remove(copy.path("modules.json"));
  const xgrad_tests::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("out"));
  const std::string left = folder.write("out/special_tokens_map.json", "{}");
  EXPECT_EQ(
      error_of("quantize " + copy.path() + " " + folder.path("out")),
      "quantize: " + left +
          ": is of another model, and would stay beside the saved files and be read with them; remove it, or "
          "save to another folder\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/model.safetensors")));
}

TEST(TokenizeTest, InputThatCannotBeReadIsAnError) {
  const std::string command = XGRAD_PROGRAMS_DIR "/tokenize " + model_folder("bert_sentence") + " 2>&1 ";
  for (const auto& [input, why] :
       {std::pair{"<&-", "Bad file descriptor"}, std::pair{"</", "Is a directory"}}) {
    const ProgramResult result = xgrad_tests::run_command(command + input);
    EXPECT_EQ(result.exit_code, 1) << input;
    EXPECT_EQ(result.output, std::string("tokenize: the input cannot be read: ") + why + "\n") << input;
  }
}

TEST(EmbedTest, PrintsAndSavesVectors) {
  const xgrad_tests::TemporaryFolder temporary;
  const std::string command = "embed " + model_folder("bert_sentence") + " 'my shoes' 'big feet' 'my shoes'";
  std::istringstream numbers(output_of(command));
  std::vector<float> printed;
  for (float number = 0; numbers >> number;) printed.push_back(number);
  ASSERT_EQ(printed.size(), 96U);
  output_of(command + " --npy " + temporary.path("vectors.npy"));
  const auto saved = xgrad::load_npy<float>(temporary.path("vectors.npy"));
  ASSERT_EQ(xgrad::to_string(saved.shape()), "(3, 32)");
  for (std::size_t i = 0; i < printed.size(); ++i) EXPECT_EQ(saved.data()[i], printed[i]);
  const std::string table = output_of(command + " --similar");
  EXPECT_EQ(table.substr(0, 7), " 1.0000");
  EXPECT_EQ(table.substr(16, 7), " 1.0000") << table;
  const ProgramResult piped = xgrad_tests::run_command(
      "printf 'my shoes\\n' | " XGRAD_PROGRAMS_DIR "/embed " + model_folder("bert_sentence"));
  EXPECT_EQ(std::count(piped.output.begin(), piped.output.end(), '\n'), 1);
  EXPECT_EQ(output_of("embed " + model_folder("bert_sentence") + " </dev/null"), "");
}

TEST(EmbedTest, AByteOrderMarkAndLineEndsAreNoPartOfATextThatIsShown) {
  const ProgramResult result = xgrad_tests::run_command(
      "printf '\\357\\273\\277my shoes\\r\\nfeet\\r\\n' | " XGRAD_PROGRAMS_DIR "/embed " +
      model_folder("bert_sentence") + " --json");
  EXPECT_TRUE(result.output.starts_with("{\"text\":\"my shoes\",")) << result.output;
  EXPECT_NE(result.output.find("\n{\"text\":\"feet\","), std::string::npos) << result.output;
}

TEST(EmbedTest, VectorsOfZerosAreLikeNothing) {
  const xgrad_tests::FolderCopy copy("bert_sentence");
  std::list<xgrad::Array<float>> arrays;
  copy.change([&](std::vector<xgrad::TensorView>& tensors) {
    for (xgrad::TensorView& tensor : tensors) {
      arrays.emplace_back(xt::zeros<float>(tensor.shape));
      tensor = xgrad::view_of(tensor.name, arrays.back());
    }
  });
  EXPECT_EQ(output_of("embed " + copy.path() + " --similar 'my shoes' 'big feet'"),
            " 0.0000  0.0000\n 0.0000  0.0000\n");
}

TEST(DamagedWeightsTest, NanIsAnErrorAndNoResult) {
  std::list<xgrad::Array<float>> arrays;
  // Large weights of the first layers make infinite scores of the attention, and nan of these.
  const auto damaged = [&](const std::string& name) {
    auto copy = std::make_unique<xgrad_tests::FolderCopy>(name);
    copy->change([&](std::vector<xgrad::TensorView>& tensors) {
      for (xgrad::TensorView& tensor : tensors) {
        const auto has = [&](const char* part) { return tensor.name.find(part) != std::string::npos; };
        if (!has(".query.") && !has(".key.") && !has(".q_lin.") && !has(".k_lin.")) continue;
        arrays.push_back(xgrad::to_array<float>(tensor));
        arrays.back() *= 1e25F;
        tensor = xgrad::view_of(tensor.name, arrays.back());
      }
    });
    return copy;
  };
  const xgrad_tests::TemporaryFolder folder;
  const auto sentence = damaged("bert_sentence"), classifier = damaged("bert_classifier"),
             tokens = damaged("distilbert_tokens"), masks = damaged("bert_pretraining");
  const std::string npy = folder.path("vectors.npy");
  for (const std::string& more :
       {std::string(), std::string("--json"), std::string("--similar"), "--npy " + npy}) {
    const ProgramResult result = run_program("embed " + sentence->path() + " 'my shoes' " + more + " 2>&1");
    EXPECT_EQ(result.exit_code, 1);
    const std::string partial =
        more.starts_with("--npy") ? npy + ".partial: is not written, as no vector was complete\n" : "";
    EXPECT_EQ(result.output, partial + "embed: " + sentence->path() + ": vectors must be finite, got nan\n")
        << more;
  }
  EXPECT_EQ(folder.file_count(), 0u);
  for (const auto* copy : {&classifier, &tokens}) {
    EXPECT_EQ(run_program("classify " + (*copy)->path() + " 'my shoes' 2>&1").output,
              "classify: " + (*copy)->path() + ": logits must be numbers, got nan\n");
  }
  EXPECT_EQ(run_program("fill_mask " + masks->path() + " 'my [MASK]' 2>&1 | tail -n 1").output,
            "fill_mask: " + masks->path() + ": probabilities must be numbers, got nan\n");
}

TEST(FillMaskTest, PrintsTheMostProbableTokens) {
  const std::string output = output_of("fill_mask " + model_folder("bert_pretraining") +
                                       " --top 3 'my [MASK] are [MASK]' 2>/dev/null");
  std::istringstream lines(output);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "my [MASK] are [MASK]");
  double before = 100;
  std::size_t guesses = 0;
  for (; std::getline(lines, line); ++guesses) {
    const double probability = std::stod(line);
    EXPECT_LE(probability, guesses == 3 ? 100 : before);
    before = probability;
  }
  EXPECT_EQ(guesses, 6U);
  const std::string roberta =
      xgrad_tests::run_command("printf 'my <mask>\\n\\nold <mask>\\n' | " XGRAD_PROGRAMS_DIR "/fill_mask " +
                               model_folder("roberta_mlm") + " --top 300 2>/dev/null")
          .output;
  EXPECT_NE(roberta.find("\n\nold <mask>\n"), roberta.npos);  // goes on after an empty line
  EXPECT_EQ(roberta.find("\u0120"), roberta.npos);            // a blank among byte symbols
  EXPECT_EQ(error_of("fill_mask " + model_folder("roberta_mlm") + " 'no mask'"),
            "fill_mask: a text must have the mask <mask> among the 64 tokens that the model takes, got \"no "
            "mask\"\n");
}

TEST(ClassifyTest, PrintsProbabilitiesOrTheLabelOfEachWord) {
  const std::string output = output_of("classify " + model_folder("bert_classifier") + " 'My feet'");
  double sum = 0;
  std::istringstream words(output);
  std::set<std::string> labels;
  for (int i = 0; i < 3; ++i) {
    std::string label;
    double probability = 0;
    words >> label >> probability;
    labels.insert(label);
    sum += probability;
  }
  EXPECT_EQ(labels, (std::set<std::string>{"bad", "good", "neither"}));
  EXPECT_NEAR(sum, 1, 2e-4);
  EXPECT_TRUE(output.ends_with("\tMy feet\n"));
  const std::string tagged = output_of("classify " + model_folder("distilbert_tokens") + " 'My föet, big'");
  std::string without;
  for (std::size_t i = 0; i < tagged.size(); ++i) {
    if (tagged[i] == '/') i = std::min(tagged.find_first_of(" \n", i), tagged.size());
    without += tagged[i];
  }
  EXPECT_EQ(without, "My föet, big\n") << tagged;
  std::string many;
  for (int i = 0; i < 200; ++i) many += "feet ";
  EXPECT_TRUE(
      output_of("classify " + model_folder("distilbert_tokens") + " '" + many + "'").ends_with("feet/?\n"))
      << "words behind the last token";
  EXPECT_EQ(error_of("classify " + model_folder("bert_classifier") + " --pairs \"$(printf 'a\\tb\\tc')\""),
            "classify: a pair must be a text, a tab and a text, got \"a\\x09b\\x09c\"\n");
}

TEST(ClassifyTest, NumbersOfARegressionStayInTheirOrder) {
  const xgrad_tests::FolderCopy copy("bert_classifier");
  copy.configure([](nlohmann::json& config) { config["problem_type"] = "regression"; });
  const xgrad::Array<float> bias{-100, 100, 0};
  copy.change([&](std::vector<xgrad::TensorView>& tensors) {
    for (xgrad::TensorView& tensor : tensors)
      if (tensor.name == "classifier.bias") tensor = xgrad::view_of(tensor.name, bias);
  });
  std::istringstream words(output_of("classify " + copy.path() + " 'My feet'"));
  std::string labels;
  for (std::string label, number; words >> label >> number && labels.size() < 12;) labels += label + " ";
  EXPECT_EQ(labels, "good bad neither ");
}

TEST(FillMaskTest, NeedsTheHead) {
  const std::string message = error_of("fill_mask " + model_folder("bert_sentence") + " 'my [MASK]'");
  EXPECT_TRUE(message.starts_with("fill_mask: " + model_folder("bert_sentence") +
                                  ": must hold BertForMaskedLM, got BertModel without cls.predictions."))
      << message;
  EXPECT_NE(error_of("classify " + model_folder("bert_sentence") + " text")
                .find(": must hold BertForSequenceClassification, got BertModel without classifier."),
            std::string::npos);
}

class FineTuneTest : public testing::Test {
 protected:
  FineTuneTest() {
    std::string texts, words;
    for (int i = 0; i < 30; ++i) {
      texts += i % 2 == 0 ? "my big shoes\tbig\n" : "it is small\tsmall\n";
      words += i % 2 == 0 ? "My\tx PRON\nshoes x NOUN\n\n" : "the x DET\nhouse x NOUN\nis x VERB\n\n";
    }
    folder_.write("texts.tsv", texts);
    folder_.write("words.conll", "-DOCSTART- O\n\n" + words);
  }

  std::string command(const std::string& model, const std::string& data, const std::string& more) const {
    return "fine_tune " + model_folder(model) + " " + folder_.path(data) + " --lr 5e-3 --save " +
           folder_.path("out") + " " + more;
  }

  xgrad_tests::TemporaryFolder folder_;
};

TEST_F(FineTuneTest, LearnsLabelsOfTexts) {
  const std::string metrics = folder_.path("metrics.json");
  const std::string output = output_of(
      command("bert_sentence", "texts.tsv", "--epochs 20 --batch 8 --metrics " + metrics + " 2>/dev/null"));
  EXPECT_TRUE(output.starts_with("27 texts to train on, 3 held out, 2 labels, ")) << output;
  const auto report = nlohmann::json::parse(read_bytes(metrics));
  EXPECT_EQ(report.at("accuracy"), 1.0);
  EXPECT_EQ(report.at("labels"), (nlohmann::json{"big", "small"}));
  EXPECT_EQ(output_of("classify " + folder_.path("out") + " 'my big shoes' 'it is small' | cut -d ' ' -f 1"),
            "big\nsmall\n");
  for (const char* file : {"/tokenizer.json", "/vocab.txt"})
    EXPECT_EQ(read_bytes(folder_.path("out") + file), read_bytes(model_folder("bert_sentence") + file));
}

TEST_F(FineTuneTest, LearnsLabelsOfWords) {
  const std::string metrics = folder_.path("metrics.json");
  output_of(command("distilbert_tokens", "words.conll",
                    "--epochs 15 --batch 4 --metrics " + metrics + " 2>/dev/null"));
  EXPECT_EQ(nlohmann::json::parse(read_bytes(metrics)).at("accuracy"), 1.0) << "of words";
  EXPECT_EQ(output_of("classify " + folder_.path("out") + " 'My shoes' 'the house is'"),
            "My/PRON shoes/NOUN\nthe/DET house/NOUN is/VERB\n");
}

TEST_F(FineTuneTest, PaddingIsNoWord) {
  const std::string shorter = "my x O\n\n", longer = "the x O\nold x O\nhouse x PLACE\nis x O\n\n";
  std::string words;
  for (int i = 0; i < 15; ++i) words += shorter + longer;
  folder_.write("padded.conll", words);
  const std::string test = folder_.write("test", shorter + longer);
  const std::string output = output_of(
      command("distilbert_tokens", "padded.conll", "--epochs 15 --batch 4 --test " + test + " 2>/dev/null"));
  EXPECT_NE(output.find("held out: 100.00 % of 5 right"), output.npos) << output;
}

TEST_F(FineTuneTest, TellsHowTheFileWasRead) {
  const auto told = [&](const std::string& model, const std::string& data) {
    const std::string text = run_program(command(model, data, "--steps 1 2>&1 >/dev/null")).output;
    const std::size_t begin = text.find(": read as ");
    return begin == text.npos ? text : text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(told("distilbert_tokens", "words.conll"),
            ": read as lines of columns, a word first and its label last, with a blank line after each "
            "sentence: 30 sentences, 75 words, 4 labels");
  EXPECT_EQ(told("bert_sentence", "texts.tsv"),
            ": read as lines of a text, a tab and a label: 30 texts, 2 labels");
}

TEST_F(FineTuneTest, TextsOfMoreTokensThanTheModelTakesAreCut) {
  std::string lines;
  for (int i = 0; i < 20; ++i) {
    for (int word = 0; word < (i == 3 ? 100 : 2); ++word) lines += "shoe ";
    lines += i % 2 == 0 ? "\tgood\n" : "\tbad\n";
  }
  folder_.write("long.tsv", lines);
  const std::string metrics = folder_.path("metrics.json");
  const std::string told = run_program(command("bert_classifier", "long.tsv",
                                               "--epochs 1 --metrics " + metrics + " 2>&1 >/dev/null"))
                               .output;
  EXPECT_NE(told.find("1 texts are cut to 64 tokens\n"), std::string::npos) << told;
  EXPECT_EQ(nlohmann::json::parse(read_bytes(metrics)).at("labels"),
            (nlohmann::json{"good", "bad", "neither"}))
      << "the model's, as it knows those of the texts";
}

TEST_F(FineTuneTest, ARunIsNotResumedOnOtherSecondTexts) {
  const auto write = [&](const std::string& second) {
    std::string lines;
    for (int i = 0; i < 20; ++i) lines += "my shoes\t" + second + (i % 2 == 0 ? "\tyes\n" : "\tno\n");
    folder_.write("pairs.tsv", lines);
  };
  const auto run = [&](const std::string& more) {
    return command("bert_sentence", "pairs.tsv",
                   "--pairs --steps 2 --checkpoint " + folder_.path("run") + more);
  };
  write("feet");
  output_of(run(" 2>/dev/null"));
  write("house");
  EXPECT_NE(error_of(run(" --resume")).find("the checksum of the texts"), std::string::npos);
}

TEST_F(FineTuneTest, AnInterruptedRunHasTheExitCodeOfItsSignal) {
  for (const auto& [signal, code] : {std::pair{"INT", 130}, {"TERM", 143}}) {
    const std::string log = folder_.path("log");
    std::filesystem::remove(log);
    const ProgramResult result = xgrad_tests::run_command(
        "env --default-signal=INT " XGRAD_PROGRAMS_DIR "/" +
        command("bert_sentence", "texts.tsv", "--patience 100000 --steps 100000 --log " + log) +
        " 2>&1 >/dev/null & run=$!; until [ -s " + log + " ]; do sleep 0.01; done; kill -" + signal +
        " $run; wait $run");
    EXPECT_EQ(result.exit_code, code) << result.output;
    EXPECT_NE(result.output.find("; without --checkpoint, the run cannot be continued\n"), std::string::npos)
        << result.output;
    EXPECT_NE(result.output.find(" is saved in " + folder_.path("out") + "\n"), std::string::npos)
        << result.output;
  }
}

TEST_F(FineTuneTest, AModelThatCannotBeSavedInItsPlaceIsSavedBesideIt) {
  const std::string log = folder_.path("log"), out = folder_.path("out");
  const ProgramResult result = xgrad_tests::run_command(
      "env --default-signal=INT " XGRAD_PROGRAMS_DIR "/" +
      command("bert_sentence", "texts.tsv", "--patience 100000 --steps 100000 --log " + log) +
      " 2>&1 >/dev/null & run=$!; until [ -s " + log + " ]; do sleep 0.01; done; touch " + out +
      "; kill -INT $run; wait $run");
  EXPECT_EQ(result.exit_code, 130) << result.output;
  const std::size_t begin = result.output.find(out + ": cannot be made a folder: ");
  ASSERT_NE(begin, std::string::npos) << result.output;
  const std::string said = result.output.substr(begin), saved = "the model is saved in ";
  const std::string place =
      said.substr(said.find(saved) + saved.size(), said.find(" instead\n") - said.find(saved) - saved.size());
  EXPECT_TRUE(place.starts_with(folder_.path("xgrad-saved-")) && place.ends_with("/out")) << said;
  EXPECT_NE(output_of("classify " + place + " 'my big shoes'"), "");
}

TEST_F(FineTuneTest, RefusesAFolderWithAnotherModelBeforeTheTraining) {
  for (const std::string name : {"pytorch_model.bin", "merges.txt"}) {
    std::filesystem::create_directory(folder_.path("out"));
    folder_.write("out/" + name, "other");
    EXPECT_EQ(
        error_of(command("bert_sentence", "texts.tsv", "")),
        "fine_tune: " + folder_.path("out/" + name) +
            ": is of another model, and would stay beside the saved files and be read with them; remove "
            "it, or save to another folder\n")
        << name;
    EXPECT_EQ(read_bytes(folder_.path("out/" + name)), "other");
    std::filesystem::remove_all(folder_.path("out"));
  }
}

TEST_F(FineTuneTest, ResumesAndRepeatsToTheBit) {
  const std::string weights = folder_.path("out/model.safetensors"), checkpoint = folder_.path("run");
  output_of(command("bert_sentence", "texts.tsv", "--steps 8 --batch 4 --freeze 1 2>/dev/null"));
  const std::string once = read_bytes(weights);
  output_of(command("bert_sentence", "texts.tsv",
                    "--steps 8 --batch 4 --freeze 1 --checkpoint " + checkpoint + " 2>/dev/null"));
  EXPECT_TRUE(read_bytes(weights) == once);
  output_of(command("bert_sentence", "texts.tsv",
                    "--steps 8 --batch 4 --freeze 1 --resume --checkpoint " + checkpoint + " 2>/dev/null"));
  EXPECT_TRUE(read_bytes(weights) == once);
  const xgrad::StateDict<float> trained = xgrad::load_safetensors<float>(weights),
                                before = xgrad::load_safetensors<float>(model_folder("bert_classifier") +
                                                                        "/model.safetensors");
  EXPECT_TRUE(trained.contains("bert.embeddings.word_embeddings.weight"));
  output_of(command("bert_classifier", "texts.tsv",
                    "--steps 4 --freeze 2 --report " + folder_.path("report.html") + " 2>/dev/null"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path("report.html")));
  const auto frozen = xgrad::load_safetensors<float>(weights);
  for (const auto& [name, array] : before) {
    if (!name.starts_with("bert.encoder") && !name.starts_with("bert.embeddings")) continue;
    xgrad_tests::expect_same_bits(frozen.at(name), array);
  }
}

TEST_F(FineTuneTest, LearnsLabelsOfPairsInCsv) {
  std::string records = "id,premise,hypothesis,label\r\n";
  for (int i = 0; i < 30; ++i) {
    records += i % 2 == 0 ? "1,\"my shoes, my feet\",feet,yes \r\n"
                          : "2,the old house,\"it is a \"\"shoe\"\"\",no\r\n";
  }
  folder_.write("pairs.csv", records);
  const std::string run =
      command("bert_sentence", "pairs.csv", "--text premise --second hypothesis --epochs 20 --batch 8");
  EXPECT_TRUE(output_of(run + " 2>/dev/null").starts_with("27 texts to train on, 3 held out, 2 labels, "));
  EXPECT_EQ(output_of("classify " + folder_.path("out") +
                      " --pairs \"$(printf 'my shoes, my feet\\tfeet')\" \"$(printf 'the old house\\tit is a "
                      "\\\"shoe\\\"')\" | cut -d ' ' -f 1"),
            "yes\nno\n");
  EXPECT_EQ(xgrad_tests::run_program(run + " --steps 1 --max-length 9 2>&1 >/dev/null | grep -v weights")
                .output.find(folder_.path("pairs.csv") + ": columns that are not used: \"id\"\n"),
            0U);
  const std::string cut = xgrad_tests::run_program(run + " --steps 1 --max-length 7 2>&1 >/dev/null").output;
  EXPECT_NE(cut.find(" texts are cut to 7 tokens\n"), cut.npos) << cut;
}

TEST_F(FineTuneTest, RefusesFilesThatDoNotFit) {
  const auto refusal = [&](const std::string& text, const std::string& more = "") {
    folder_.write("bad", text);
    const std::string message = error_of(command("bert_sentence", "bad", more));
    const std::string begin = "fine_tune: " + folder_.path("bad");
    return message.starts_with(begin) ? message.substr(begin.size()) : message;
  };
  EXPECT_EQ(refusal("a\tb\nno label\n"), ":2: a line must be a text, a tab and a label, got \"no label\"\n");
  EXPECT_EQ(refusal("a x\nword\n\n"),
            ":2: a line must have a word and a label, as others of a sentence do, got \"word\"\n");
  EXPECT_EQ(error_of(command("bert_sentence", "texts.tsv", "--max-length 65")),
            "fine_tune: --max-length must be at most 64, as the model's, got 65\n");
  EXPECT_EQ(error_of(command("bert_sentence", "texts.tsv", "--test " + folder_.path("./texts.tsv"))),
            "fine_tune: --test must be another file than DATA, got " + folder_.path("./texts.tsv") + "\n");
  EXPECT_EQ(refusal(""), ": must hold texts with labels, got none\n");
  EXPECT_EQ(refusal("a\tx\nb\ty\n"), ": must hold 10 texts or more, one of them held out, got 2\n");
  EXPECT_EQ(refusal("a\tx\n", "--test " + folder_.path("texts.tsv")),
            ": must have 2 to 1000 labels, got 1\n");
  EXPECT_EQ(refusal("a\xff\tx\n"), ":1: a line must be valid UTF-8, got \"a\\xFF\\x09x\"\n");
  EXPECT_EQ(refusal("it was new\tnew\n", "--test " + folder_.path("texts.tsv")),
            ": must have 2 to 1000 labels, got 1\n");
  EXPECT_EQ(error_of(command("bert_sentence", "texts.tsv", "--test " + folder_.path("words.conll"))),
            "fine_tune: " + folder_.path("words.conll") + ": must label texts, as " +
                folder_.path("texts.tsv") + " does\n");
  EXPECT_EQ(error_of(command("bert_sentence", "texts.tsv", "--freeze 2"))
                    .find("Encoder: freeze must name at most the 1 layers, got 2") != std::string::npos,
            true);
}

TEST_F(FineTuneTest, NoProgramSavesInTheFolderOfItsModel) {
  const std::string model = folder_.path("model"), link = folder_.path("link"),
                    data = folder_.path("texts.tsv"), help = "; --help lists the arguments\n";
  std::filesystem::copy(model_folder("bert_sentence"), model, std::filesystem::copy_options::recursive);
  std::filesystem::remove(model + "/modules.json");
  std::filesystem::create_directory_symlink("model", link);
  const std::string weights = read_bytes(model + "/model.safetensors");
  for (const std::string& out : {model, model + "/", folder_.path("./model"), link}) {
    EXPECT_EQ(error_of("fine_tune " + model + " " + data + " --steps 1 --save " + out),
              "fine_tune: --save " + out + " would overwrite the input DIR " + model + help);
    EXPECT_EQ(error_of("pretrain " + model + " --text " + data + " --steps 1 --save " + out),
              "pretrain: --save " + out + " would overwrite the input model " + model + help);
    EXPECT_EQ(error_of("quantize " + model + " " + out),
              "quantize: OUT " + out + " would overwrite the input DIR " + model + help);
  }
  EXPECT_EQ(read_bytes(model + "/model.safetensors"), weights);
}

TEST_F(FineTuneTest, NoOutputOverwritesAnInputOrAFileOfTheModel) {
  const std::string data = folder_.path("texts.tsv"), before = read_bytes(data),
                    folder = model_folder("bert_sentence"), help = "; --help lists the arguments\n";
  for (const std::string option : {"--checkpoint", "--metrics", "--log", "--report"}) {
    EXPECT_EQ(error_of(command("bert_sentence", "texts.tsv", option + " " + data)),
              "fine_tune: " + option + " " + data + " would overwrite the input DATA " + data + help);
  }
  const std::string config = folder + "/config.json", saved = folder_.path("out/config.json");
  EXPECT_EQ(error_of(command("bert_sentence", "texts.tsv", "--metrics " + config)),
            "fine_tune: --metrics " + config + " would overwrite the input DIR " + folder + help);
  EXPECT_EQ(error_of(command("bert_sentence", "texts.tsv", "--metrics " + saved)),
            "fine_tune: --save " + folder_.path("out") + " would overwrite --metrics " + saved + help);
  EXPECT_EQ(read_bytes(data), before);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out")));
  EXPECT_EQ(error_of("fine_tune " + folder + " " + data + " --save ''"),
            "fine_tune: --save: must not be empty" + help);
  EXPECT_EQ(error_of("classify '' text"), "classify: DIR: must not be empty" + help);
}

}  // namespace inference_programs_test
