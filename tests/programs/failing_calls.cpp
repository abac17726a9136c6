// Lets allocations and system calls fail, in the library and in programs: they say so, and nothing is lost
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <optional>
#include <random>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../failing_memory.hpp"
#include "../temporary_folder.hpp"
#include "library_calls.hpp"

namespace {

namespace fs = std::filesystem;
using xgrad_tests::bytes_of, xgrad_tests::FailingMemory, xgrad_tests::files_of, xgrad_tests::LibraryCall,
    xgrad_tests::TemporaryFolder, xgrad_tests::Trial;

using Files = std::map<std::string, std::string>;

void check(bool done, const std::string& call) {
  if (!done) throw std::runtime_error(call + ": " + std::strerror(errno));
}

struct Options {
  std::vector<std::string> cases;
  std::size_t sample = 30, threads = 1;
  std::uint64_t seed = 1;

  bool wants(const std::string& name) const {
    return cases.empty() ||
           std::ranges::any_of(cases, [&](const std::string& part) { return name.find(part) != name.npos; });
  }
};

/// The table, and how many places failed in all.
class Table {
 public:
  void add(const std::string& name, std::size_t of, std::size_t places,
           const std::vector<std::string>& failures) {
    std::printf("%-56s %8zu places, %6zu tried, %4zu failures\n", name.c_str(), of, places, failures.size());
    for (std::size_t i = 0; i < std::min<std::size_t>(failures.size(), 5); ++i)
      std::printf("    %s\n", failures[i].c_str());
    std::fflush(stdout);
    places_ += places;
    failures_ += failures.size();
  }

  int finish() const {
    std::printf("%zu places tried, %zu failures\n", places_, failures_);
    return failures_ == 0 ? 0 : 1;
  }

 private:
  std::size_t places_ = 0, failures_ = 0;
};

/// So many of the places [0, count), at random, or all if there are no more.
std::vector<std::size_t> sampled(std::size_t count, std::size_t sample, std::mt19937_64& random) {
  std::vector<std::size_t> places;
  if (sample >= count) {
    for (std::size_t i = 0; i < count; ++i) places.push_back(i);
    return places;
  }
  std::set<std::size_t> chosen;
  while (chosen.size() < sample) chosen.insert(random() % count);
  return {chosen.begin(), chosen.end()};
}

std::string signal_text(int status) {
  return WIFSIGNALED(status) ? std::string("ended by ") + ::strsignal(WTERMSIG(status))
                             : "exit code " + std::to_string(WEXITSTATUS(status));
}

// ---- calls of the library, each in a process of its own, as one that ends it must not end the campaign ----

struct Place {
  std::size_t allocation;
  bool for_good;

