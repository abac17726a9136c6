#include "labelled_texts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/train/data.hpp>
#include <xgrad/train/vocabulary.hpp>

#include "csv_reader.hpp"
#include "line_reader.hpp"
#include "utf8.hpp"
#include "word_labels.hpp"

namespace apps {
namespace {

using json = xgrad::detail::JsonTree;

/// The texts of a file, and whether their words have the labels.
struct LabelledTexts {
  std::vector<LabelledText> texts;
  bool of_words = false;
  bool named = true;  ///< whether the file names its columns
  std::vector<std::string> notes;
  std::string form = {};  ///< how the file was read
};

constexpr const char* blanks = " \t";

bool is_blank(const std::string& line) { return line.find_first_not_of(blanks) == line.npos; }

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::size_t begin = 0;
  for (std::size_t tab; (tab = line.find('\t', begin)) != line.npos; begin = tab + 1)
    fields.push_back(line.substr(begin, tab - begin));
  fields.push_back(line.substr(begin));
  return fields;
}

/// `"a", "b"`, of which an error shows the first.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
}

std::string at_line(const std::string& path, std::size_t line) {
  return path + ":" + std::to_string(line) + ": ";
}

[[noreturn]] void fail(const std::string& path, std::size_t line, const std::string& what) {
  throw std::runtime_error(at_line(path, line) + what);
}

/// The columns of a table that are read.
class Columns {
 public:
  /// By the names in the first line.
  Columns(const std::vector<std::string>& names, const LabelledForm& form, const std::string& path,
          std::size_t line)
      : count_(names.size()) {
    label_ = place_of(names, form.label.value_or("label"), "--label", path, line);
    if (form.second) second_ = place_of(names, *form.second, "--second", path, line);
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < count_; ++i) {
      if (i != label_ && i != second_ && !names[i].empty()) others.push_back(i);
    }
    const bool is_named = form.text || others.size() != 1;
    text_ = is_named ? place_of(names, form.text.value_or("text"), "--text", path, line) : others.front();
    std::vector<std::string> unused;
    for (std::size_t i = 0; i < count_; ++i) {
      if (i != label_ && i != second_ && i != text_) unused.push_back(names[i]);
    }
    if (!unused.empty()) note_ = path + ": columns that are not used: " + listed(unused);
  }

  /// Without names: the text, the second text of a pair, and the label.
  explicit Columns(bool pairs)
      : second_(pairs ? std::optional<std::size_t>(1) : std::nullopt),
        label_(pairs ? 2 : 1),
        count_(label_ + 1) {}

  std::size_t count() const { return count_; }
  const std::string& note() const { return note_; }

  LabelledText text_of(const std::vector<std::string>& fields, const std::string& path,
                       std::size_t line) const {
    LabelledText text{fields[text_], {}, {trimmed(fields[label_])}, {line}};
    if (second_) text.second = fields[*second_];
    if (is_blank(text.text)) fail(path, line, "a text must not be blank");
    if (text.labels.front().empty()) fail(path, line, "a label must not be blank");
    return text;
  }

 private:
  /// A hint where one name has what other files have between theirs.
  static std::string other_separator(const std::vector<std::string>& names) {
    if (names.size() != 1) return "";
    for (const auto& [separator, shown] :
         {std::pair{';', "';'"}, {'\t', "tabs, as --format tsv has them"}, {',', "','"}, {'|', "'|'"}}) {
      if (names.front().find(separator) != std::string::npos)
        return std::string("; are they separated by ") + shown + "?";
    }
    return "";
  }

  static std::size_t place_of(const std::vector<std::string>& names, const std::string& name,
                              const char* option, const std::string& path, std::size_t line) {
    const auto count = std::ranges::count(names, name);
    if (count != 1)
      fail(path, line,
           std::string("the columns must have one of the name ") + printable(name) + ", or that of " +
               option + ", got " + listed(names) + other_separator(names));
    return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  }

  std::size_t text_ = 0;
  std::optional<std::size_t> second_;
  std::size_t label_ = 0, count_;
  std::string note_;
};

