#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "weir/core/graph/op.h"
#include "weir/core/runtime/kernel.h"
#include "weir/tools/lib/command.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/ops/gradient_tests.h"
#include "weir/tools/ops/missing_ops.h"

// weir ops: lists the contents of the registries.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct OpsOptions {
  std::string name;
  bool coverage = false, missing = false, json = false, markdown = false;
};

std::string GradientOf(const OpSpec& op) {
  if (op.gradient_fn()) return "yes";
  return op.not_differentiable() ? "zero" : "no";
}

// Returns the types that a kernel supports: "float", "float, Tidx=int32", "any".
std::string TypesOf(const KernelDef& kernel) {
  std::vector<std::string> texts;
  for (const auto& [attr, type] : kernel.constraints) {
    texts.push_back(attr.empty() ? DataTypeName(type) : attr + "=" + DataTypeName(type));
  }
  return texts.empty() ? "any" : absl::StrJoin(texts, ", ");
}

// The values of the main type attribute for which an op has kernels on a device type. An empty set
// means that there is no kernel, or (with `any`) that every type is supported.
struct TypeCoverage {
  bool any = false;
  std::set<DataType> types;
};
TypeCoverage CoverageOf(const OpSpec& op, Place place) {
  TypeCoverage out;
  for (const KernelDef* kernel : BuiltinKernels().KernelsOf(op.name())) {
    if (kernel->place != place) continue;
    const auto& constraints = kernel->constraints;
    out.any |= constraints.empty();
    if (!constraints.empty()) out.types.insert(constraints[0].second);
  }
  return out;
}

// Returns "floats ints bool": one word for each group of types that is complete.
std::string ToText(TypeCoverage coverage) {
  if (coverage.any) return "any";
  static const std::vector<std::pair<const char*, std::vector<DataType>>> kFamilies = {
      {"floats", {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE}},
      {"ints", {DT_INT8, DT_INT16, DT_INT32, DT_INT64, DT_UINT8, DT_UINT16, DT_UINT32, DT_UINT64}},
      {"complex", {DT_COMPLEX64, DT_COMPLEX128}}};
  std::vector<std::string> words;
  for (const auto& [word, members] : kFamilies) {
    const auto has = [&](DataType t) { return coverage.types.count(t) > 0; };
    if (!std::all_of(members.begin(), members.end(), has)) continue;
    words.push_back(word);
    for (const DataType t : members) coverage.types.erase(t);
  }
  for (const DataType t : coverage.types) words.push_back(DataTypeName(t));
  return words.empty() ? "-" : absl::StrJoin(words, " ");
}

Json OpToJson(const OpSpec& op) {
  Json kernels = Json::array();
  for (const KernelDef* kernel : BuiltinKernels().KernelsOf(op.name())) {
    kernels.push_back({{"place", std::string(kernel->place.name())}, {"types", TypesOf(*kernel)}});
  }
  return {{"name", op.name()},          {"signature", op.Signature()}, {"stateful", op.stateful()},
          {"gradient", GradientOf(op)}, {"kernels", kernels},          {"doc", op.doc()}};
}

int ShowOp(const OpsOptions& options, Console& console) {
  const absl::StatusOr<const OpSpec*> found = BuiltinOps().Lookup(options.name);
  if (!found.ok()) return Fail(console, found.status());
  const OpSpec& op = **found;
  if (options.json) {
    console.out << OpToJson(op).dump(1) << "\n";
    return kOk;
  }
  console.out << console.Paint(Style::kBold, op.Signature()) << "\n\n"
              << (op.doc().empty() ? "(not documented)" : op.doc()) << "\n\n";
  TextTable facts({"", ""});
  static constexpr std::pair<const char*, const char*> kGradients[] = {
      {"yes", "yes"},
      {"zero", "none: it is zero or undefined"},
      {"no", "not implemented: differentiating this op is an error"}};
  for (const auto& [kind, text] : kGradients) {
    if (GradientOf(op) == kind) facts.Row({"gradient", text});
  }
  if (op.stateful())
    facts.Row({"stateful", "never folded, eliminated as a common subexpression, or run twice"});
  if (op.deprecated_version() > 0) {
    facts.Row({"deprecated",
               absl::StrCat("from producer ", op.deprecated_version(), " on: ", op.deprecation())});
  }
  for (const Place place : {kCpu, kGpu}) {
    facts.Row({absl::StrCat(place.name(), " kernels"), ToText(CoverageOf(op, place))});
  }
  facts.Print(console);
  return kOk;
}

