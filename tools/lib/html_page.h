#ifndef WEIR_TOOLS_LIB_HTML_PAGE_H_
#define WEIR_TOOLS_LIB_HTML_PAGE_H_

#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"

// Pages for a browser: one file each, without scripts and without anything from elsewhere, with
// colors for light and dark screens. The names of classes are explained in html_page.cc.
namespace weir::tools {

// Escapes text for elements and attributes. Control characters and invalid UTF-8 become "\x1b".
std::string EscapeHtml(absl::string_view text);

// Returns the beginning of a table: its titles, of which those after '>' are right-aligned.
std::string HtmlTableHeader(std::initializer_list<absl::string_view> titles);

// Returns a whole page. `body` is HTML.
std::string HtmlPage(absl::string_view title, absl::string_view body);

// The number of line colors: classes line0, line1, ...
inline constexpr int kNumLineColors = 6;

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_HTML_PAGE_H_