void note_blank_lines(std::size_t count, const std::string& path, LabelledTexts& all) {
  if (count > 0)
    all.notes.push_back(path + ": " + std::to_string(count) + " blank line" + (count == 1 ? "" : "s") +
                        " left out");
}

/// Whether the field is in quotes and has doubled ones in it, as a writer of CSV makes them.
bool is_quoted(const std::string& field) {
  if (field.size() < 4 || field.front() != '"' || field.back() != '"') return false;
  const std::string inner = field.substr(1, field.size() - 2);
  std::size_t quote = inner.find('"');
  if (quote == inner.npos) return false;
  for (; quote != inner.npos; quote = inner.find('"', quote + 2)) {
    if (quote + 1 == inner.size() || inner[quote + 1] != '"') return false;
  }
  return true;
}

/// Lines of columns, with tabs between. The first one names them if it has a column `label`, or if names are
/// given.
LabelledTexts read_lines(const std::string& path, const LabelledForm& form) {
  LabelledTexts all;
  LineReader reader(path);
  std::optional<Columns> columns;
  std::size_t blank_lines = 0;
  for (std::string line; reader.next(line);) {
    if (is_blank(line)) {
      ++blank_lines;
      continue;
    }
    const std::vector<std::string> fields = fields_of(line);
    if (!columns) {
      const bool named = form.text || form.second || form.label || std::ranges::count(fields, "label") == 1;
      if (named && form.pairs)
        reader.fail("the first line must be a pair and a label, or --second name a column instead of --pairs",
                    line);
      all.named = named;
      if (named) {
        columns.emplace(fields, form, path, reader.number());
        continue;
      }
      columns.emplace(form.pairs);
    }
    if (fields.size() != columns->count())
      reader.fail(columns->count() == 2
                      ? "a line must be a text, a tab and a label"
                      : "a line must have " + std::to_string(columns->count()) + " columns with tabs between",
                  line);
    if (form.format.empty() && std::any_of(fields.begin(), fields.end(), is_quoted))
      reader.fail(
          "a text with doubled quotes in quotes is read by --format tsv, and as it is by --format lines",
          line);
    all.texts.push_back(columns->text_of(fields, path, reader.number()));
  }
  note_blank_lines(blank_lines, path, all);
  if (columns && !columns->note().empty()) all.notes.push_back(columns->note());
  return all;
}

LabelledTexts read_csv(const std::string& path, const LabelledForm& form, char separator) {
  LabelledTexts all;
  CsvReader reader(path, separator);
  std::vector<std::string> fields;
  if (!reader.next(fields)) return all;
  const Columns columns(fields, form, path, reader.line());
  while (reader.next(fields)) {
    if (fields.size() != columns.count())
      fail(path, reader.line(),
           "a record must have " + std::to_string(columns.count()) + " fields, as the first one, got " +
               std::to_string(fields.size()));
    all.texts.push_back(columns.text_of(fields, path, reader.line()));
  }
  note_blank_lines(reader.blank_lines(), path, all);
  if (!columns.note().empty()) all.notes.push_back(columns.note());
  return all;
}

/// An object in a line, whose keys are unique.
json object_in(const LineReader& reader, const std::string& line) {
  std::set<std::string> keys;
  bool unique = true;
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1)
      unique = keys.insert(parsed.get<std::string>()).second && unique;
    return true;
  };
  json object = json::parse(line, check, false);
  if (!object.is_object()) reader.fail("a line must be a JSON object", line);
  if (!unique) reader.fail("an object must have each key once", line);
  return object;
}

