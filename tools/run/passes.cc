#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "weir/session/passes/passes.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/run/pass_recorder.h"
#include "weir/tools/run/request.h"

// weir passes: lists the passes that compile a step, or runs them on a graph and reports what each
// of them did.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct PassesOptions {
  RequestOptions request;
  bool json = false, markdown = false;
};

std::string FileOf(const Pass& pass) { return absl::StrCat(pass.name, ".cc"); }
std::string DefaultOf(const Pass& pass) {
  if (pass.by_default != nullptr && !pass.by_default(SessionOptions())) return "off";
  return pass.required ? "always" : "on";
}

void PrintList(Console& console) {
  TextTable table({"pass", "phase", "?default", "?group", "what it does"});
  for (const Pass& pass : Passes()) {
    table.Row({std::string(pass.name), std::string(PhaseName(pass.phase)), DefaultOf(pass),
               std::string(pass.group), std::string(pass.doc)});
  }
  for (const PassSwitch& one : PassSwitches())
    table.Row(
        {std::string(one.name), absl::StrCat("in ", one.part_of), "on", "", std::string(one.doc)});
  table.Print(console);
}

// docs/PASSES.md.
void PrintMarkdown(Console& console) {
  console.out << "# Passes\n\n"
                 "The passes that compile a step, in order. This file is generated: `weir passes "
                 "--markdown`.\n"
                 "`SessionOptions::disable` and `--disable` of `weir run`, `profile`, `passes` and "
                 "`case` accept the\n"
                 "names of passes that are on, of groups, and of the switches below.\n\n"
                 "| pass | phase | default | group | file | what it does |\n"
                 "|---|---|---|---|---|---|\n";
  for (const Pass& pass : Passes()) {
    console.out << "| `" << pass.name << "` | " << PhaseName(pass.phase) << " | " << DefaultOf(pass)
                << " | " << (pass.group.empty() ? "" : "`") << pass.group
                << (pass.group.empty() ? "" : "`") << " | `session/passes/" << FileOf(pass)
                << "` | " << pass.doc << " |\n";
  }
  console.out
      << "\nPhases: `prepare` runs once for each set of feeds, fetches and targets; "
         "the others\nrun once for each set of feed shapes, and `fuse` and `lower` also for "
         "the subplans that\n`cache_step_invariants` and `tile_batch` cut out. The result "
         "of `lower` is what the\nexecutor runs.\n\n"
         "| switch | part of | what it does |\n|---|---|---|\n";
  for (const PassSwitch& one : PassSwitches())
    console.out << "| `" << one.name << "` | " << one.part_of << " | " << one.doc << " |\n";
}

Json ListJson() {
  Json json = {{"passes", Json::array()}, {"switches", Json::array()}};
  for (const Pass& pass : Passes()) {
    json["passes"].push_back({{"name", pass.name},
                              {"phase", PhaseName(pass.phase)},
                              {"default", DefaultOf(pass)},
                              {"group", pass.group},
                              {"file", FileOf(pass)},
                              {"doc", pass.doc}});
  }
  for (const PassSwitch& one : PassSwitches())
    json["switches"].push_back({{"name", one.name}, {"part_of", one.part_of}, {"doc", one.doc}});
  return json;
}

Json RecordsJson(const std::vector<PassRecorder::Record>& records) {
  Json json = Json::array();
  for (const PassRecorder::Record& r : records) {
    json.push_back({{"name", r.name},
                    {"phase", r.phase},
                    {"ns", r.ns},
                    {"removed", r.changes.removed},
                    {"added", r.changes.added},
                    {"fused", r.changes.fused},
                    {"moved", r.changes.moved},
                    {"nodes", r.num_nodes}});
  }
  return json;
}

void PrintRecords(const std::vector<PassRecorder::Record>& records, Console& console) {
  TextTable table({"pass", ">time", ">removed", ">added", ">fused", ">moved", ">nodes"});
  const auto number = [](int n) { return n == 0 ? "" : WithCommas(n); };
  PlanChanges sum;
  int64_t ns = 0;
  for (const PassRecorder::Record& r : records) {
    table.Row({std::string(r.name), HumanDuration(static_cast<double>(r.ns) * 1e-9),
               number(r.changes.removed), number(r.changes.added), number(r.changes.fused),
               number(r.changes.moved), WithCommas(r.num_nodes)});
    ns += r.ns;
    sum = {sum.removed + r.changes.removed, sum.added + r.changes.added,
           sum.fused + r.changes.fused, sum.moved + r.changes.moved};
  }
  table.Row({"all", HumanDuration(static_cast<double>(ns) * 1e-9), number(sum.removed),
             number(sum.added), number(sum.fused), number(sum.moved),
             records.empty() ? "" : WithCommas(records.back().num_nodes)});
  table.Print(console);
}

absl::Status ListPasses(const PassesOptions& options, Console& console) {
  if (options.markdown) {
    PrintMarkdown(console);
  } else if (options.json) {
    console.out << ListJson().dump(2) << "\n";
  } else {
    PrintList(console);
  }
  return absl::OkStatus();
}

absl::Status PassesOn(PassesOptions options, Console& console) {
  options.request.records_passes = true;
  WEIR_ASSIGN_OR_RETURN(PreparedRequest prepared, PrepareRequest(options.request, console.err));
  Tensors fetched;
  WEIR_RETURN_IF_ERROR(prepared.step.Run(prepared.request.values, &fetched));
  WEIR_RETURN_IF_ERROR(prepared.passes->status());
  if (options.json) {
    console.out << RecordsJson(prepared.passes->records()).dump(2) << "\n";
  } else {
    PrintRecords(prepared.passes->records(), console);
  }
  return absl::OkStatus();
}

}  // namespace

void AddPassesCommand(Command& weir) {
  auto options = std::make_shared<PassesOptions>();
  Command passes = weir.Add(
      "passes", "List the passes that compile a step, or report what each does to a graph",
      "  weir passes\n"
      "  weir passes model.meta --checkpoint runs/model-500 --feed x:0=x.npy --fetch y:0\n"
      "Without a graph, lists all passes in order. With one, compiles the step for the shapes of "
      "the feeds, runs it\n"
      "once, and prints the time of each pass and how many nodes it removed, added and fused; "
      "'moved' counts the\n"
      "uses that take another, equal value afterward. Nodes after a pass = nodes before + added - "
      "removed - fused.");
  AddRequestOptions(passes, &options->request, "TENSOR", "a tensor to compute; repeatable",
                    /*needs_graph=*/false);
  passes.Flag("--json", &options->json, "print JSON");
  passes.Flag("--markdown", &options->markdown, "print the list as docs/PASSES.md");
  passes.Do([options](Console& console) {
    const bool has_graph = !options->request.file.empty();
    return Finish(console, has_graph ? PassesOn(*options, console) : ListPasses(*options, console));
  });
}

}  // namespace weir::tools