  std::string text() const {
    return "allocation " + std::to_string(allocation) + (for_good ? " and all after it" : "");
  }
};

/// What is wrong with a call whose allocation fails; empty if nothing is.
std::string fault(const LibraryCall& call, const Place& place, const std::string& result,
                  const std::string& after) {
  const Trial trial = call.make();
  const std::string before = trial.state();
  std::string got, thrown;
  {
    const FailingMemory memory(place.allocation, place.for_good);
    try {
      got = trial.call();
    } catch (const std::bad_alloc&) {
      thrown = "std::bad_alloc";
    } catch (const std::exception& error) {
      thrown = error.what();
    }
  }
  if (thrown.empty()) return got != result ? "another result" : trial.state() != after ? "another state" : "";
  if (thrown != "std::bad_alloc") return "throws: " + thrown;
  const std::string now = trial.state();
  if (now != before && !(call.is_cached && now == after)) return "has changed something";
  return trial.call() != result || trial.state() != after ? "is another call afterwards" : "";
}

/// Runs body(fd) in a process and gives what it writes there, with the status of its end.
template <class Body>
std::pair<std::string, int> output_of_process(const Body& body) {
  std::array<int, 2> ends{};
  check(::pipe(ends.data()) == 0, "pipe");
  const pid_t child = ::fork();
  check(child >= 0, "fork");
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDERR_FILENO);
    try {
      body(ends[1]);
    } catch (const std::exception& error) {
      ::dprintf(ends[1], "%s\n", error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string output;
  std::array<char, 4096> piece{};
  for (ssize_t count; (count = ::read(ends[0], piece.data(), piece.size())) > 0;)
    output.append(piece.data(), static_cast<std::size_t>(count));
  ::close(ends[0]);
  int status = 0;
  check(::waitpid(child, &status, 0) == child, "waitpid");
  return {output, status};
}

std::pair<std::string, std::string> reference(const LibraryCall& call) {
  const Trial trial = call.make();
  const std::string result = trial.call();
  return {result, trial.state()};
}

void fail_library_call(const LibraryCall& call, const Options& options, Table& table) {
  const auto [number, ended] = output_of_process([&](int to) {
    xgrad::set_cache_limit(0);  // every allocation is the system's
    static_cast<void>(reference(call));
    const Trial trial = call.make();
    std::size_t count = 0;
    {
      const FailingMemory memory(SIZE_MAX);
      static_cast<void>(trial.call());
      count = memory.count();
    }
    ::dprintf(to, "%zu", count);
  });
  if (ended != 0) return table.add(call.name, 0, 0, {"does not run: " + signal_text(ended) + " " + number});
  const std::size_t count = std::stoul(number);
  std::mt19937_64 random(options.seed);
  std::vector<Place> places;
  for (const bool for_good : {false, true})
    for (const std::size_t i : sampled(count, options.sample, random)) places.push_back({i, for_good});

  std::vector<std::string> failures;
  for (std::size_t first = 0; first < places.size();) {
    const auto [lines, status] = output_of_process([&](int to) {
      xgrad::set_cache_limit(0);
      const auto [result, after] = reference(call);
      for (std::size_t i = first; i < places.size(); ++i)
        ::dprintf(to, "%s\n", fault(call, places[i], result, after).c_str());
    });
    std::istringstream read(lines);
    for (std::string line; std::getline(read, line); ++first)
      if (!line.empty()) failures.push_back(places[first].text() + ": " + line);
    if (status != 0 && first < places.size())
      failures.push_back(places[first++].text() + ": " + signal_text(status));
  }
  table.add(call.name, 2 * count, places.size(), failures);
}

// ---- programs ----

/// A program that runs in a folder. What it writes is in the folder "out", where `before` writes, too.
struct Program {
  std::string name, arguments, before = "";
  std::vector<std::string> timed = {};    ///< files that hold times: their content may be any that is whole
  std::vector<std::string> rescued = {};  ///< beginnings of what a failed run may leave beside them
};

std::vector<Program> programs(const std::string& data) {
  const std::string sizes = " --d-model 8 --heads 2 --d-ff 8 --layers 1", model = data + "/pretrained/",
                    run = " --steps 2 --batch 4 --metrics out/m.json --report out/r.json";
  const std::vector<std::string> timed{"m.json", "l.jsonl", "r.json"};
  const auto training = [&](const std::string& name, const std::string& arguments) {
    return Program{name,
                   arguments + run + " --log out/l.jsonl --checkpoint out/c",
                   name + " " + arguments + run + " --seed 7",
                   timed,
                   {"xgrad-saved-"}};
  };
  const std::string sentences = model + "bert_sentence ";
  return {
      training("train_toy_encoder", sizes),
      training("train_gpt", "--text text --context 8 --sample-length 4 --save out/s" + sizes),
      training("train_syllables", "--data words --save out/s" + sizes),
      training("train_tagger", "--data tagged --save out/s" + sizes),
      training("fine_tune", sentences + "texts.tsv --save out/s"),
      training("pretrain", model + "bert_pretraining --text text --save out/s"),
      {"tiny_bert",
       "out/s --text text --vocab-size 50 --hidden-size 8 --layers 1 --heads 2 --intermediate-size 8"},
      {"quantize", sentences + "out/s"},
      {"embed",
       sentences + "--npy out/v.npy 'my shoes' feet",
       "embed " + sentences + "--npy out/v.npy house",
       {},
       {"v.npy.partial"}},
      {"search", sentences + "lines --index out/i 'my shoes'",
       "search " + sentences + "other --index out/i feet"},
      {"export_onnx", model + "bert_classifier out/model.onnx --opset 18",
       "export_onnx " + model + "bert_classifier out/model.onnx"},
      {"run_onnx", "x.onnx --input x=x.npy --output y=out/y.npy"},
      {"report", "r.json -o out/r.html", "report other.json -o out/r.html"},
      {"generate", data + "/decoders/llama_text --max-new-tokens 3 'the cat'"},
      {"tokenize", model + "roberta_mlm 'the cat'"},
      {"classify", model + "bert_classifier 'the cat'"},
  };
}

void write_inputs(const TemporaryFolder& folder) {
  std::string text, words, tagged, texts;
  for (int i = 0; i < 60; ++i) {
    text += "the cat sat on the mat.\n";
    tagged += "The/DET cat/NOUN sat/VERB ./.\n";
    texts += i % 2 == 0 ? "my big shoes\tbig\n" : "it is small\tsmall\n";
  }
  for (const char c : std::string("bcdfghjklmnp"))
    for (char d = 'b'; d <= 'm'; ++d)
      words += std::string{c, 'a', d} + " one\n" + std::string{c, 'a', d, 'a'} + " two\n";
  folder.write("text", text);
  folder.write("words", words);
  folder.write("texts.tsv", texts);
  folder.write("lines", "the old house\nmy shoes\nbig feet\n");
  folder.write("other", "my shoes\nbig feet\n");
  fs::create_directory(folder.path("tagged"));
  for (char name = 'a'; name < 'q'; ++name) folder.write("tagged/" + std::string(1, name), tagged);
  xgrad::save_npy(xgrad::Array<float>{{1, 2}, {0, 0}}, folder.path("x.npy"));
  const xgrad::Linear<float> model(2, 2);
  xgrad::onnx::save<float>(
      model, folder.path("x.onnx"), {{"x", {"batch", std::size_t{2}}}},
      [&](const xgrad::onnx::Values<float>& in) {
        return xgrad::onnx::Values<float>{{"y", model(std::get<xgrad::Variable<float>>(in.at("x")))}};
      });
}

struct Failure {
  const char* call;
  int error;  ///< 0: half of what was to be read or written
  bool for_good;

  bool is_repeated() const { return error == 0 || error == EINTR; }  ///< by the program, which then succeeds
  std::string text(std::size_t place) const {
    const std::string what = error == 0 ? "is short" : std::string("is \"") + std::strerror(error) + '"';
    return std::string(call) + " " + std::to_string(place) + (for_good ? " and all after it " : " ") + what;
  }
};

constexpr std::array failures_tried{
    Failure{"memory", ENOMEM, false}, Failure{"memory", ENOMEM, true},  Failure{"open", EACCES, false},
    Failure{"open", EMFILE, false},   Failure{"open", EINTR, false},    Failure{"read", EIO, false},
    Failure{"read", EINTR, false},    Failure{"read", 0, false},        Failure{"write", ENOSPC, false},
    Failure{"write", ENOSPC, true},   Failure{"write", EIO, false},     Failure{"write", EINTR, false},
    Failure{"write", 0, false},       Failure{"fsync", EIO, false},     Failure{"fsync", EINTR, false},
    Failure{"rename", EACCES, false}, Failure{"rename", ENOSPC, false}, Failure{"mmap", ENOMEM, false},
    Failure{"close", EIO, false},     Failure{"close", EINTR, false},   Failure{"ftruncate", EIO, false},
    Failure{"fchmod", EPERM, false},  Failure{"flock", EINTR, false},   Failure{"mkdir", EACCES, false},
};

struct Ended {
  int status;
  std::string errors;
};

/// Runs a command of the shell in a folder, with variables of the environment.
Ended run(const std::string& folder, const std::string& command,
          const std::map<std::string, std::string>& variables) {
  const std::string told = folder + "/stderr";
  const pid_t child = ::fork();
  check(child >= 0, "fork");
  if (child == 0) {
    const rlimit seconds{60, 60};
    ::setrlimit(RLIMIT_CPU, &seconds);
    std::string line = "exec >stdout 2>stderr </dev/null; ";  // by the shell itself, where nothing fails
    for (const auto& [name, value] : variables) line += "export " + name + "=" + value + "; ";
    line += "exec " XGRAD_PROGRAMS_DIR "/" + command;
    if (::chdir(folder.c_str()) == 0) ::execl("/bin/bash", "bash", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  check(::waitpid(child, &status, 0) == child, "waitpid");
  std::ifstream file(told);
  return {status, {std::istreambuf_iterator<char>(file), {}}};
}

class ProgramTrial {
 public:
  ProgramTrial(const Program& program, const TemporaryFolder& folder, const Options& options)
      : program_(program), folder_(folder.path("")), out_(folder.path("out")) {
    variables_ = {{"OMP_NUM_THREADS", std::to_string(options.threads)}, {"OMP_WAIT_POLICY", "passive"}};
    fs::remove_all(out_);
    fs::create_directory(out_);
    if (!program.before.empty()) must_run(program.before, {});
    before_ = files_of(out_);
    must_run(program.name + " " + program.arguments,
             {{"LD_PRELOAD", XGRAD_FAILING_CALLS_PRELOAD}, {"XGRAD_FAIL_COUNTS", "counts"}});
    after_ = files_of(out_);
    std::ifstream counts(folder_ + "/counts");
    for (std::string name; counts >> name;) counts >> counts_[name];
  }

  std::size_t count(const char* call) const { return counts_.at(call); }

  /// What is wrong with a run in which this fails; empty if nothing is.
  std::string fault(const Failure& failure, std::size_t place) const {
    fs::remove_all(out_);
    fs::create_directory(out_);
    for (const auto& [name, bytes] : before_) {
      fs::create_directories(fs::path(out_ + "/" + name).parent_path());
      std::ofstream(out_ + "/" + name, std::ios::binary) << bytes;
    }
    std::map<std::string, std::string> variables{{"LD_PRELOAD", XGRAD_FAILING_CALLS_PRELOAD},
                                                 {"XGRAD_FAIL_CALL", failure.call},
                                                 {"XGRAD_FAIL_AFTER", std::to_string(place)},
                                                 {"XGRAD_FAIL_ERROR", std::to_string(failure.error)}};
    if (failure.for_good) variables["XGRAD_FAIL_FOR_GOOD"] = "yes";
    const Ended ended = run_program(program_.name + " " + program_.arguments, variables);
    const int code = WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : -1;
    if (code != 0 && code != 1) return signal_text(ended.status);
    if (code == 1 && failure.is_repeated()) return "is not repeated: " + ended.errors;
    if (code == 1 && !names_reason(ended.errors, failure)) return "does not say why: " + ended.errors;
    if (code == 1) complete_folders();
    return wrong_files(files_of(out_), code == 0);
  }

  /// Whether the program still does the same where the last failing run was.
  std::string fault_afterwards() const {
    for (const char* name : {"/c", "/l.jsonl"})
      fs::remove(out_ + name);  // only a run that resumes takes these
    const Ended ended = run_program(program_.name + " " + program_.arguments, {});
    return ended.status != 0 ? "fails afterwards: " + ended.errors : wrong_files(files_of(out_), true);
  }

 private:
  Ended run_program(const std::string& command, std::map<std::string, std::string> variables) const {
    variables.insert(variables_.begin(), variables_.end());
    return run(folder_, command, variables);
  }

  void must_run(const std::string& command, const std::map<std::string, std::string>& variables) const {
    const Ended ended = run_program(command, variables);
    if (ended.status != 0)
      throw std::runtime_error(command + ": " + signal_text(ended.status) + "\n" + ended.errors);
  }

  /// Whether it is told why, and of which file: "embed: out/v.npy: cannot be written: No space left on
  /// device".
  bool names_reason(const std::string& errors, const Failure& failure) const {
    if (std::string_view(failure.call) == "memory") return errors.find("memory") != errors.npos;
    const std::string name = program_.name + ": ";
    const std::size_t at = errors.find(name), begin = at == errors.npos ? 0 : at + name.size();
    const std::size_t reason = errors.find(std::strerror(failure.error), begin);
    return reason != errors.npos && errors.find(": ", begin) < reason;
  }

  /// As each reader of a folder does whose new files are all there, but not all in their places.
  void complete_folders() const {
    std::vector<std::string> folders;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(out_))
      if (entry.is_directory()) folders.push_back(entry.path().string());
    for (const std::string& folder : folders)
      if (fs::exists(folder)) xgrad::complete_folder(folder);
  }

  bool is_timed(const std::string& name) const {
    return std::ranges::find(program_.timed, name) != program_.timed.end();
  }

  static bool is_whole(const std::string& name, const std::string& bytes) {
    if (!name.ends_with(".jsonl")) return nlohmann::json::accept(bytes);
    if (!bytes.empty() && bytes.back() != '\n') return false;
    std::istringstream lines(bytes);
    for (std::string line; std::getline(lines, line);)
      if (!nlohmann::json::accept(line)) return false;
    return true;
  }

  /// Each file must be that of before or of after, those of a folder all of the same.
  std::string wrong_files(const Files& now, bool succeeded) const {
    std::map<fs::path, std::set<std::string>> kinds;
    Files all = before_;
    all.insert(after_.begin(), after_.end());
    all.insert(now.begin(), now.end());
    const auto bytes = [](const Files& files, const std::string& name) {
      const auto found = files.find(name);
      return found == files.end() ? std::optional<std::string>() : found->second;
    };
    for (const auto& entry : all) {
      const std::string& name = entry.first;
      const auto is = bytes(now, name), was = bytes(before_, name), becomes = bytes(after_, name);
      if (!was && !becomes) {
        const auto begins = [&](const std::string& rescued) { return name.starts_with(rescued); };
        if (std::ranges::any_of(program_.rescued, begins)) continue;
        return "leaves " + name;
      }
      if (is_timed(name)) {
        if (is != was && (!is || !is_whole(name, *is))) return name + " is not whole";
        continue;
      }
      if (is != was && is != becomes) return name + " is neither the old one nor the new one";
      if (succeeded && is != becomes) return name + " is not written, with exit code 0";
      if (was != becomes) kinds[fs::path(name).parent_path()].insert(is == was ? "old" : "new");
    }
    for (const auto& [folder, some] : kinds)
      if (!folder.empty() && some.size() > 1) return folder.string() + " has old and new files";
    return "";
  }

  const Program& program_;
  std::string folder_, out_;
  std::map<std::string, std::string> variables_;
  Files before_, after_;
  std::map<std::string, std::size_t> counts_;
};

void fail_program(const Program& program, const TemporaryFolder& folder, const Options& options,
                  Table& table) {
  const ProgramTrial trial(program, folder, options);
  std::mt19937_64 random(options.seed);
  for (const Failure& failure : failures_tried) {
    const std::size_t count = trial.count(failure.call);
    if (count == 0) continue;
    std::vector<std::string> failures;
    const std::vector<std::size_t> places = sampled(count, options.sample, random);
    for (const std::size_t place : places) {
      const std::string fault = trial.fault(failure, place);
      if (!fault.empty()) failures.push_back(failure.text(place) + ": " + fault);
    }
    const std::string afterwards = trial.fault_afterwards();
    if (!afterwards.empty()) failures.push_back(afterwards);
    const std::string error = failure.error == 0 ? "short" : ::strerrorname_np(failure.error);
    table.add("program " + program.name + ", " + failure.call + " " + error +
                  (failure.for_good ? " from then on" : ""),
              count, places.size(), failures);
  }
}

int run_campaign(const Options& options) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const std::string data = XGRAD_TEST_DATA_DIR;
  Table table;
  const TemporaryFolder folder;
  fs::create_directory(folder.path("calls"));
  for (const auto& calls : {xgrad_tests::training_calls(folder.path("calls")),
                            xgrad_tests::file_calls(data, folder.path("calls"))})
    for (const LibraryCall& call : calls)
      if (options.wants(call.name)) fail_library_call(call, options, table);
  write_inputs(folder);
  const std::vector<Program> all = programs(data);
  const auto make_reports = [&] {
    for (const char* name : {"r.json", "other.json"}) {
      const std::string command =
          "train_toy_encoder --steps 1 --d-model 8 --heads 2 --d-ff 8 --layers 1 --report " +
          std::string(name);
      if (run(folder.path(""), command, {}).status != 0) throw std::runtime_error(command);
    }
  };
  for (const Program& program : all) {
    if (!options.wants("program " + program.name)) continue;
    if (program.name == "report") make_reports();
    fail_program(program, folder, options, table);
  }
  return table.finish();
}

int run_command(int argc, char** argv) {
  Options options;
  apps::CommandLine app(
      "Lets each of a sample of allocations fail in calls of the library, once and from then on, and in "
      "programs, whose system calls fail, too. What fails must say so, have changed nothing, and give the "
      "same bits when it is repeated.");
  app.add_option("CASE", options.cases,
                 "Parts of the names of cases, such as 'step of' or 'program train_gpt'");
  app.add_option("--sample", options.sample,
                 "Places of each case and kind of failure; all if there are fewer")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of the choice of places")->capture_default_str();
  app.add_option("--threads", options.threads, "Threads of the programs")->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run_campaign(options);
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program("failing_calls", [&] { return run_command(argc, argv); });
}