LabelledTexts read_jsonl(const std::string& path, const LabelledForm& form) {
  LabelledTexts all;
  LineReader reader(path);
  std::size_t blank_lines = 0;
  for (std::string line; reader.next(line);) {
    if (is_blank(line)) {
      ++blank_lines;
      continue;
    }
    const json object = object_in(reader, line);
    const auto member = [&](const std::string& name, const char* option) -> const json& {
      const auto found = object.find(name);
      if (found == object.end())
        reader.fail("an object must have the key " + printable(name) + ", or that of " + option, line);
      return *found;
    };
    const auto text = [&](const std::string& name, const char* option) {
      const json& value = member(name, option);
      if (!value.is_string())
        reader.fail("the value of " + printable(name) + " must be a string", value.dump());
      return value.get<std::string>();
    };
    const json& label = member(form.label.value_or("label"), "--label");
    if (!label.is_string() && !label.is_number_integer() && !label.is_boolean())
      reader.fail("a label must be a string, a whole number or a bool", label.dump());
    LabelledText read{text(form.text.value_or("text"), "--text"),
                      {},
                      {trimmed(label.is_string() ? label.get<std::string>() : label.dump())},
                      {reader.number()}};
    if (form.second) read.second = text(*form.second, "--second");
    if (is_blank(read.text)) reader.fail("a text must not be blank", line);
    if (read.labels.front().empty()) reader.fail("a label must not be blank", line);
    all.texts.push_back(std::move(read));
  }
  note_blank_lines(blank_lines, path, all);
  return all;
}

constexpr const char* how_files_look =
    "texts are in lines of a text, a tab and a label; words in lines of columns, the word first and its "
    "label "
    "last, with a blank line after each sentence";

/// Adds the word of a line "word ... label" to the sentence. Lines of any text have other numbers of columns
/// than the one before; `count` is that, and 0 where it is not compared.
void add_word(const LineReader& reader, const std::string& line, std::size_t& count, LabelledText& sentence) {
  const std::vector<std::string> columns = xgrad::whitespace_tokens(line);
  if (columns.size() < 2)
    reader.fail("a line must have a word and a label, as others of a sentence do", line);
  if (columns.front() == "-DOCSTART-") return;
  if (count != 0 && columns.size() != count)
    reader.fail("a line must have " + std::to_string(count) +
                    " columns, as the ones before, or --format words must say that it has a word and its "
                    "label; " +
                    how_files_look,
                line);
  if (!sentence.text.empty()) sentence.text += ' ';
  sentence.text += columns.front();
  sentence.labels.push_back(columns.back());
  sentence.lines.push_back(reader.number());
}

/// In a file that only its lines tell to be one of words, all have one number of columns.
LabelledTexts read_words(const std::string& path, bool is_guessed) {
  LabelledTexts all{.texts = {}, .of_words = true, .named = true, .notes = {}, .form = {}};
  LineReader reader(path);
  std::size_t columns = 0;
  LabelledText sentence;
  const auto end_sentence = [&] {
    if (!sentence.labels.empty()) all.texts.push_back(std::exchange(sentence, {}));
  };
  for (std::string line; reader.next(line);) {
    if (is_blank(line)) {
      end_sentence();
    } else {
      add_word(reader, line, columns, sentence);
      if (is_guessed && columns == 0 && !sentence.labels.empty())
        columns = xgrad::whitespace_tokens(line).size();
    }
  }
  end_sentence();
  return all;
}

/// Refuses a file that begins with an object of JSON.
void check_no_json(const std::string& path) {
  LineReader reader(path);
  for (std::string line; reader.next(line);) {
    if (is_blank(line)) continue;
    if (line.find_first_not_of(blanks) == line.find('{') && json::accept(line))
      reader.fail("a line of JSON is read by --format jsonl, or from a file whose name ends in .jsonl", line);
    return;
  }
}

/// What a file without a telling name has, "lines" or "words". Sentences of words have blank lines between;
/// a text with a blank in front of the tab is none of their words.
std::string format_in(const std::string& path) {
  LineReader reader(path);
  bool has_lines = false, has_tabs = false, has_texts = false, has_blank_lines = false, is_behind_gap = false,
       has_gaps = false;
  for (std::string line; reader.next(line);) {
    if (!decode_utf8(line)) reader.fail("a line must be valid UTF-8", line);
    if (is_blank(line)) {
      has_blank_lines = true;
      is_behind_gap = has_lines;
      continue;
    }
    const std::size_t tab = line.rfind('\t');
    has_tabs = has_tabs || tab != line.npos;
    has_texts = has_texts || (tab != line.npos && line.find(' ') < tab);
    has_gaps = has_gaps || is_behind_gap;
    has_lines = true;
  }
  return (has_tabs ? has_gaps && !has_texts : has_blank_lines) ? "words" : "lines";
}

