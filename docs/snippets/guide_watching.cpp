// The page "Watching a computation", section by section
#include <iostream>
#include <map>

#include <xgrad/xgrad.hpp>

namespace {

using xgrad::Array, xgrad::Variable;

xgrad::ToyEncoder<float> make_model() {
  xgrad::manual_seed(0);
  return xgrad::ToyEncoder<float>(
      {.vocab_size = 100, .max_len = 16, .classes = 2, .encoder = {.d_model = 32, .heads = 4, .d_ff = 64}});
}

const xgrad::Ids labels{0, 1};

void profiles() {
  std::cout << "# profile\n";
  const xgrad::ToyEncoder<float> model = make_model();
  const xgrad::Ids ids = xgrad::randint(0, 100, {2, 16});
  // [profile]
  const xgrad::Profile profile = xgrad::profile([&] { mean(model(ids)).backward(); });
  for (const xgrad::ProfileRow& row : profile.modules) {
    std::cout << row.name << ": " << row.calls << " x, " << row.bytes << " bytes\n";
  }
  // [profile]
}

void anomalies() {
  std::cout << "# anomaly\n";
  // [anomaly]
  const Variable<double> x(Array<double>{1, -1}, true);
  try {
    const xgrad::DetectAnomaly guard;
    const Variable<double> y = mean(exp(log(x)));
  } catch (const xgrad::AnomalyError& error) {
    std::cout << error.what() << '\n';
  }
  // [anomaly]
}

// [watcher]
class OpCounter : public xgrad::Watcher {
 public:
  const std::map<std::string, int>& counts() const { return counts_; }

 private:
  void on_op(const xgrad::OpEvent<float>& event) override {
    const std::string where = event.module != nullptr ? event.module->type : "no module";
    if (!event.in_backward) ++counts_[std::string(event.op.name) + " in " + where];
  }

  std::map<std::string, int> counts_;
};
// [watcher]

void own_watcher() {
  std::cout << "# watcher\n";
  const xgrad::ToyEncoder<float> model = make_model();
  const xgrad::Ids ids = xgrad::randint(0, 100, {2, 16});
  // [watch]
  OpCounter counter;  // watches as long as it lives
  cross_entropy(model.class_logits(ids), labels).backward();
  for (const auto& [op, count] : counter.counts()) std::cout << count << ' ' << op << '\n';
  // [watch]
}

}  // namespace

int main() {
  profiles();
  anomalies();
  own_watcher();
}
