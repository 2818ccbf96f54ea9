#include "weir/capi/api_def_text.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace weir::capi {

namespace {

// Removes the first line, without its end, from the text, and returns it.
absl::string_view TakeLine(absl::string_view* text) {
  const size_t end = text->find('\n');
  const absl::string_view line = text->substr(0, end);
  text->remove_prefix(end == absl::string_view::npos ? text->size() : end + 1);
  return line;
}

// Returns the word behind "<<" if the line begins a string of several lines, otherwise "".
absl::string_view EndWord(absl::string_view line) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos) return {};
  absl::string_view value = line.substr(colon + 1);
  while (absl::ConsumePrefix(&value, " ")) continue;
  return absl::ConsumePrefix(&value, "<<") ? value : absl::string_view();
}

}  // namespace

std::string QuoteLines(absl::string_view text) {
  std::string quoted;
  while (!text.empty()) {
    const absl::string_view line = TakeLine(&text);
    const absl::string_view end = EndWord(line);
    if (end.empty()) {
      absl::StrAppend(&quoted, line, "\n");
      continue;
    }
    std::vector<absl::string_view> lines;
    absl::string_view rest;  // what follows the word on its line, such as a comment
    while (!text.empty()) {
      rest = TakeLine(&text);
      if (absl::ConsumePrefix(&rest, end)) break;
      lines.push_back(rest);
      rest = {};
    }
    absl::StrAppend(&quoted, line.substr(0, line.find(':') + 1), " \"",
                    absl::CEscape(absl::StrJoin(lines, "\n")), "\"", rest, "\n");
  }
  return quoted;
}

}  // namespace weir::capi
