#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/ckpt/rewrite.h"
#include "weir/tools/ckpt/tensor_distance.h"
#include "weir/tools/lib/text_table.h"

// weir ckpt diff: which tensors two checkpoints have, and how far apart their elements are.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct DiffOptions {
  std::string a, b;
  NameFilter filter;
  DistanceTolerance tolerance;
  bool all = false, json = false;
};

// A tensor of both checkpoints. Without a distance, the shapes or the types cannot be compared.
struct Pair {
  CheckpointTensor a, b;
  bool has_distance = false;
  TensorDistance distance;

  bool IsEqual() const {
    return has_distance && a.dtype == b.dtype && a.shape == b.shape && distance.different == 0;
  }
};

struct Diff {
  std::vector<CheckpointTensor> only_a, only_b;
  std::vector<Pair> pairs;

  int64_t NumDifferent() const {
    int64_t n = static_cast<int64_t>(only_a.size() + only_b.size());
    for (const Pair& pair : pairs) n += pair.IsEqual() ? 0 : 1;
    return n;
  }
};

std::string Describe(const CheckpointTensor& tensor) {
  return DataTypeName(tensor.dtype) + tensor.shape.ToString();
}

absl::StatusOr<std::vector<CheckpointTensor>> ListTensors(const DiffOptions& options,
                                                          CheckpointReader& reader) {
  WEIR_ASSIGN_OR_RETURN(std::vector<CheckpointTensor> tensors, reader.List());
  absl::StatusOr<std::vector<CheckpointTensor>> chosen = Choose(options.filter, std::move(tensors));
  // The other checkpoint may have some.
  if (absl::IsNotFound(chosen.status())) return std::vector<CheckpointTensor>();
  return chosen;
}

absl::StatusOr<Pair> ComparePair(const DiffOptions& options, CheckpointReader& reader_a,
                                 CheckpointReader& reader_b, CheckpointTensor a,
                                 CheckpointTensor b) {
  Pair pair{std::move(a), std::move(b)};
  if (pair.a.shape != pair.b.shape) return pair;
  absl::StatusOr<TensorDistance> distance =
      ComputeDistance(reader_a, pair.a, reader_b, pair.b, options.tolerance);
  if (absl::IsFailedPrecondition(distance.status())) return pair;
  WEIR_RETURN_IF_ERROR(distance.status());
  pair.has_distance = true;
  pair.distance = *distance;
  return pair;
}

absl::StatusOr<Diff> ComputeDiff(const DiffOptions& options, CheckpointReader& reader_a,
                                 CheckpointReader& reader_b, Console& console) {
  WEIR_ASSIGN_OR_RETURN(std::vector<CheckpointTensor> in_a, ListTensors(options, reader_a));
  WEIR_ASSIGN_OR_RETURN(std::vector<CheckpointTensor> in_b, ListTensors(options, reader_b));
  if (in_a.empty() && in_b.empty()) return NotFound("there are no tensors to compare");
  Diff diff;
  ProgressBar progress(console, "Comparing", "tensors", static_cast<double>(in_a.size()));
  size_t i = 0, j = 0;
  while (i < in_a.size() || j < in_b.size()) {
    const int order = i == in_a.size()   ? 1
                      : j == in_b.size() ? -1
                                         : in_a[i].name.compare(in_b[j].name);
    if (order < 0) {
      diff.only_a.push_back(std::move(in_a[i++]));
    } else if (order > 0) {
      diff.only_b.push_back(std::move(in_b[j++]));
    } else {
      WEIR_ASSIGN_OR_RETURN(Pair pair, ComparePair(options, reader_a, reader_b,
                                                   std::move(in_a[i++]), std::move(in_b[j++])));
      diff.pairs.push_back(std::move(pair));
      progress.Add(1);
    }
  }
  return diff;
}

// ---- output

// JSON has no infinities.
Json NumberToJson(double x) { return std::isfinite(x) ? Json(x) : Json("Infinity"); }

Json PairToJson(const Pair& pair) {
  Json json = {{"name", pair.a.name},
               {"a", Describe(pair.a)},
               {"b", Describe(pair.b)},
               {"equal", pair.IsEqual()}};
  if (!pair.has_distance) return json;
  const TensorDistance& d = pair.distance;
  json["elements"] = d.elements;
  json["different"] = d.different;
  json["first"] = d.first;
  json["max_absolute"] = NumberToJson(d.max_absolute);
  json["max_relative"] = NumberToJson(d.max_relative);
  json["nan_only_in_a"] = d.nans_a;
  json["nan_only_in_b"] = d.nans_b;
  return json;
}

