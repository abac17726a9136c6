// Mistakes that compile, and what each says when it runs; docs/mistakes/refused.cpp has those that do not
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

namespace {

using namespace xgrad;

/// Prints the code and the error.
void report(std::string code, const std::function<void()>& run) {
  std::cout << code << '\n';
  const auto print = [](const char* type, const std::exception& error) {
    std::cout << "  " << type << ": " << error.what() << '\n';
  };
  try {
    run();
    std::cout << "  no error\n";
  } catch (const ShapeError& error) {
    print("ShapeError", error);
  } catch (const ValueError& error) {
    print("ValueError", error);
  } catch (const IndexError& error) {
    print("IndexError", error);
  } catch (const GraphError& error) {
    print("GraphError", error);
  } catch (const FileError& error) {
    print("FileError", error);
  } catch (const AnomalyError& error) {
    print("AnomalyError", error);
  } catch (const std::runtime_error& error) {
    print("std::runtime_error", error);
  }
}

#define MISTAKE(...) report(#__VA_ARGS__, [&] { __VA_ARGS__; })

const Variable<float> x(arange<float>({2, 3}), true), y(ones<float>({4, 5})), v({1, 2, 3});

void shapes() {
  std::cout << "# shapes\n";
  MISTAKE(x + y);
  MISTAKE(matmul(x, y));
  MISTAKE(sum(x, 2));
  MISTAKE(reshape(x, {4, -1}));
  MISTAKE(cat({x, y}));
  MISTAKE(split(v, {1, 1}));
  MISTAKE(einsum<float>("ij,jk->ik", {x, x}));
  MISTAKE(x.item());
  MISTAKE(index(x, 0, 3));
  MISTAKE(slice(x, 0, 0, 2, -1));
  MISTAKE(topk(v, 4));
  MISTAKE(mT(v));
  MISTAKE(stack({x, y}));
  MISTAKE(Variable<float>(1.0f, true).assign(v.value()));
}

void losses() {
  std::cout << "# losses\n";
  const Variable<float> logits(zeros<float>({2, 3})), column(zeros<float>({3, 1}));
  MISTAKE(mse_loss(column, v));
  MISTAKE(cross_entropy(logits, Ids{0, 3}));
  MISTAKE(cross_entropy(logits, Ids{0, 1, 2}));
  MISTAKE(cross_entropy(logits, logits, {.ignore_index = 0}));
  MISTAKE(embedding(Ids{0, 4}, y));
  MISTAKE(one_hot(Ids{0, -1}));
  MISTAKE(dropout(x, 1.5));
  MISTAKE(huber_loss(v, v, Reduction::mean, -1));
}

void graphs() {
  std::cout << "# graphs\n";
  MISTAKE(x.grad());
  MISTAKE((x * 2).grad());
  MISTAKE((x * 2).backward());
  MISTAKE(sum(v).backward());
  MISTAKE(NoGrad off; sum(x).backward());
  MISTAKE(const auto loss = sum(exp(x)); loss.backward(); loss.backward());
  MISTAKE(auto state = x * 1; sum(state).backward(); state = exp(state); sum(state).backward());
  MISTAKE(const auto loss = sum(square(x)); x.assign(x.value()); loss.backward());
  MISTAKE((x * 2).assign(x.value()));
  MISTAKE(x.set_grad(y));
  MISTAKE(grad(sum(v), {x}));
  MISTAKE(grad(sum(x), {x, Variable<float>(1, true)}));
  MISTAKE(Variable<float> undefined; undefined + x);
  MISTAKE(auto moved = x * 2; const auto kept = std::move(moved); sum(moved));
  MISTAKE(DetectAnomaly guard; log(v - 2));
  x.zero_grad();
}

const ToyEncoder<float> model({.vocab_size = 10,
                               .max_len = 4,
                               .encoder = {.d_model = 8, .heads = 2, .d_ff = 16}});

struct Net : Module<float> {
  Net()
      : Module("Net"),
        first(child("first", Linear<float>(3, 4))),
        second(child("second", Linear<float>(5, 2))) {}
  Variable<float> operator()(const Variable<float>& in) const {
    const auto scope = this->scope();
    return second(relu(first(in)));
  }
  Linear<float> first, second;
};

void models() {
  std::cout << "# models\n";
  const MultiHeadAttention<float> attention(8, 2);
  const Variable<float> batch(zeros<float>({3, 3, 8}));
  MISTAKE(Net()(x));
  MISTAKE(model(Ids{{1, 2, 10}}));
  MISTAKE(model(Ids{{1, 2, 3, 4, 5}}));
  MISTAKE(model(Ids{1, 2}));
  MISTAKE(model.class_logits(Ids{{1, 2}}));
  MISTAKE(MultiHeadAttention<float>(6, 4));
  MISTAKE(attention(select(batch, 0, 0)));
  MISTAKE(attention(batch, full<bool>({3, 3}, true)));
  MISTAKE(attention(batch, full<bool>({2, 1, 1, 3}, true)));
  MISTAKE(padding_mask(Ids{1, 2}, 0));
  MISTAKE(Linear<float>(0, 3));
  MISTAKE(model.requires_grad("encoder.layers.7", false));
  MISTAKE(Net().load_state_dict(Linear<float>(3, 4).state_dict()));
}

void training() {
  std::cout << "# training\n";
  const std::vector<Variable<float>> parameters = Net().parameters();
  MISTAKE(SGD<float>(parameters, {.lr = -0.1}));
  MISTAKE(SGD<float>({x * 2}));
  MISTAKE(Adam<float>({x, x}));
  MISTAKE(SGD<float> optimizer(parameters); optimizer.step());
  MISTAKE(LBFGS<float> optimizer({x}); optimizer.step([] { return sum(x); }));
  MISTAKE(SGD<float> sgd({x}); StepLR<float> rates(sgd, 10); const auto other = std::move(sgd); rates.step());
  MISTAKE(clip_grad_norm(parameters, -1));
  MISTAKE(fit(10, [](std::size_t) { return StepResult{.loss = std::nan("")}; }));
  MISTAKE(BatchSampler(0, {.batch_size = 8}));
  MISTAKE(random_split(10, {8, 3}));
  MISTAKE(uniform<float>({2}, 1, 0));
  MISTAKE(multinomial(Array<float>{0.5f, 0.5f, 0}, 3));
  MISTAKE(Adam<float>({x}).load_state_dict(SGD<float>({x}).state_dict()));
}

void files() {
  std::cout << "# files\n";
  const std::filesystem::path before = std::filesystem::current_path(),
                              folder = std::filesystem::temp_directory_path() / "xgrad_mistakes";
  std::filesystem::create_directory(folder);
  std::filesystem::current_path(folder);
  save_safetensors(Net().state_dict(), "net.safetensors");
  MISTAKE(load_safetensors<float>("missing.safetensors"));
  MISTAKE(load_npz<float>("net.safetensors"));
  MISTAKE(model.load_state_dict(load_safetensors<float>("net.safetensors")));
  MISTAKE(save_safetensors(Net().state_dict(), "no/such/folder.safetensors"));
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

}  // namespace

int main() {
  manual_seed(0);
  shapes();
  losses();
  graphs();
  models();
  training();
  files();
}
