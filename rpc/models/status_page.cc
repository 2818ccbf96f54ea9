#include "weir/rpc/models/status_page.h"

#include <unistd.h>

#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"

namespace weir::rpc {

namespace {

using serving::VersionState;

constexpr absl::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="5">
<title>Weir: models</title>
<style>
:root { color-scheme: light dark; --text: #1a1c1e; --back: #ffffff; --faint: #5b6168;
  --line: #d9dde1; --good: #17692f; --bad: #b3261e; --wait: #7a5200; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e6e8; --back: #16181a; --faint: #a2a9b0; --line: #383d42;
    --good: #6fd08c; --bad: #ff8a80; --wait: #f0b94b; }
}
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: var(--text);
  background: var(--back); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { color: var(--faint); margin: .2rem 0; }
div { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem 1rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; white-space: nowrap; }
th { color: var(--faint); font-weight: 600; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
.long { white-space: normal; overflow-wrap: anywhere; min-width: 8rem; }
.AVAILABLE { color: var(--good); } .failed { color: var(--bad); }
.START, .LOADING, .UNLOADING { color: var(--wait); }
</style>
</head>
<body>
<h1>Weir model server</h1>
)";

// Text for an element: nothing in it is markup, and bytes that are not printable are shown.
std::string Escape(absl::string_view text) {
  std::string printable;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      printable.push_back(c);
    } else {
      absl::StrAppendFormat(&printable, "\\x%02x", byte);
    }
  }
  return absl::StrReplaceAll(
      printable, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string Size(int64_t bytes) {
  constexpr double kKilobyte = 1e3, kMegabyte = 1e6;
  const auto size = static_cast<double>(bytes);
  return size < kMegabyte ? absl::StrFormat("%.1f kB", size / kKilobyte)
                          : absl::StrFormat("%.1f MB", size / kMegabyte);
}

std::string Milliseconds(std::chrono::nanoseconds time) {
  return absl::StrFormat("%.2f ms", std::chrono::duration<double, std::milli>(time).count());
}

int64_t ResidentBytes() {
  int64_t ignored = 0, pages = 0;
  FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  const bool ok = std::fscanf(file, "%ld %ld", &ignored, &pages) == 2;
  std::fclose(file);
  return ok ? pages * sysconf(_SC_PAGESIZE) : 0;
}

// A table. The name of a column begins with "#" if it has numbers, with "~" if its texts may be
// long.
class Table {
 public:
  Table(std::string* out, absl::string_view title, const std::vector<std::string>& columns)
      : out_(*out) {
    absl::StrAppend(&out_, "<h2>", title, "</h2>\n<div><table>\n<tr>");
    for (const std::string& column : columns) {
      const char* const kind = column[0] == '#' ? "n" : column[0] == '~' ? "long" : "";
      kinds_.push_back(kind);
      absl::StrAppend(&out_, "<th class=\"", kind, "\">", column.substr(*kind == 0 ? 0 : 1),
                      "</th>");
    }
    absl::StrAppend(&out_, "</tr>\n");
  }
  ~Table() { absl::StrAppend(&out_, "</table></div>\n"); }

  // The texts of a row, which are escaped. The text of column `colored` gets a CSS class.
  void Add(const std::vector<std::string>& texts, int colored = -1, const char* color = "") {
    absl::StrAppend(&out_, "<tr>");
    for (size_t i = 0; i < texts.size(); ++i) {
      absl::StrAppend(&out_, "<td class=\"", static_cast<int>(i) == colored ? color : kinds_[i],
                      "\">", Escape(texts[i]), "</td>");
    }
    absl::StrAppend(&out_, "</tr>\n");
  }

 private:
  std::string& out_;
  std::vector<const char*> kinds_;  // CSS classes of the columns
};

void AddModels(const serving::ModelManager& models, std::string* page) {
  Table table(page, "Models", {"~Model", "#Version", "State", "#Memory", "~Error"});
  for (const std::string& name : models.models()) {
    const auto versions = models.Status({.name = name});
    if (!versions.ok() || versions->empty()) {
      table.Add({name, "", "no version", "", std::string(versions.status().message())}, 2,
                "failed");
      continue;
    }
    for (const serving::VersionStatus& version : *versions) {
      std::string memory;
      if (version.state == VersionState::kAvailable) {
        const auto servable = models.Find({.name = name, .version = version.version});
        if (servable.ok()) memory = Size((*servable)->memory_bytes());
      }
      table.Add({name, absl::StrCat(version.version), NameOf(version.state), memory,
                 std::string(version.error.message())},
                2, version.error.ok() ? NameOf(version.state) : "failed");
    }
  }
}

void AddCalls(const CallStatistics& calls, std::string* page) {
  Table table(
      page, "Calls",
      {"~Model", "Method", "#Calls", "#Errors", "#Per second", "#Median", "#99th percentile"});
  for (const CallStatistics::Row& row : calls.Rows()) {
    table.Add({row.model.empty() ? "(no model)" : row.model, row.method, absl::StrCat(row.calls),
               absl::StrCat(row.errors), absl::StrFormat("%.2f", row.per_second),
               Milliseconds(row.median), Milliseconds(row.percentile_99)});
  }
}

void AddFailures(const CallStatistics& calls, std::string* page) {
  Table table(page, "Recent errors", {"Time (UTC)", "~Model", "Method", "Code", "~Message"});
  for (const CallStatistics::Failure& failure : calls.Failures()) {
    table.Add(
        {absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromChrono(failure.at), absl::UTCTimeZone()),
         failure.model.empty() ? "(no model)" : failure.model, failure.method,
         absl::StatusCodeToString(failure.status.code()), std::string(failure.status.message())},
        3, "failed");
  }
}

}  // namespace

const char* NameOf(VersionState state) {
  switch (state) {
    case VersionState::kStart:
      return "START";
    case VersionState::kLoading:
      return "LOADING";
    case VersionState::kAvailable:
      return "AVAILABLE";
    case VersionState::kUnloading:
      return "UNLOADING";
    case VersionState::kEnd:
      return "END";
    default:
      return "UNKNOWN";
  }
}

std::string StatusPage(const serving::ModelManager& models, const CallStatistics& calls,
                       std::chrono::seconds uptime) {
  std::string page(kHead);
  absl::StrAppend(&page, "<p>Up for ", absl::FormatDuration(absl::FromChrono(uptime)),
                  ". The process has ", Size(ResidentBytes()), " of memory.</p>\n");
  AddModels(models, &page);
  AddCalls(calls, &page);
  absl::StrAppend(&page,
                  "<p>Rates are those of the last minute, times those of the last 1,000 calls of "
                  "each row.</p>\n");
  AddFailures(calls, &page);
  absl::StrAppend(&page, "</body>\n</html>\n");
  return page;
}

}  // namespace weir::rpc
