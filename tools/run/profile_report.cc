#include "weir/tools/run/profile_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/lib/text_width.h"

namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

std::string Time(double ns) { return HumanDuration(ns / 1e9); }

std::string Bytes(double bytes) {
  return bytes > 0 ? HumanBytes(static_cast<int64_t>(bytes)) : "-";
}

// "1.23 G".
std::string Flops(double flops) {
  if (flops <= 0) return "-";
  static constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P"};
  int unit = 0;
  for (; flops >= 999.5 && unit < 5; ++unit) flops /= 1000;
  return absl::StrFormat("%.3g%s", flops, kUnits[unit]);
}

std::string Share(double part, double whole) {
  return whole > 0 ? absl::StrFormat("%.1f%%", 100 * part / whole) : "-";
}

// The time as a multiple of the limit; "-" where the limit is below the overhead of a node.
std::string Ratio(double time, double limit, double runs) {
  if (limit < kOverheadNs * std::max(1., runs)) return "-";
  const double ratio = time / limit;
  return absl::StrFormat("%.*f", ratio < 9.95 ? 1 : 0, ratio);
}

std::string Count(double n) { return WithCommas(static_cast<int64_t>(n)); }

void PrintHeading(const std::string& text, Console& console) {
  console.out << "\n" << console.Paint(Style::kBold, text) << "\n";
}

void PrintSummary(const StepProfile& p, Console& console) {
  TextTable table({"", ""});
  table.Row({"step", absl::StrCat(Time(p.untraced_ns), ", traced ", Time(p.traced_ns),
                                  " (medians of ", p.num_steps, "; fastest traced ",
                                  Time(static_cast<double>(p.fastest_ns)), ")")});
  table.Row({"nodes", absl::StrCat(p.nodes.size(), ", ", WithCommas(p.num_runs),
                                   " node runs per step, ", Time(p.node_ns()), " in total")});
  table.Row(
      {"threads", absl::StrFormat("%d; %.1f busy on average, including spinning; no node assigned "
                                  "in %.1f%% of the step",
                                  p.limits.num_threads, p.busy_threads, 100 * p.idle_share())});
  table.Row({"machine", absl::StrFormat("%.3g GB/s memory bandwidth, %.4g GFLOP/s (float), "
                                        "measured with %d threads",
                                        p.limits.bytes_per_second / 1e9,
                                        p.limits.flops_per_second / 1e9, p.limits.num_threads)});
  table.Print(console);
  if (p.traced_ns > 2 * p.untraced_ns) {
    const char* const note =
        "Tracing took longer than the step itself: the shares of the step and the times between "
        "nodes are mostly tracing overhead.";
    for (const std::string& line : WrapText(note, console.width)) console.out << line << "\n";
  }
}

// Returns how many entries of a list to print.
size_t Shown(size_t size, int top) { return std::min(size, static_cast<size_t>(std::max(0, top))); }

void PrintRest(size_t size, size_t shown, Console& console) {
  if (shown < size) console.out << "and " << size - shown << " more\n";
}

void PrintNodes(const StepProfile& p, int top, Console& console) {
  const size_t shown = Shown(p.nodes.size(), top);
  if (shown == 0) return;
  PrintHeading(absl::StrCat("The ", shown, " most expensive of ", p.nodes.size(), " nodes"),
               console);
  TextTable table({">time", ">share", "?>runs", "?>bytes", "?>FLOP", "?>limit", ">x limit",
                   "bound by", "node", "op", "?output"});
  bool has_estimates = false;
  for (size_t i = 0; i < shown; ++i) {
    const NodeProfile& n = p.nodes[i];
    has_estimates |= n.estimated;
    table.Row(
        {Time(n.time_ns), Share(n.time_ns, p.traced_ns), Count(n.runs),
         absl::StrCat(n.estimated ? "~" : "", Bytes(n.bytes)), n.knows_flops ? Flops(n.flops) : "?",
         n.limit_ns > 0 ? Time(n.limit_ns) : "-", Ratio(n.time_ns, n.limit_ns, n.runs),
         BoundName(n.bound), n.name,
         n.fused_ops.empty() ? n.op : absl::StrCat(n.op, "(", absl::StrJoin(n.fused_ops, " "), ")"),
         n.output});
  }
  table.Print(console);
  if (has_estimates) console.out << "~ estimated: the variables are not inputs of the node\n";
}

void PrintOps(const StepProfile& p, int top, Console& console) {
  const size_t shown = Shown(p.ops.size(), top);
  if (shown == 0) return;
  PrintHeading("By op", console);
  TextTable table(
      {">time", ">share", "?>nodes", "?>runs", "?>bytes", ">FLOP", ">limit", ">x limit", "op"});
  for (size_t i = 0; i < shown; ++i) {
    const OpProfile& op = p.ops[i];
    table.Row({Time(op.time_ns), Share(op.time_ns, p.traced_ns), Count(op.num_nodes),
               Count(op.runs), Bytes(op.bytes), Flops(op.flops),
               op.limit_ns > 0 ? Time(op.limit_ns) : "-", Ratio(op.time_ns, op.limit_ns, op.runs),
               op.op});
  }
  table.Print(console);
  PrintRest(p.ops.size(), shown, console);
}

void PrintCopies(const StepProfile& p, int top, Console& console) {
  if (p.copies.empty()) {
    PrintHeading("No copies", console);
    return;
  }
  PrintHeading("Copies, in the fastest step", console);
  TextTable table({">time", "?>runs", ">bytes", "why", "node", "op", "?output"});
  const size_t shown = Shown(p.copies.size(), top);
  for (size_t i = 0; i < shown; ++i) {
    const CopyProfile& c = p.copies[i];
    table.Row({Time(static_cast<double>(c.time_ns)), WithCommas(c.runs), Bytes(c.bytes), c.reason,
               c.name, c.op, c.output});
  }
  table.Print(console);
  PrintRest(p.copies.size(), shown, console);
}

