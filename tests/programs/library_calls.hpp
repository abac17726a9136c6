#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <xgrad/files.hpp>
#include <xgrad/generation.hpp>
#include <xgrad/onnx.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/retrieval.hpp>
#include <xgrad/xgrad.hpp>

#include "../train/optimizer_kinds.hpp"

namespace xgrad_tests {

/// A call, which gives its result as bytes, and what it may change, as bytes.
struct Trial {
  std::function<std::string()> call;
  std::function<std::string()> state = [] { return std::string(); };
};

struct LibraryCall {
  std::string name;
  std::function<Trial()> make;  ///< what the call needs, each time anew if the call changes it
  bool is_cached = false;       ///< whether a call that throws may have written the file that it then reads
};

/// The bytes of all files of a folder, by path.
inline std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), folder).string()] = {std::istreambuf_iterator<char>(file),
                                                                       {}};
  }
  return files;
}

template <class T>
std::string bytes_of(const xgrad::Array<T>& array) {
  return {reinterpret_cast<const char*>(array.data()), array.size() * sizeof(T)};
}

template <class T>
std::string bytes_of(const xgrad::StateDict<T>& arrays) {
  std::string bytes;
  for (const auto& [name, array] : arrays) bytes += name + bytes_of(array);
  return bytes;
}

inline std::string bytes_of(const xgrad::TrainingState& state) {
  std::string bytes = bytes_of(state.floats) + bytes_of(state.doubles);
  for (const auto& [name, number] : state.numbers) bytes += name + std::to_string(number);
  return bytes;
}

inline std::string bytes_of(const std::map<std::string, std::string>& files) {
  std::string bytes;
  for (const auto& [name, content] : files) bytes += name + "\n" + content;
  return bytes;
}

/// Two layers with dropout. A step draws from the generator, which who repeats it sets back.
class TrainedLayers {
 public:
  TrainedLayers() {
    xgrad::manual_seed(5);
    for (const xgrad::Shape& shape : {xgrad::Shape{6, 8}, xgrad::Shape{8, 3}})
      parameters_.emplace_back(xgrad::normal<float>(shape), true);
    x_ = xgrad::normal<float>({4, 6});
    y_ = xgrad::normal<float>({4, 3});
    random_ = xgrad::get_rng_state();
  }

  const std::vector<xgrad::Variable<float>>& parameters() const { return parameters_; }

  /// The loss after zero_grad and backward, with clipped gradients.
  xgrad::Variable<float> differentiate() const {
    xgrad::set_rng_state(random_);
    for (const auto& parameter : parameters_) parameter.zero_grad();
    const auto hidden = dropout(gelu(matmul(xgrad::Variable<float>(x_), parameters_[0])), 0.25);
    const auto loss = mse_loss(matmul(hidden, parameters_[1]), xgrad::Variable<float>(y_));
    loss.backward();
    xgrad::clip_grad_norm(parameters_, 0.5);
    return loss;
  }

  std::string state(const xgrad::Stateful& optimizer) const {
    std::string bytes = bytes_of(optimizer.state_dict());
    for (const auto& parameter : parameters_) bytes += bytes_of(parameter.value());
    return bytes;
  }

 private:
  std::vector<xgrad::Variable<float>> parameters_;
  xgrad::Array<float> x_, y_;
  std::string random_;
};

