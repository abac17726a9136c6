// The notebook programs print every tensor that their notebook prints, in its order, and their gradients.

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "notebook.hpp"
#include "program.hpp"

namespace {

using xgrad_tests::Notebook;

/// The numbers of every "tensor(...)" in a text.
std::vector<std::vector<double>> tensors_in(const std::string& text) {
  static const std::string start = "tensor(";
  std::vector<std::vector<double>> tensors;
  for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start, at)) {
    at += start.size();
    std::vector<double> numbers;
    int depth = 0;
    do {
      const char c = text[at];
      depth += (c == '[') - (c == ']');
      if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-') {
        char* end = nullptr;
        numbers.push_back(std::strtod(text.c_str() + at, &end));
        at = static_cast<std::size_t>(end - text.c_str());
      } else {
        ++at;
      }
    } while (depth > 0 && at < text.size());
    tensors.push_back(std::move(numbers));
  }
  return tensors;
}

struct Program {
  const char* notebook;
  std::vector<std::string> printed;  // in the notebook's order
};

const Program programs[] = {
    {"000_walkthrough",
     {"printed_ids", "printed_tok_vectors", "printed_pos_vectors", "printed_x", "printed_Q", "printed_K",
      "printed_V", "printed_scores", "printed_weights", "printed_Z_single", "printed_Z_multi"}},
    {"001_multihead",
     {"printed_embeddings", "printed_positional_embeddings", "printed_input_embeddings", "printed_W_q",
      "printed_W_k", "printed_W_v", "printed_W_o", "printed_final_output"}},
    {"002_encoder_block",
     {"printed_token_ids", "printed_embedded_tokens", "printed_x_with_pe", "printed_single_Q",
      "printed_shoes_query", "printed_shoes_scores", "printed_shoes_weights", "printed_shoes_context",
      "printed_mha_out", "printed_attn_weights_per_head", "printed_normed_1", "printed_ffn_out",
      "extra_ln2_out",  // where the notebook prints printed_encoder_out_cell69, which its text cannot give
      "printed_encoder_out"}},
    {"003_padding_mask",
     {"printed_batch", "printed_x_0_0", "printed_x", "printed_embedding_table", "printed_padding_mask",
      "printed_src_mask", "printed_Q_0_0", "printed_Q", "printed_Q_reshaped_0_0", "printed_scores_0_0",
      "printed_scores", "printed_scaled_scores", "printed_attention_weights_0_0", "printed_row_sums_0_0",
      "printed_attention_output_0_0_0", "printed_attention_concat_0_0", "printed_final_output_0_0"}},
    {"004_self_attention",
     {"printed_original_output", "printed_W_q_T", "printed_W_k_T", "printed_W_v_T", "printed_q", "printed_k",
      "printed_v", "printed_sims", "printed_scaled_sims", "printed_attention_percents", "printed_output"}}};

void PrintTo(const Program& program, std::ostream* out) { *out << program.notebook; }

/// Of two numbers that are shown with four decimals, or with five digits.
bool close(double shown, double expected) {
  return std::abs(shown - expected) <= 5.1e-5 * std::max(1.0, std::abs(expected));
}

class NotebookProgramTest : public testing::TestWithParam<Program> {
 protected:
  /// Looks for an array among the printed tensors from number `first` on, in one or row by row; returns the
  /// number after it.
  std::size_t find(const std::string& name, std::size_t first) const {
    for (std::size_t at = first; at < output.size(); ++at) {
      if (const std::size_t count = tensors_that_are(name, at); count > 0) return at + count;
    }
    ADD_FAILURE() << name << " is not printed, or not in the notebook's order";
    return first;
  }

  const Notebook notebook{GetParam().notebook};
  const std::vector<std::vector<double>> output =
      tensors_in(xgrad_tests::output_of("notebook_" + std::string(GetParam().notebook, 3)));

 private:
  /// How many tensors from number `at` on are together the array of that name; 0 if they are not.
  std::size_t tensors_that_are(const std::string& name, std::size_t at) const {
    const xgrad::Array<double> expected = notebook.array<double>(name);
    std::size_t compared = 0, next = at;
    while (compared < expected.size() && next < output.size()) {
      for (const double number : output[next++]) {
        if (compared == expected.size()) return notebook.cut_off(name) ? next - at : 0;
        if (!close(number, expected.data()[compared++])) return 0;
      }
    }
    return compared == expected.size() ? next - at : 0;
  }
};

TEST_P(NotebookProgramTest, PrintsTheNotebooksTensorsInOrder) {
  std::vector<std::string> listed = GetParam().printed, all = notebook.names("printed");
  std::size_t next = 0;
  for (const std::string& name : listed) next = find(name, next);
  std::replace(listed.begin(), listed.end(), std::string("extra_ln2_out"),
               std::string("printed_encoder_out_cell69"));
  std::sort(listed.begin(), listed.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(listed, all);
}

TEST_P(NotebookProgramTest, PrintsTheLossAndEveryGradient) {
  EXPECT_FALSE(notebook.names("loss").empty());
  for (const std::string& name : notebook.names("loss")) find(name, 0);
  EXPECT_FALSE(notebook.names("grad").empty());
  for (const std::string& name : notebook.names("grad")) find(name, 0);
}

INSTANTIATE_TEST_SUITE_P(Notebooks, NotebookProgramTest, testing::ValuesIn(programs),
                         [](const auto& info) { return "notebook_" + std::string(info.param.notebook, 3); });

}  // namespace
