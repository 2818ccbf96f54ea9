#ifndef WEIR_TOOLS_LIB_TEXT_WIDTH_H_
#define WEIR_TOOLS_LIB_TEXT_WIDTH_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// Text in columns of a terminal. Texts are UTF-8.
namespace weir::tools {

// Returns the text in characters that a terminal shows: control characters, which could change the
// terminal's state, and invalid bytes become "\x1b"; without `unicode`, other characters that are
// not ASCII become "\u00e9".
std::string Printable(absl::string_view text, bool unicode);

// The number of columns of printable text: East Asian wide characters take two, combining marks
// none (Unicode's East_Asian_Width and General_Category).
size_t TextWidth(absl::string_view text);

// The longest beginning of printable text that takes at most so many columns.
absl::string_view Beginning(absl::string_view text, size_t width);

// Shortens printable text to a number of columns by an ellipsis in its middle: names often begin or
// end alike.
std::string Shorten(absl::string_view text, size_t width, bool unicode);

// Breaks printable text into lines of at most `width` columns, at spaces and line breaks. A word
// that is wider has a line of its own. Returns at least one line.
std::vector<std::string> WrapText(absl::string_view text, size_t width);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_TEXT_WIDTH_H_