inline std::vector<LibraryCall> training_calls(const std::string& folder) {
  std::vector<LibraryCall> calls;
  for (const OptimizerKind& kind : optimizer_kinds()) {
    calls.push_back({std::string("step of ") + kind.name, [kind] {
                       const auto layers = std::make_shared<TrainedLayers>();
                       const std::shared_ptr<xgrad::Optimizer<float>> optimizer =
                           kind.make(layers->parameters());
                       return Trial{[=] {
                                      const auto loss = layers->differentiate();
                                      optimizer->step();
                                      return bytes_of(loss.value());
                                    },
                                    [=] { return layers->state(*optimizer); }};
                     }});
  }
  calls.push_back(
      {"step of LBFGS", [] {
         const auto layers = std::make_shared<TrainedLayers>();
         const auto optimizer = std::make_shared<xgrad::LBFGS<float>>(
             layers->parameters(),
             xgrad::LBFGSOptions{.max_iter = 4, .line_search_fn = xgrad::LineSearch::strong_wolfe});
         return Trial{[=] {
                        const auto loss = optimizer->step([&] { return layers->differentiate(); });
                        return std::to_string(loss);
                      },
                      [=] { return layers->state(*optimizer); }};
       }});
  const auto run = [] {
    const auto layers = std::make_shared<TrainedLayers>();
    const auto optimizer = std::make_shared<xgrad::Adam<float>>(layers->parameters());
    static_cast<void>(layers->differentiate());
    optimizer->step();
    return std::pair(layers, optimizer);
  };
  const std::string path = folder + "/run.safetensors";
  calls.push_back({"save_checkpoint", [=] {
                     std::filesystem::remove(path);
                     const auto [layers, optimizer] = run();
                     xgrad::save_checkpoint({{"optimizer", *optimizer}}, path, 1);
                     static_cast<void>(layers->differentiate());
                     optimizer->step();
                     return Trial{[=, optimizer = optimizer] {
                                    xgrad::save_checkpoint({{"optimizer", *optimizer}}, path, 2);
                                    return std::string();
                                  },
                                  [=] { return bytes_of(files_of(folder)); }};
                   }});
  calls.push_back({"load_checkpoint", [=] {
                     const auto [layers, optimizer] = run();
                     xgrad::save_checkpoint({{"optimizer", *optimizer}}, path, 1);
                     optimizer->step();
                     xgrad::manual_seed(9);
                     return Trial{
                         [=, optimizer = optimizer] {
                           return std::to_string(xgrad::load_checkpoint(path, {{"optimizer", *optimizer}}));
                         },
                         [=, layers = layers, optimizer = optimizer] {
                           return layers->state(*optimizer) + xgrad::get_rng_state();
                         }};
                   }});
  return calls;
}

/// A call on what is made once: one that fails may not have changed it.
template <class V, class F>
LibraryCall call_on(const std::string& name, const std::function<V()>& make, const F& call) {
  const auto value = std::make_shared<std::shared_ptr<const V>>();
  return {name, [=] {
            if (!*value) *value = std::make_shared<const V>(make());
            return Trial{[=] { return call(**value); }};
          }};
}

