#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "weir/session/model/object_names.h"
#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/ckpt/formats.h"
#include "weir/tools/ckpt/roles.h"
#include "weir/tools/lib/text_table.h"

// weir ckpt ls: the tensors of a checkpoint, as a list or as a tree of name scopes.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct LsOptions {
  std::string path, sort = "name";
  std::vector<std::string> patterns;
  int depth = 0;
  bool tree = false, metadata = false, json = false;
};

struct Row {
  CheckpointTensor tensor;
  TensorRole role = TensorRole::kVariable;
  int64_t bytes = 0;
  std::string full_name;  // in a checkpoint of objects
};

// ---- choice and order

bool Matches(const LsOptions& options, const std::string& name) {
  return options.patterns.empty() ||
         std::any_of(options.patterns.begin(), options.patterns.end(), [&](const auto& pattern) {
           return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
         });
}

absl::StatusOr<std::vector<Row>> ChooseRows(const LsOptions& options, CheckpointReader& reader) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors, reader.List());
  const std::vector<TensorRole> roles = RolesOf(tensors);
  WEIR_ASSIGN_OR_RETURN(auto full_names, FullNamesOf(reader));
  std::vector<Row> rows;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const CheckpointTensor& tensor = tensors[i];
    if (Matches(options, tensor.name))
      rows.push_back(
          {tensor, roles[i], BytesOf(tensor.dtype, tensor.shape), full_names[tensor.name]});
  }
  if (rows.empty() && !tensors.empty())
    return NotFound("none of the ", tensors.size(), " tensors matches the pattern");
  // Rows that are equal stay sorted by name.
  if (options.sort == "size") {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.bytes > b.bytes; });
  } else if (options.sort == "role") {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.role < b.role; });
  } else if (options.sort != "name") {
    return InvalidArgument("--sort ", options.sort, ": expected name, size or role");
  }
  return rows;
}

// ---- a tree of name scopes

struct Scope {
  std::map<std::string, Scope> parts;  // by the next component of the name
  const Row* row = nullptr;            // the tensor of this name
  int64_t tensors = 0, bytes = 0;      // of the scope, with the tensor itself
};

Scope MakeTree(const std::vector<Row>& rows) {
  Scope root;
  for (const Row& row : rows) {
    Scope* scope = &root;
    const auto add = [&] {
      ++scope->tensors;
      scope->bytes += row.bytes;
    };
    add();
    for (const absl::string_view part : absl::StrSplit(row.tensor.name, '/')) {
      scope = &scope->parts[std::string(part)];
      add();
    }
    scope->row = &row;
  }
  return root;
}

// Adds the rows of a scope's parts. A scope at the greatest depth is one row.
void AddScope(const Scope& scope, int depth, int max_depth, TextTable* table) {
  for (const auto& [name, part] : scope.parts) {
    const bool is_cut = max_depth > 0 && depth + 1 >= max_depth;
    const std::string label = std::string(static_cast<size_t>(2 * depth), ' ') + name;
    if (part.row != nullptr && !is_cut) {
      const CheckpointTensor& tensor = part.row->tensor;
      table->Row({label, std::string(RoleName(part.row->role)), DataTypeName(tensor.dtype),
                  tensor.shape.ToString(), WithCommas(part.row->bytes)});
    } else {
      table->Row({part.parts.empty() ? label : label + "/", "", "",
                  absl::StrCat(part.tensors, part.tensors == 1 ? " tensor" : " tensors"),
                  WithCommas(part.bytes)});
    }
    if (!is_cut) AddScope(part, depth + 1, max_depth, table);
  }
}

// ---- output

void PrintTree(const LsOptions& options, const std::vector<Row>& rows, Console& console) {
  TextTable table({"tensor", "role", "dtype", "shape", ">bytes"});
  AddScope(MakeTree(rows), 0, options.depth, &table);
  table.Print(console);
}