void PrintThreads(const StepProfile& p, Console& console) {
  if (p.threads.empty()) return;
  const double step = static_cast<double>(p.fastest_ns);
  PrintHeading("Threads, in the fastest step", console);
  TextTable table({">thread", ">nodes", ">in nodes", ">waited", ">between", ">after the last"});
  for (const ThreadTime& t : p.threads) {
    table.Row({absl::StrCat(t.thread), Count(t.num_nodes),
               Share(static_cast<double>(t.busy_ns), step),
               Share(static_cast<double>(t.waited_ns), step),
               Share(static_cast<double>(t.between_ns), step),
               Share(static_cast<double>(t.over_ns), step)});
  }
  table.Print(console);
  static constexpr const char* kBlocks[] = {" ", "░", "▒", "▓", "█"};
  static constexpr const char* kLetters[] = {" ", ".", ":", "+", "#"};
  const auto& shades = console.unicode ? kBlocks : kLetters;
  for (size_t i = 0; i < p.timelines.size(); ++i) {
    console.out << absl::StrFormat("%6d ", i) << "|";
    for (const double busy : p.timelines[i])
      console.out << shades[static_cast<int>(busy * 4 + 0.5)];
    console.out << "|\n";
  }
}

void PrintWaits(const StepProfile& p, int top, Console& console) {
  const size_t shown = Shown(p.waits.size(), top);
  if (shown == 0) return;
  PrintHeading("Thread waits, in the fastest step", console);
  TextTable table({">waited", ">handed over", ">times", ">thread", "for", "then ran"});
  for (size_t i = 0; i < shown; ++i) {
    const WaitProfile& w = p.waits[i];
    table.Row({Time(static_cast<double>(w.waited_ns)), Time(static_cast<double>(w.between_ns)),
               WithCommas(w.times), absl::StrCat(w.thread), w.cause, w.next});
  }
  table.Print(console);
  PrintRest(p.waits.size(), shown, console);
}

// ---- JSON

double Micros(double ns) { return ns / 1000; }

Json NodeJson(const NodeProfile& n) {
  return {{"name", n.name},
          {"op", n.op},
          {"device", n.device},
          {"output", n.output},
          {"fused_ops", n.fused_ops},
          {"runs", n.runs},
          {"time_us", Micros(n.time_ns)},
          {"bytes", n.bytes},
          {"flops", n.knows_flops ? Json(n.flops) : Json()},
          {"estimated", n.estimated},
          {"limit_us", Micros(n.limit_ns)},
          {"bound", BoundName(n.bound)}};
}

template <class Values, class ToJson>
Json Array(const Values& values, ToJson to_json) {
  Json array = Json::array();
  for (const auto& value : values) array.push_back(to_json(value));
  return array;
}

Json ThreadJson(const ThreadTime& t) {
  return {{"thread", t.thread},
          {"nodes", t.num_nodes},
          {"in_nodes_us", Micros(static_cast<double>(t.busy_ns))},
          {"waited_us", Micros(static_cast<double>(t.waited_ns))},
          {"between_us", Micros(static_cast<double>(t.between_ns))},
          {"after_the_last_us", Micros(static_cast<double>(t.over_ns))}};
}

}  // namespace

void PrintProfile(const StepProfile& profile, int top, Console& console) {
  PrintSummary(profile, console);
  PrintNodes(profile, top, console);
  PrintOps(profile, top, console);
  PrintCopies(profile, top, console);
  PrintThreads(profile, console);
  PrintWaits(profile, top, console);
}

std::string ProfileJson(const StepProfile& p) {
  const Json json = {{"steps", p.num_steps},
                     {"step_us", Micros(p.untraced_ns)},
                     {"traced_step_us", Micros(p.traced_ns)},
                     {"fastest_traced_step_us", Micros(static_cast<double>(p.fastest_ns))},
                     {"busy_threads", p.busy_threads},
                     {"node_us", Micros(p.node_ns())},
                     {"node_runs", p.num_runs},
                     {"idle_share", p.idle_share()},
                     {"limits",
                      {{"threads", p.limits.num_threads},
                       {"bytes_per_second", p.limits.bytes_per_second},
                       {"flops_per_second", p.limits.flops_per_second}}},
                     {"nodes", Array(p.nodes, NodeJson)},
                     {"ops", Array(p.ops,
                                   [](const OpProfile& o) -> Json {
                                     return {{"op", o.op},
                                             {"nodes", o.num_nodes},
                                             {"runs", o.runs},
                                             {"time_us", Micros(o.time_ns)},
                                             {"bytes", o.bytes},
                                             {"flops", o.flops},
                                             {"limit_us", Micros(o.limit_ns)}};
                                   })},
                     {"copies", Array(p.copies,
                                      [](const CopyProfile& c) -> Json {
                                        return {{"name", c.name},
                                                {"op", c.op},
                                                {"output", c.output},
                                                {"reason", c.reason},
                                                {"runs", c.runs},
                                                {"time_us", Micros(static_cast<double>(c.time_ns))},
                                                {"bytes", c.bytes}};
                                      })},
                     {"threads", Array(p.threads, ThreadJson)},
                     {"timelines", p.timelines},
                     {"waits", Array(p.waits, [](const WaitProfile& w) -> Json {
                        return {{"thread", w.thread},
                                {"for", w.cause},
                                {"then_ran", w.next},
                                {"times", w.times},
                                {"waited_us", Micros(static_cast<double>(w.waited_ns))},
                                {"handed_over_us", Micros(static_cast<double>(w.between_ns))}};
                      })}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weir::tools