/// The format, and whether only the lines tell it.
std::pair<std::string, bool> format_of(const std::string& path, const LabelledForm& form) {
  std::string name = path;
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  const std::string in_lines = format_in(path);  // which checks that the file is UTF-8, too
  if (!form.format.empty()) return {form.format, false};
  if (name.ends_with(".csv")) return {"csv", false};
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return {"jsonl", false};
  for (const char* ending : {".conll", ".bio", ".iob", ".iob2"}) {
    if (name.ends_with(ending)) return {"words", false};
  }
  check_no_json(path);
  return {form.text || form.second || form.label || form.pairs ? "lines" : in_lines, true};
}

std::map<std::string, std::size_t> counts_of(const std::vector<LabelledText>& texts) {
  std::map<std::string, std::size_t> counts;
  for (const LabelledText& text : texts)
    for (const std::string& label : text.labels) ++counts[label];
  return counts;
}

/// Refuses words of which nearly each has a label of its own, such as the last words of a text's lines.
void check_labels_of_words(const std::string& path, std::size_t words, std::size_t labels) {
  constexpr std::size_t fewest = 10;
  if (words >= fewest && 2 * labels > words)
    throw std::runtime_error(path +
                             ": its lines are words with labels, and must have words that share "
                             "labels, got " +
                             std::to_string(words) + " words with " + std::to_string(labels) + " labels; " +
                             how_files_look);
}

/// How a file was read: `path: read as ...: 30 texts, 2 labels`.
std::string form_of(const std::string& path, const std::string& format, const LabelledTexts& all) {
  const bool has_pairs = !all.texts.empty() && all.texts.front().second;
  const std::map<std::string, std::string> names{
      {"lines", all.named   ? "lines of columns with tabs between"
                : has_pairs ? "lines of two texts and a label with tabs between"
                            : "lines of a text, a tab and a label"},
      {"words", "lines of columns, a word first and its label last, with a blank line after each sentence"},
      {"csv", "comma-separated values"},
      {"tsv", "tab-separated values"},
      {"jsonl", "lines of JSON"}};
  std::size_t words = 0;
  for (const LabelledText& text : all.texts) words += text.labels.size();
  const std::string count = std::to_string(all.texts.size());
  return path + ": read as " + names.at(format) + ": " +
         (all.of_words ? count + " sentences, " + std::to_string(words) + " words"
          : has_pairs  ? count + " pairs"
                       : count + " texts") +
         ", " + std::to_string(counts_of(all.texts).size()) + " labels";
}

LabelledTexts read_labelled_texts(const std::string& path, const LabelledForm& form) {
  const auto [format, is_guessed] = format_of(path, form);
  if (format == "words" && (form.text || form.second || form.label || form.pairs))
    throw std::runtime_error(path + ": has words with labels, which have no names of columns and no pairs");
  if (format != "lines" && form.pairs)
    throw std::runtime_error(path + ": has named columns: --second must name that of second texts");
  LabelledTexts all = format == "csv"     ? read_csv(path, form, ',')
                      : format == "tsv"   ? read_csv(path, form, '\t')
                      : format == "jsonl" ? read_jsonl(path, form)
                      : format == "words" ? read_words(path, is_guessed)
                                          : read_lines(path, form);
  if (all.texts.empty()) throw std::runtime_error(path + ": must hold texts with labels, got none");
  all.form = form_of(path, format, all);
  if (all.of_words) {
    const auto counts = counts_of(all.texts);
    std::size_t words = 0;
    for (const auto& [label, count] : counts) words += count;
    check_labels_of_words(path, words, counts.size());
  }
  return all;
}