// The roles are printed unless all tensors are variables, and the full names if there are some.
void PrintList(const std::vector<Row>& rows, Console& console) {
  const bool has_roles = std::any_of(
      rows.begin(), rows.end(), [](const Row& row) { return row.role != TensorRole::kVariable; });
  const bool has_full_names =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.full_name.empty(); });
  std::vector<std::string> titles = {"tensor", "dtype", "shape", ">bytes", "?>parts"};
  if (has_full_names) titles.push_back("full name");
  if (has_roles) titles.insert(titles.begin() + 1, "role");
  TextTable table(std::move(titles));
  for (const Row& row : rows) {
    const CheckpointTensor& tensor = row.tensor;
    std::vector<std::string> cells = {
        tensor.name, DataTypeName(tensor.dtype), tensor.shape.ToString(),
        IsPlain(tensor.dtype) ? WithCommas(row.bytes) : "",
        tensor.slices.empty() ? "" : absl::StrCat(tensor.slices.size())};
    if (has_full_names) cells.push_back(row.full_name);
    if (has_roles) cells.insert(cells.begin() + 1, std::string(RoleName(row.role)));
    table.Row(std::move(cells));
  }
  table.Print(console);
}

void PrintTotals(const std::vector<Row>& rows, Console& console) {
  int64_t elements = 0, bytes = 0;
  std::map<TensorRole, int64_t> bytes_of;
  for (const Row& row : rows) {
    elements += row.tensor.shape.num_elements();
    bytes += row.bytes;
    bytes_of[row.role] += row.bytes;
  }
  console.out << rows.size() << " tensors, " << WithCommas(elements) << " elements, "
              << HumanBytes(bytes);
  if (bytes_of.size() > 1) {
    const char* separator = ": ";
    for (const auto& [role, count] : bytes_of) {
      console.out << separator << RoleName(role) << " " << HumanBytes(count);
      separator = ", ";
    }
  }
  console.out << "\n";
}

Json ToJson(const std::vector<Row>& rows) {
  Json json = Json::array();
  for (const Row& row : rows) {
    const CheckpointTensor& tensor = row.tensor;
    Json slices = Json::array();
    for (const TensorSlice& slice : tensor.slices) slices.push_back(slice.ToString());
    const absl::Span<const int64_t> dims = tensor.shape.dims();
    json.push_back({{"name", tensor.name},
                    {"dtype", DataTypeName(tensor.dtype)},
                    {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                    {"bytes", row.bytes},
                    {"role", std::string(RoleName(row.role))},
                    {"slices", std::move(slices)}});
    if (!row.full_name.empty()) json.back()["full_name"] = row.full_name;
  }
  return json;
}

void PrintMetadata(const LsOptions& options, const Metadata& metadata, Console& console) {
  if (options.json) {
    Json json = Json::object();
    for (const MetadataEntry& entry : metadata)
      json[entry.key] = {{"type", entry.type}, {"value", Json::parse(entry.json)}};
    console.out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    return;
  }
  constexpr size_t kMaxShown = 60;
  TextTable table({"key", "type", "value"});
  for (const MetadataEntry& entry : metadata) {
    const bool is_long = entry.json.size() > kMaxShown;
    table.Row(
        {entry.key, entry.type, is_long ? entry.json.substr(0, kMaxShown) + "..." : entry.json});
  }
  table.Print(console);
}

absl::Status Ls(const LsOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const OpenedCheckpoint opened, OpenCheckpoint(options.path, &console.err));
  if (options.metadata) {
    PrintMetadata(options, opened.metadata, console);
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<Row> rows, ChooseRows(options, *opened.reader));
  if (options.json) {
    console.out << ToJson(rows).dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    return absl::OkStatus();
  }
  if (options.tree || options.depth > 0)
    PrintTree(options, rows, console);
  else
    PrintList(rows, console);
  PrintTotals(rows, console);
  if (!opened.metadata.empty())
    console.out << opened.metadata.size() << " entries of metadata; --metadata prints them\n";
  return absl::OkStatus();
}

}  // namespace

void AddLsCommand(Command& ckpt) {
  auto options = std::make_shared<LsOptions>();
  Command ls = ckpt.Add("ls", "List the tensors",
                        "  weir ckpt ls runs/digits 'hidden/*' --sort size\n"
                        "  weir ckpt ls runs/digits --depth 2");
  ls.Argument("CHECKPOINT", &options->path, kCheckpointHelp).Required();
  ls.Arguments("PATTERN", &options->patterns, "only names that match: *, ? and [...]");
  ls.Value("--sort", &options->sort, "name (default), size or role").Word("ORDER");
  ls.Flag("--tree", &options->tree, "print a tree of name scopes");
  ls.Value("--depth", &options->depth, "print a tree of this many levels").Word("N").AtLeast(1);
  ls.Flag("--metadata", &options->metadata, "print the metadata of the file instead");
  ls.Flag("--json", &options->json, "print JSON");
  ls.Do([options](Console& console) { return Finish(console, Ls(*options, console)); });
}

}  // namespace weir::tools