inline std::vector<LibraryCall> file_calls(const std::string& data, const std::string& folder) {
  using namespace xgrad::pretrained;
  using xgrad::Array, xgrad::Ids, xgrad::StateDict, xgrad::tokenizers::Tokenizer;
  using xgrad::retrieval::SearchIndex, xgrad::retrieval::SearchIndexOptions;
  const std::string sentences = data + "/pretrained/bert_sentence", decoder = data + "/decoders/llama_text",
                    gguf = data + "/gguf/llama_q8_0.gguf", graph = data + "/onnx/by_hand.onnx",
                    encoder_graph = data + "/onnx/torch113_bert_classifier_opset17.onnx";
  std::vector<LibraryCall> calls;
  const auto load = [&](const std::string& name, const auto& f) {
    calls.push_back({name, [f] { return Trial{f}; }});
  };
  load("load a WordPiece tokenizer",
       [=] { return Tokenizer::from_folder(sentences).encode("my big shoes").ids.empty() ? "" : "ids"; });
  for (const char* name :
       {"/pretrained/roberta_mlm", "/pretrained/tokenizers/albert_mlm", "/decoders/llama_text"})
    load("load the tokenizer of " + std::string(name).substr(1), [path = data + name] {
      const Tokenizer tokenizer = Tokenizer::from_folder(path);
      return tokenizer.decode(tokenizer.encode("the old house").ids);
    });
  load("load an encoder",
       [=] { return bytes_of(MaskedLM<float>::from_folder(data + "/pretrained/roberta_mlm").state_dict()); });
  load("load a sentence encoder", [=] {
    const auto model = SentenceEmbedder<float>::from_folder(sentences, {.precision = Precision::int8});
    return bytes_of(model(std::vector<std::string>{"my big shoes"}));
  });
  load("load a decoder", [=] { return bytes_of(CausalLM<float>::from_folder(decoder).state_dict()); });
  load("load a GGUF model", [=] { return bytes_of(CausalLM<float>::from_folder(gguf).state_dict()); });
  load("load a GGUF tokenizer", [=] {
    const Tokenizer tokenizer = load_tokenizer(gguf);
    return tokenizer.decode(tokenizer.encode("the old house").ids);
  });

  const auto embedder = [=] { return SentenceEmbedder<float>::from_folder(sentences); };
  const std::vector<std::string> texts{"my big shoes", "the old house", "feet"};
  calls.push_back(call_on<SentenceEmbedder<float>>(
      "embed", embedder, [=](const auto& model) { return bytes_of(model(texts)); }));
  for (const bool samples : {false, true})
    calls.push_back(call_on<CausalLM<float>>(
        samples ? "generate with sampling" : "generate",
        [=] { return CausalLM<float>::from_folder(decoder); },
        [=](const auto& model) {
          xgrad::manual_seed(4);
          std::string bytes;
          for (const auto& one : xgrad::generation::generate(model, {{3, 5, 7}, {9}},
                                                             {.max_new_tokens = 4, .do_sample = samples}))
            for (const std::int64_t id : one) bytes += std::to_string(id) + " ";
          return bytes;
        }));

  const auto save = [&](const std::string& name, const auto& make, const auto& f) {
    using V = decltype(make());
    const auto value = std::make_shared<std::shared_ptr<const V>>();
    calls.push_back({name, [=] {
                       if (!*value) *value = std::make_shared<const V>(make());
                       std::filesystem::remove_all(folder);
                       std::filesystem::create_directory(folder);
                       return Trial{[=] {
                                      f(**value, folder);
                                      return std::string();
                                    },
                                    [=] { return bytes_of(files_of(folder)); }};
                     }});
  };
  save(
      "save_npy",
      [] {
        return Array<float>(xgrad::Shape{100, 3}, 2.0f);
      },
      [](const auto& x, const std::string& to) { xgrad::save_npy(x, to + "/x.npy"); });
  save(
      "save_npz",
      [] {
        return StateDict<float>{{"x", Array<float>(xgrad::Shape{100, 3}, 2.0f)}};
      },
      [](const auto& x, const std::string& to) { xgrad::save_npz(x, to + "/x.npz"); });
  save(
      "save an encoder", [=] { return MaskedLM<float>::from_folder(data + "/pretrained/roberta_mlm"); },
      [](const auto& model, const std::string& to) { save_folder(model, to + "/model"); });
  save("save a sentence encoder", embedder,
       [](const auto& model, const std::string& to) { model.save(to + "/model"); });
  save(
      "save a decoder", [=] { return CausalLM<float>::from_folder(decoder); },
      [](const auto& model, const std::string& to) { save_folder(model, to + "/model"); });
  save(
      "export ONNX", [=] { return MaskedLM<float>::from_folder(data + "/pretrained/roberta_mlm"); },
      [](const auto& model, const std::string& to) {
        xgrad::onnx::save<float>(model, to + "/model.onnx", {{"input_ids", {"batch", "sequence"}, 3, 20}},
                                 [&](const xgrad::onnx::Values<float>& in) {
                                   return xgrad::onnx::Values<float>{
                                       {"logits", model({.input_ids = std::get<Ids>(in.at("input_ids"))})}};
                                 });
      });

  load("import ONNX",
       [=] { return std::to_string(xgrad::onnx::Graph<float>(encoder_graph).operators().size()); });
  calls.push_back(call_on<xgrad::onnx::Graph<float>>(
      "run ONNX", [=] { return xgrad::onnx::Graph<float>(encoder_graph); },
      [](const auto& model) {
        xgrad::onnx::Values<float> in;
        for (const auto& input : model.inputs())
          in[input.name] = Ids(xgrad::Shape{2, 5}, input.name == "token_type_ids" ? 0 : 1);
        std::string bytes;
        for (const auto& [name, value] : model(in))
          bytes += bytes_of(std::get<xgrad::Variable<float>>(value).value());
        return bytes;
      }));

  const std::string corpus = folder + ".txt", index = folder + "/index";
  std::ofstream(corpus) << "the old house\nmy shoes\nbig feet\n";
  const SearchIndexOptions quiet{.note = [](const std::string&) {}};
  save("make a search index", embedder, [=](const auto& model, const std::string& to) {
    static_cast<void>(SearchIndex<float>::open(to + "/index", corpus, model, quiet));
  });
  calls.back().is_cached = true;
  const auto made = [=] {
    auto model = embedder();
    auto opened = SearchIndex<float>::open(index, corpus, model, quiet);
    return std::pair(std::move(model), std::move(opened));
  };
  using Made = decltype(made());
  calls.push_back(call_on<Made>("open a search index", made, [=](const Made& all) {
    return std::to_string(SearchIndex<float>::open(index, corpus, all.first, quiet).size());
  }));
  calls.push_back(call_on<Made>("search", made, [=](const Made& all) {
    std::string bytes;
    const auto hits = all.second.search(all.first(texts));
    for (const auto& hit : hits.front())
      bytes += std::string(all.second.text(hit.index)) + std::to_string(hit.score);
    return bytes;
  }));
  return calls;
}

}  // namespace xgrad_tests
