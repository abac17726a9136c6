// A small GPT learns "The Twelve Days of Christmas" letter by letter, and writes verses
#include <iostream>
#include <xgrad/generation.hpp>
#include <xgrad/xgrad.hpp>

using xgrad::Variable, xgrad::pad_sequence;

constexpr const char* days[] = {"first",   "second", "third", "fourth", "fifth",    "sixth",
                                "seventh", "eighth", "ninth", "tenth",  "eleventh", "twelfth"};
constexpr const char* gifts[] = {
    "a partridge in a pear tree", "two turtle doves",      "three French hens",
    "four calling birds",         "five golden rings",     "six geese a-laying",
    "seven swans a-swimming",     "eight maids a-milking", "nine ladies dancing",
    "ten lords a-leaping",        "eleven pipers piping",  "twelve drummers drumming"};

std::string song() {
  std::string text;
  for (std::size_t day = 0; day < 12; ++day) {
    text += std::string("On the ") + days[day] + " day of Christmas my true love gave to me\n";
    for (std::size_t gift = day + 1; gift-- > 0;)
      text += (gift == 0 && day > 0 ? "and " : "") + std::string(gifts[gift]) + (gift > 0 ? ",\n" : ".\n");
  }
  return text;
}

const std::string letters = "\n ,-.CFOabcdefghiklmnoprstuvwxy";
constexpr std::size_t context = 64;  // letters that the model reads

int main() {
  xgrad::manual_seed(0);
  const std::string text = song();
  const auto ids = [&](const std::string& part) {
    std::vector<std::int64_t> found;
    for (const char letter : part) found.push_back(static_cast<std::int64_t>(letters.find(letter)));
    return found;
  };
  const xgrad::ToyDecoder<double> model(
      {.vocab_size = letters.size(),
       .max_len = context,
       .layers = {.d_model = 48, .heads = 4, .d_ff = 192, .layers = 2, .norm_first = true}});
  xgrad::AdamW<double> optimizer(model.parameters(), {.lr = 0.007});
  for (int step = 0; step < 600; ++step) {
    std::vector<std::vector<std::int64_t>> rows, next;
    for (const std::int64_t start : xgrad::randint(0, std::ssize(text) - std::int64_t{context}, {8})) {
      rows.push_back(ids(text.substr(static_cast<std::size_t>(start), context)));
      next.push_back(ids(text.substr(static_cast<std::size_t>(start) + 1, context)));
    }
    optimizer.zero_grad();
    const Variable<double> scores = flatten(model.token_logits(pad_sequence(rows)), 0, 1);
    cross_entropy(scores, xgrad::reshape(pad_sequence(next), {-1})).backward();
    optimizer.step();
  }

  model.eval();
  const std::string begin = "On the ";
  const auto written = xgrad::generation::generate(
      model, {ids(begin)}, {.max_new_tokens = 793, .do_sample = true, .temperature = 0.5, .top_k = 0}, {},
      xgrad::generation::ContextEnd::slide);
  std::string verses = begin;
  for (const std::int64_t id : written[0]) verses += letters[static_cast<std::size_t>(id)];
  std::cout << verses.substr(0, verses.rfind('.') + 1) << '\n';
}
