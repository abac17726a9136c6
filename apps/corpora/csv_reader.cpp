#include "csv_reader.hpp"

#include <algorithm>

namespace apps {

bool CsvReader::next(std::vector<std::string>& fields) {
  std::string text;
  for (;; ++blank_lines_) {
    if (!lines_.next(text)) return false;
    if (!text.empty()) break;
  }
  line_ = lines_.number();
  fields.clear();
  std::size_t place = 0;
  read_field(text, place, fields);
  while (place < text.size()) read_field(text, ++place, fields);
  return true;
}

void CsvReader::read_field(std::string& text, std::size_t& place, std::vector<std::string>& fields) {
  const std::size_t begin = place;
  std::string& field = fields.emplace_back();
  if (begin == text.size() || text[begin] != '"') {
    place = std::min(text.find(separator_, begin), text.size());
    field = text.substr(begin, place - begin);
    if (field.find('"') != field.npos)
      lines_.fail("a field with quotes in it must begin and end with one, and have each of its own twice",
                  field);
    return;
  }
  for (++place;;) {
    const std::size_t quote = text.find('"', place);
    field.append(text, place, quote - place);
    if (quote == text.npos) {
      std::string more;
      if (!lines_.next(more))
        lines_.fail("the quote in line " + std::to_string(line_) + " must be closed", text.substr(begin));
      if (text.size() + more.size() > max_line_bytes)
        lines_.fail("a record must have at most " + std::to_string(max_line_bytes) + " bytes", text);
      place = text.size() + 1;
      field += '\n';
      text += '\n' + more;
      continue;
    }
    place = quote + 1;
    if (place == text.size() || text[place] == separator_) return;
    if (text[place] != '"')
      lines_.fail("a closing quote must be followed by a separator or the end of the line",
                  text.substr(begin));
    field += '"';
    ++place;
  }
}

}  // namespace apps
