#include "weir/tools/lib/text_width.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace weir::tools {

namespace {

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isascii(c); });
}

// Returns the character at `at` and advances; negative for an invalid byte.
UChar32 NextCharacter(absl::string_view text, int32_t* at) {
  UChar32 character;
  U8_NEXT(text.data(), *at, static_cast<int32_t>(text.size()), character);
  return character;
}

size_t Columns(UChar32 character) {
  switch (u_charType(character)) {
    case U_NON_SPACING_MARK:
    case U_ENCLOSING_MARK:
    case U_FORMAT_CHAR:
      return character == 0xad ? 1 : 0;  // a soft hyphen is shown
    default:
      break;
  }
  const int width = u_getIntPropertyValue(character, UCHAR_EAST_ASIAN_WIDTH);
  return width == U_EA_WIDE || width == U_EA_FULLWIDTH ? 2 : 1;
}

// The longest end of the text that takes at most `width` columns.
absl::string_view End(absl::string_view text, size_t width) {
  size_t columns = TextWidth(text);
  int32_t at = 0;
  while (columns > width) columns -= Columns(NextCharacter(text, &at));
  return text.substr(at);
}

void AppendEscaped(UChar32 character, std::string* out) {
  absl::StrAppendFormat(out, character > 0xffff ? "\\U%08x" : "\\u%04x", character);
}

}  // namespace

std::string Printable(absl::string_view text, bool unicode) {
  std::string out;
  for (int32_t at = 0; at < static_cast<int32_t>(text.size());) {
    const int32_t start = at;
    const UChar32 character = NextCharacter(text, &at);
    const absl::string_view bytes = text.substr(start, at - start);
    if (character < 0 || (character < 0x80 && absl::ascii_iscntrl(bytes[0]))) {
      for (const char byte : bytes)
        absl::StrAppendFormat(&out, "\\x%02x", static_cast<unsigned char>(byte));
    } else if (character < 0x80) {
      out += bytes[0];
    } else if (!unicode || u_charType(character) == U_CONTROL_CHAR) {
      AppendEscaped(character, &out);
    } else {
      out.append(bytes.data(), bytes.size());
    }
  }
  return out;
}

size_t TextWidth(absl::string_view text) {
  if (IsAscii(text)) return text.size();
  size_t width = 0;
  for (int32_t at = 0; at < static_cast<int32_t>(text.size());)
    width += Columns(NextCharacter(text, &at));
  return width;
}

absl::string_view Beginning(absl::string_view text, size_t width) {
  size_t columns = 0;
  for (int32_t at = 0; at < static_cast<int32_t>(text.size());) {
    const int32_t start = at;
    columns += Columns(NextCharacter(text, &at));
    if (columns > width) return text.substr(0, start);
  }
  return text;
}

std::string Shorten(absl::string_view text, size_t width, bool unicode) {
  if (TextWidth(text) <= width) return std::string(text);
  const absl::string_view ellipsis = unicode ? "…" : "...";
  const size_t mark = TextWidth(ellipsis);
  if (width <= mark) return std::string(Beginning(text, width));
  const size_t front = (width - mark) / 2;
  return absl::StrCat(Beginning(text, front), ellipsis, End(text, width - mark - front));
}

std::vector<std::string> WrapText(absl::string_view text, size_t width) {
  std::vector<std::string> lines;
  for (const absl::string_view paragraph : absl::StrSplit(text, '\n')) {
    lines.emplace_back();
    for (const absl::string_view word : absl::StrSplit(paragraph, ' ', absl::SkipEmpty())) {
      std::string& line = lines.back();
      if (line.empty()) {
        line = std::string(word);
      } else if (TextWidth(line) + 1 + TextWidth(word) <= width) {
        absl::StrAppend(&line, " ", word);
      } else {
        lines.emplace_back(word);
      }
    }
  }
  return lines;
}

}  // namespace weir::tools
