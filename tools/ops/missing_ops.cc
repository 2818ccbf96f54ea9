#include "weir/tools/ops/missing_ops.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weir/core/graph/op.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/ops/left_out_ops.h"

namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

bool IsThere(const std::string& op) { return BuiltinOps().Find(op) != nullptr; }

// docs/ops.md.
void PrintMarkdown(const std::vector<std::string>& all,
                   const std::map<std::string, std::string>& missing, Console& console) {
  console.out << "# TensorFlow's ops\n\n"
                 "The ops that TensorFlow 2.21 runs on a CPU, without those of MKL, XLA and TPUs: "
              << all.size() << ", of\nwhich Weir has " << all.size() - missing.size()
              << " and leaves out " << missing.size()
              << ". This file is generated: `weir ops --missing\n--markdown`. `weir ops NAME` "
                 "describes an op.\n\n"
                 "## Left out\n\n| op | reason |\n|---|---|\n";
  for (const auto& [op, reason] : missing) console.out << "| " << op << " | " << reason << " |\n";
  console.out << "\n## All\n\n| op | in Weir |\n|---|---|\n";
  for (const std::string& op : all)
    console.out << "| " << op << " | " << (missing.contains(op) ? "no" : "yes") << " |\n";
}

}  // namespace

int PrintMissingOps(MissingOpsForm form, Console& console) {
  const std::vector<std::string> all = TensorFlowOps();
  const std::map<std::string, std::string> reasons = LeftOutOps();
  std::map<std::string, std::string> missing;
  for (const std::string& op : all) {
    if (IsThere(op)) continue;
    const auto reason = reasons.find(op);
    missing[op] = reason == reasons.end() ? "(no reason is stated)" : reason->second;
  }
  if (form == MissingOpsForm::kMarkdown) {
    PrintMarkdown(all, missing, console);
  } else if (form == MissingOpsForm::kJson) {
    Json json = Json::array();
    for (const auto& [op, reason] : missing) json.push_back({{"name", op}, {"reason", reason}});
    console.out << json.dump(1) << "\n";
  } else {
    TextTable table({"op", "reason"});
    for (const auto& [op, reason] : missing) table.Row({op, reason});
    table.Print(console);
    console.out << all.size()
                << " ops run on a CPU in TensorFlow 2.21: " << all.size() - missing.size()
                << " are here, " << missing.size() << " are left out\n";
  }
  return kOk;
}

}  // namespace weir::tools