/// Whether the first text's label is the only one that no other text has: a name of a column, most likely.
bool seems_named(const std::vector<LabelledText>& texts) {
  const auto counts = counts_of(texts);
  return counts.at(texts.front().labels.front()) == 1 &&
         std::ranges::count_if(counts, [](const auto& entry) { return entry.second == 1; }) == 1;
}

/// A label that no text to train on has cannot be predicted.
void check_labels(const std::vector<LabelledText>& test, const std::vector<std::string>& labels,
                  const std::string& path, const std::string& data) {
  for (const LabelledText& text : test) {
    for (std::size_t i = 0; i < text.labels.size(); ++i) {
      if (!std::ranges::binary_search(labels, text.labels[i]))
        fail(path, text.lines[i],
             "a label must be one of those in " + data + ", " + listed(labels) + ", got " +
                 printable(text.labels[i]));
    }
  }
}

/// A tenth of the texts becomes held out, but for those whose labels no other text has.
void hold_out(std::vector<LabelledText> texts, LabelledSplit& split) {
  xgrad::Generator generator(0);  // the same texts in every run
  const std::size_t count = texts.size() / 10;
  const auto parts = xgrad::random_split(texts.size(), {count, texts.size() - count}, generator);
  std::set<std::string> known;
  for (const std::size_t i : parts[1]) {
    known.insert(texts[i].labels.begin(), texts[i].labels.end());
    split.train.push_back(std::move(texts[i]));
  }
  for (const std::size_t i : parts[0]) {
    const auto is_known = [&](const std::string& label) { return known.contains(label); };
    const bool can_be_predicted = std::ranges::all_of(texts[i].labels, is_known);
    known.insert(texts[i].labels.begin(), texts[i].labels.end());
    (can_be_predicted ? split.test : split.train).push_back(std::move(texts[i]));
  }
}

}  // namespace

std::vector<std::string> LabelledSplit::labels() const {
  std::vector<std::string> labels;
  for (const auto& [label, count] : counts_of(train)) labels.push_back(label);
  return labels;
}

LabelledSplit read_labelled(const std::string& data, const std::string& test, const LabelledForm& form) {
  LabelledTexts all = read_labelled_texts(data, form);
  LabelledSplit split{
      .train = {}, .test = {}, .of_words = all.of_words, .notes = std::move(all.notes), .forms = {all.form}};
  const bool has_names = !all.named && seems_named(all.texts);
  const std::size_t first_line = all.texts.front().lines.front();
  const std::string first_label = all.texts.front().labels.front();
  if (!test.empty()) {
    LabelledTexts held_out = read_labelled_texts(test, form);
    if (held_out.of_words != all.of_words)
      throw std::runtime_error(test + ": must label " + (all.of_words ? "words" : "texts") + ", as " + data +
                               " does");
    split.train = std::move(all.texts);
    split.test = std::move(held_out.texts);
    split.notes.insert(split.notes.end(), held_out.notes.begin(), held_out.notes.end());
    split.forms.push_back(held_out.form);
  } else {
    if (all.texts.size() < 10)
      throw std::runtime_error(data + ": must hold 10 texts or more, one of them held out, got " +
                               std::to_string(all.texts.size()));
    hold_out(std::move(all.texts), split);
    if (split.test.empty())
      throw std::runtime_error(data + ": must have labels that several texts have, got none to hold out");
  }
  const std::vector<std::string> labels = split.labels();
  if (labels.size() < 2 || labels.size() > max_classes)
    throw std::runtime_error(data + ": must have 2 to " + std::to_string(max_classes) + " labels, got " +
                             std::to_string(labels.size()));
  check_labels(split.test, labels, test, data);
  if (has_names)
    fail(data, first_line,
         "the first label must be that of another line, too, as all others are; if the line names "
         "the columns, --label must be the name of the labels; got " +
             printable(first_label));
  return split;
}

double most_frequent_label_accuracy(const LabelledSplit& split) {
  const auto counts = counts_of(split.train);
  const auto best = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  std::size_t right = 0, all = 0;
  for (const LabelledText& text : split.test) {
    right += static_cast<std::size_t>(std::ranges::count(text.labels, best->first));
    all += text.labels.size();
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

}  // namespace apps
