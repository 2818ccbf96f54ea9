#include "weir/tools/lib/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace weir::tools {

namespace {

constexpr int kLeastColumns = 20, kMostColumns = 10'000;

absl::string_view Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsUtf8(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return absl::StrContains(lower, "utf-8") || absl::StrContains(lower, "utf8");
}

// A locale that this machine lacks, such as that of a user who is logged in from elsewhere, still
// says in its name what the terminal shows.
bool LocaleIsUtf8() {
  if (const locale_t locale = newlocale(LC_CTYPE_MASK, "", nullptr); locale != nullptr) {
    const bool utf8 = IsUtf8(nl_langinfo_l(CODESET, locale));
    freelocale(locale);
    return utf8;
  }
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const absl::string_view value = Variable(name); !value.empty()) return IsUtf8(value);
  }
  return false;
}

int Columns() {
  int columns = 0;
  winsize size{};
  if (!absl::SimpleAtoi(Variable("COLUMNS"), &columns) || columns <= 0)
    columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  return columns > 0 ? std::clamp(columns, kLeastColumns, kMostColumns) : Console::kDefaultWidth;
}

}  // namespace

void ReadTerminal(Console& console) {
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  console.width = Columns();
  console.fits = is_terminal;
  console.unicode = LocaleIsUtf8();
  console.live = isatty(STDERR_FILENO) != 0 && Variable("TERM") != "dumb";
  console.color = is_terminal && Variable("NO_COLOR").empty() && Variable("TERM") != "dumb";
}

void SetColor(absl::string_view when, Console& console) {
  if (when != "auto") console.color = when == "always";
}

}  // namespace weir::tools
