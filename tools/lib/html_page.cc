#include "weir/tools/lib/html_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "weir/tools/lib/text_width.h"

namespace weir::tools {

namespace {

// Classes: "grid" places "card"s side by side; "right" aligns numbers; "dim" is secondary text;
// "line0" ... "line5" are the colors of lines, "fill0" ... those of areas; "axis" and "tick" belong
// to charts; "dot" appears under the pointer; "bar" is a picture in a cell; "limit" a mark in it.
constexpr char kStyle[] = R"css(
:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f6f7f9; --text: #1c2024; --dim: #60646c; --rule: #d0d4da;
  --color0: #0b6bcb; --color1: #c2410c; --color2: #8e3fa8; --color3: #15803d; --color4: #be123c;
  --color5: #7a6a00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #111418; --card: #1a1e24; --text: #e8eaed; --dim: #a0a6b0; --rule: #363c46;
    --color0: #58a6ff; --color1: #ff9e57; --color2: #d490ec; --color3: #5dc983; --color4: #ff7b93;
    --color5: #d8c34a;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1280px; padding: 24px; background: var(--page); color: var(--text);
  font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 28px 0 8px; overflow-wrap: anywhere; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 520px), 1fr));
  gap: 16px; }
.card { background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: 14px;
  min-width: 0; overflow-x: auto; }
.card h2 { margin: 0 0 6px; }
.dim { color: var(--dim); }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--dim); }
th, td { padding: 3px 12px 3px 0; border-bottom: 1px solid var(--rule); vertical-align: middle; }
td.name { overflow-wrap: anywhere; min-width: 140px; }
.right { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--dim); font: 11px system-ui, sans-serif; }
svg.bar { width: 160px; height: 12px; }
.swatch { display: inline-block; width: 12px; height: 12px; border-radius: 3px;
  vertical-align: -1px; margin-right: 6px; }
.axis { stroke: var(--dim); } .tick { stroke: var(--rule); }
.limit { stroke: var(--text); stroke-width: 1.2; }
svg path { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.dot { fill: transparent; } .dot:hover { fill: var(--text); }
)css";

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(
      Printable(text, /*unicode=*/true),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string HtmlTableHeader(std::initializer_list<absl::string_view> titles) {
  std::string html = "<table>\n<tr>";
  for (absl::string_view title : titles) {
    const bool right = absl::ConsumePrefix(&title, ">");
    absl::StrAppend(&html, right ? "<th class=\"right\">" : "<th>", title, "</th>");
  }
  return html + "</tr>\n";
}

std::string HtmlPage(absl::string_view title, absl::string_view body) {
  std::string colors;
  for (int i = 0; i < kNumLineColors; ++i) {
    absl::StrAppend(&colors, ".line", i, " { stroke: var(--color", i, "); } .fill", i,
                    " { fill: var(--color", i, "); background: var(--color", i, "); }\n");
  }
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      EscapeHtml(title), "</title>\n<style>", kStyle, colors, "</style>\n</head>\n<body>\n<h1>",
      EscapeHtml(title), "</h1>\n", body, "</body>\n</html>\n");
}

}  // namespace weir::tools
