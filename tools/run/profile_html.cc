#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "weir/tools/lib/html_page.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/run/profile_report.h"

// weir profile --html: a profile in pictures.
namespace weir::tools {

namespace {

constexpr char kRight[] = "<td class=\"right\">";

std::string Time(double ns) { return HumanDuration(ns / 1e9); }

std::string Percent(double part, double whole) {
  return whole > 0 ? absl::StrFormat("%.1f%%", 100 * part / whole) : "-";
}

std::string Bytes(double bytes) {
  return bytes > 0 ? HumanBytes(static_cast<int64_t>(bytes)) : "-";
}

// A bar as long as `value` of `most`, with a mark at `limit`.
std::string Bar(double value, double limit, double most, int color) {
  const auto place = [most](double x) {
    return most > 0 ? std::clamp(100 * x / most, 0., 100.) : 0;
  };
  std::string svg = absl::StrFormat(
      "<td><svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\">"
      "<rect class=\"fill%d\" width=\"%.2f\" height=\"10\"/>",
      color, place(value));
  if (limit > 0)
    absl::StrAppendFormat(&svg, "<line class=\"limit\" x1=\"%.2f\" x2=\"%.2f\" y2=\"10\"/>",
                          place(limit), place(limit));
  return svg + "</svg></td>";
}

// The color of what bounds a node.
int ColorOf(Bound bound) { return static_cast<int>(bound) % kNumLineColors; }

std::string Section(absl::string_view title, absl::string_view note, absl::string_view body) {
  std::string html =
      absl::StrCat("<section class=\"card\" style=\"margin-top:16px\">\n<h2>", title, "</h2>\n");
  if (!note.empty()) absl::StrAppend(&html, "<p class=\"dim\">", note, "</p>\n");
  return absl::StrCat(html, body, "</section>\n");
}

std::string Summary(const StepProfile& p) {
  const auto row = [](const char* name, const std::string& text) {
    return absl::StrCat("<tr><th>", name, "</th><td>", text, "</td></tr>\n");
  };
  return Section(
      "Step", "",
      absl::StrCat(
          "<table>\n",
          row("step", absl::StrCat(Time(p.untraced_ns), ", traced ", Time(p.traced_ns),
                                   " (medians of ", p.num_steps, ")")),
          row("nodes", absl::StrCat(p.nodes.size(), ", ", WithCommas(p.num_runs),
                                    " node runs per step, ", Time(p.node_ns()), " in total")),
          row("threads",
              absl::StrFormat("%d; %.1f busy on average; no node assigned in %.1f%% of "
                              "the step",
                              p.limits.num_threads, p.busy_threads, 100 * p.idle_share())),
          row("machine",
              absl::StrFormat("%.3g GB/s memory bandwidth, %.4g GFLOP/s (float)",
                              p.limits.bytes_per_second / 1e9, p.limits.flops_per_second / 1e9)),
          "</table>\n"));
}

std::string Nodes(const StepProfile& p, size_t top) {
  if (p.nodes.empty() || top == 0) return "";
  std::string note = "The bar is the time, its mark the machine's limit for the node. Bound by: ";
  for (const Bound bound :
       {Bound::kMemory, Bound::kArithmetic, Bound::kOverhead, Bound::kUnknown}) {
    absl::StrAppend(&note, "<span class=\"swatch fill", ColorOf(bound), "\"></span>",
                    BoundName(bound), " &nbsp;");
  }
  std::string html =
      HtmlTableHeader({"", ">time", ">share", ">limit", ">bytes", "node", "op", "output"});
  for (size_t i = 0; i < std::min(top, p.nodes.size()); ++i) {
    const NodeProfile& n = p.nodes[i];
    const std::string fused =
        n.fused_ops.empty() ? "" : absl::StrCat("(", absl::StrJoin(n.fused_ops, " "), ")");
    absl::StrAppend(&html, "<tr>", Bar(n.time_ns, n.limit_ns, p.nodes[0].time_ns, ColorOf(n.bound)),
                    kRight, Time(n.time_ns), "</td>", kRight, Percent(n.time_ns, p.traced_ns),
                    "</td>", kRight, n.limit_ns > 0 ? Time(n.limit_ns) : "-", "</td>", kRight,
                    Bytes(n.bytes), "</td><td class=\"name\">", EscapeHtml(n.name),
                    "</td><td class=\"name\">", EscapeHtml(n.op + fused), "</td><td>",
                    EscapeHtml(n.output), "</td></tr>\n");
  }
  return Section(absl::StrCat("The ", std::min(top, p.nodes.size()), " most expensive of ",
                              p.nodes.size(), " nodes"),
                 note, html + "</table>\n");
}

std::string Ops(const StepProfile& p, size_t top) {
  if (p.ops.empty() || top == 0) return "";
  std::string html = HtmlTableHeader({"", ">time", ">share", ">limit", ">nodes", "op"});
  for (size_t i = 0; i < std::min(top, p.ops.size()); ++i) {
    const OpProfile& op = p.ops[i];
    absl::StrAppend(&html, "<tr>", Bar(op.time_ns, op.limit_ns, p.ops[0].time_ns, 0), kRight,
                    Time(op.time_ns), "</td>", kRight, Percent(op.time_ns, p.traced_ns), "</td>",
                    kRight, op.limit_ns > 0 ? Time(op.limit_ns) : "-", "</td>", kRight,
                    op.num_nodes, "</td><td class=\"name\">", EscapeHtml(op.op), "</td></tr>\n");
  }
  return Section("By op", "", html + "</table>\n");
}

// A row of cells for each thread, from the start of the step to its end.
std::string Threads(const StepProfile& p) {
  if (p.timelines.empty()) return "";
  constexpr double kRow = 18, kLeft = 70, kWidth = 1000;
  const double height = kRow * static_cast<double>(p.timelines.size()) + 20;
  std::string svg =
      absl::StrFormat("<svg viewBox=\"0 0 %g %g\" role=\"img\">\n", kLeft + kWidth, height);
  for (size_t i = 0; i < p.timelines.size(); ++i) {
    const std::vector<double>& cells = p.timelines[i];
    const double y = kRow * static_cast<double>(i), w = kWidth / static_cast<double>(cells.size());
    absl::StrAppendFormat(&svg, "<text x=\"0\" y=\"%g\">thread %d</text>\n", y + 12, i);
    for (size_t at = 0; at < cells.size(); ++at) {
      absl::StrAppendFormat(&svg,
                            "<rect class=\"fill0\" fill-opacity=\"%.2f\" x=\"%.1f\" y=\"%g\" "
                            "width=\"%.1f\" height=\"%g\"/>\n",
                            cells[at], kLeft + w * static_cast<double>(at), y, w, kRow - 3);
    }
  }
  absl::StrAppendFormat(&svg,
                        "<line class=\"axis\" x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\"/>"
                        "<text x=\"%g\" y=\"%g\">0</text>"
                        "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%s</text>\n</svg>\n",
                        kLeft, kLeft + kWidth, height - 18, height - 18, kLeft, height - 4,
                        kLeft + kWidth, height - 4, Time(static_cast<double>(p.fastest_ns)));
  return Section("Threads, in the fastest step",
                 "The stronger the color, the more of the time was spent in nodes.", svg);
}

std::string Copies(const StepProfile& p, size_t top) {
  if (p.copies.empty() || top == 0) return "";
  std::string html = HtmlTableHeader({">time", ">bytes", "why", "node", "op"});
  for (size_t i = 0; i < std::min(top, p.copies.size()); ++i) {
    const CopyProfile& c = p.copies[i];
    absl::StrAppend(&html, "<tr>", kRight, Time(static_cast<double>(c.time_ns)), "</td>", kRight,
                    Bytes(c.bytes), "</td><td>", EscapeHtml(c.reason), "</td><td class=\"name\">",
                    EscapeHtml(c.name), "</td><td>", EscapeHtml(c.op), "</td></tr>\n");
  }
  return Section("Copies, in the fastest step", "", html + "</table>\n");
}

std::string Waits(const StepProfile& p, size_t top) {
  if (p.waits.empty() || top == 0) return "";
  std::string html = HtmlTableHeader({">waited", ">times", ">thread", "for", "then ran"});
  for (size_t i = 0; i < std::min(top, p.waits.size()); ++i) {
    const WaitProfile& w = p.waits[i];
    absl::StrAppend(&html, "<tr>", kRight, Time(static_cast<double>(w.waited_ns)), "</td>", kRight,
                    w.times, "</td>", kRight, w.thread, "</td><td class=\"name\">",
                    EscapeHtml(w.cause), "</td><td class=\"name\">", EscapeHtml(w.next),
                    "</td></tr>\n");
  }
  return Section("Thread waits, in the fastest step", "", html + "</table>\n");
}

}  // namespace

std::string ProfilePage(const StepProfile& p, int top, const std::string& title) {
  const auto most = static_cast<size_t>(std::max(top, 0));
  return HtmlPage(title, absl::StrCat(Summary(p), Nodes(p, most), Ops(p, most), Threads(p),
                                      Copies(p, most), Waits(p, most)));
}

}  // namespace weir::tools
