// A report of a training loop of one's own
#include <xgrad/report.hpp>
#include <xgrad/xgrad.hpp>

int main() {
  xgrad::manual_seed(0);
  const xgrad::ToyEncoder<float> model(
      {.vocab_size = 8, .max_len = 4, .encoder = {.d_model = 8, .heads = 2, .d_ff = 16, .layers = 1}});
  xgrad::Adam<float> optimizer(model.parameters(), {.lr = 1e-2});
  const xgrad::Ids ids{{0, 2, 3, 4}}, words{1, 2, 3, 4};

  // [report]
  const auto loss = [&] { return cross_entropy(reshape(model.token_logits(ids), {4, -1}), words); };
  const xgrad::ReportExample example{"one sentence", {{"[mask]", "cat", "sat", "here"}}};
  xgrad::Report report("a sentence");
  const auto train = [&](std::size_t step) {
    optimizer.zero_grad();
    const xgrad::Variable<float> now = loss();
    now.backward();
    optimizer.step();
    report.point("loss", step, now.item());
    return xgrad::StepResult{.loss = now.item()};
  };
  xgrad::fit(
      100, train,
      {.observe =
           [&](std::size_t done) { report.step(done).parameters(model).observe(example, model, loss); },
       .observe_step = [&](std::size_t done) { report.step(done).next_step(model); }});
  report.write("sentence.html");
  // [report]
}