int ListOps(const OpsOptions& options, Console& console) {
  TextTable table({"op", "what it does"});
  Json json = Json::array();
  for (const OpSpec* op : BuiltinOps().All()) {
    const std::string first_line(op->doc(), 0, op->doc().find('\n'));
    table.Row({op->name(), first_line});
    json.push_back(OpToJson(*op));
  }
  if (options.json) {
    console.out << json.dump(1) << "\n";
  } else {
    table.Print(console);
  }
  return kOk;
}

// Returns "-" if there is no gradient, "not tested" if a second-order gradient may be missing.
std::string SecondOrder(const OpSpec& op, const GradientTest& test) {
  if (!op.gradient_fn()) return "-";
  return test.order > 1 ? "yes" : "not tested";
}

int Coverage(const OpsOptions& options, Console& console) {
  TextTable table({"op", "gradient", "?second order", "?tested by", "CPU kernels", "GPU kernels"});
  Json json = Json::array();
  std::map<std::string, GradientTest> tests = GradientTests();
  int ops = 0, cpu = 0, gpu = 0, gradient = 0, second = 0, zero = 0;
  for (const OpSpec* op : BuiltinOps().All()) {
    const std::string on_cpu = ToText(CoverageOf(*op, kCpu)),
                      on_gpu = ToText(CoverageOf(*op, kGpu));
    const GradientTest& test = tests[op->name()];
    const std::string second_order = SecondOrder(*op, test);
    const std::string tested = test.test.empty() ? "-" : test.test;
    ++ops;
    cpu += on_cpu != "-";
    gpu += on_gpu != "-";
    gradient += GradientOf(*op) == "yes";
    second += second_order == "yes";
    zero += GradientOf(*op) == "zero";
    table.Row({op->name(), GradientOf(*op), second_order, tested, on_cpu, on_gpu});
    json.push_back({{"op", op->name()},
                    {"gradient", GradientOf(*op)},
                    {"second_order", second_order},
                    {"tested_by", tested},
                    {"cpu", on_cpu},
                    {"gpu", on_gpu}});
  }
  if (options.json) {
    console.out << json.dump(1) << "\n";
    return kOk;
  }
  table.Print(console);
  console.out << ops << " ops: " << cpu << " with CPU kernels, " << gpu << " with GPU kernels; "
              << gradient << " with a gradient, " << second
              << " of them tested to the second order, " << zero << " whose gradient is zero, "
              << ops - gradient - zero << " without\n";
  return kOk;
}

}  // namespace

void AddOpsCommand(Command& weir) {
  auto options = std::make_shared<OpsOptions>();
  Command ops = weir.Add("ops", "List ops, or describe one",
                         "  weir ops MatMul\n  weir ops --coverage\n  weir ops --missing");
  ops.Argument("NAME", &options->name, "an op; default: list all ops");
  ops.Flag("--coverage", &options->coverage,
           "print a table of gradients, and of kernels by device and type");
  ops.Flag("--missing", &options->missing,
           "print the ops that TensorFlow runs on a CPU and Weir does not, and why");
  ops.Flag("--json", &options->json, "print JSON");
  ops.Flag("--markdown", &options->markdown, "with --missing: print docs/ops.md");
  ops.Do([options](Console& console) {
    if (!options->name.empty()) return ShowOp(*options, console);
    if (options->missing) {
      return PrintMissingOps(options->markdown ? MissingOpsForm::kMarkdown
                             : options->json   ? MissingOpsForm::kJson
                                               : MissingOpsForm::kTable,
                             console);
    }
    return options->coverage ? Coverage(*options, console) : ListOps(*options, console);
  });
}

}  // namespace weir::tools