void PrintJson(const DiffOptions& options, const Diff& diff, Console& console) {
  Json only_a = Json::array(), only_b = Json::array(), pairs = Json::array();
  for (const CheckpointTensor& tensor : diff.only_a) only_a.push_back(tensor.name);
  for (const CheckpointTensor& tensor : diff.only_b) only_b.push_back(tensor.name);
  for (const Pair& pair : diff.pairs) {
    if (options.all || !pair.IsEqual()) pairs.push_back(PairToJson(pair));
  }
  const Json json = {{"equal", diff.NumDifferent() == 0},
                     {"only_a", std::move(only_a)},
                     {"only_b", std::move(only_b)},
                     {"tensors", std::move(pairs)}};
  console.out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

void AddRow(const Pair& pair, TextTable* table) {
  const TensorDistance& d = pair.distance;
  const std::string a = Describe(pair.a), b = Describe(pair.b);
  std::string note = a == b ? "" : absl::StrCat("b: ", b);
  if (d.nans_a + d.nans_b > 0) {
    absl::StrAppend(&note, note.empty() ? "" : "; ", "NaN in a: ", d.nans_a, ", in b: ", d.nans_b);
  }
  if (!pair.has_distance) {
    table->Row({pair.a.name, a, "", "", "", note});
    return;
  }
  table->Row({pair.a.name, a, WithCommas(d.different), absl::StrFormat("%.3g", d.max_absolute),
              absl::StrFormat("%.3g", d.max_relative), note});
}

void PrintText(const DiffOptions& options, const Diff& diff, Console& console) {
  for (const CheckpointTensor& tensor : diff.only_a)
    console.out << "only in a: " << tensor.name << " " << Describe(tensor) << "\n";
  for (const CheckpointTensor& tensor : diff.only_b)
    console.out << "only in b: " << tensor.name << " " << Describe(tensor) << "\n";
  TextTable table({"tensor", "type", ">different", ">max abs", ">max rel", ""});
  size_t equal = 0, rows = 0;
  for (const Pair& pair : diff.pairs) {
    equal += pair.IsEqual() ? 1 : 0;
    if (!options.all && pair.IsEqual()) continue;
    AddRow(pair, &table);
    ++rows;
  }
  if (rows > 0) table.Print(console);
  console.out << equal << " tensors equal, " << diff.pairs.size() - equal << " differ, "
              << diff.only_a.size() << " only in a, " << diff.only_b.size() << " only in b\n";
}

absl::StatusOr<bool> Compare(const DiffOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const OpenedCheckpoint a, OpenCheckpoint(options.a, &console.err));
  WEIR_ASSIGN_OR_RETURN(const OpenedCheckpoint b, OpenCheckpoint(options.b, &console.err));
  WEIR_ASSIGN_OR_RETURN(const Diff diff, ComputeDiff(options, *a.reader, *b.reader, console));
  (options.json ? PrintJson : PrintText)(options, diff, console);
  return diff.NumDifferent() == 0;
}

}  // namespace

void AddDiffCommand(Command& ckpt) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  auto options = std::make_shared<DiffOptions>();
  Command diff =
      ckpt.Add("diff", "Compare the tensors of two checkpoints (exit status 1 if they differ)",
               "  weir ckpt diff runs/model-400 runs/model-500\n"
               "  weir ckpt diff model model.safetensors --rtol 1e-3 --all");
  diff.Argument("A", &options->a, kCheckpointHelp).Required();
  diff.Argument("B", &options->b, "the other checkpoint; also of another format").Required();
  AddFilterOptions(diff, &options->filter);
  diff.Value("--rtol", &options->tolerance.rtol,
             "elements are equal if |a - b| <= ATOL + RTOL * |b|; default 0")
      .Word("RTOL")
      .Range(0, kLargest);
  diff.Value("--atol", &options->tolerance.atol, "see --rtol").Word("ATOL").Range(0, kLargest);
  diff.Flag("--all", &options->all, "list equal tensors too");
  diff.Flag("--json", &options->json, "print JSON");
  diff.Do([options](Console& console) {
    const absl::StatusOr<bool> equal = Compare(*options, console);
    if (!equal.ok()) return Fail(console, equal.status());
    return *equal ? kOk : kFailure;
  });
}

}  // namespace weir::tools
