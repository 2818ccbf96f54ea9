#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weir/core/io/file.h"
#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/ckpt/rewrite.h"
#include "weir/tools/lib/rename_rules.h"

// weir ckpt rename, drop and cast: a new checkpoint with the same tensors but for one change.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct EditOptions {
  std::string in, map, dtype, only;
  std::vector<std::string> rules, patterns;
  bool allow_overflow = false;
  RewriteOptions rewrite;
};

// Passes each tensor to `edit`, which changes it, or returns false to leave it out. Writes the
// others.
template <class Edit>
absl::Status EditTensors(const EditOptions& options, OpenedCheckpoint opened, Console& console,
                         Edit edit) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors, opened.reader->List());
  OutputTensors outputs;
  size_t changed = 0;
  for (const CheckpointTensor& tensor : tensors) {
    OutputTensor output = CopyOf(*opened.reader, tensor);
    const bool is_kept = edit(&output);
    if (!is_kept || output.name != tensor.name || output.dtype != tensor.dtype) ++changed;
    if (is_kept) WEIR_RETURN_IF_ERROR(AddOutput(std::move(output), &outputs));
  }
  if (changed == 0) return NotFound("none of the ", tensors.size(), " tensors would be changed");
  if (outputs.empty()) return InvalidArgument("no tensor would remain");
  Output output = MakeOutput(std::move(outputs));
  output.metadata = std::move(opened.metadata);
  return Rewrite(options.rewrite, {options.in, opened.path}, std::move(output), console);
}

// ---- rename

using NameMap = std::map<std::string, std::string>;

absl::Status AddName(const std::string& path, const std::string& from, const std::string& to,
                     NameMap* names) {
  if (to.empty()) return InvalidArgument(path, ": '", from, "' has no new name");
  if (names->emplace(from, to).second) return absl::OkStatus();
  return InvalidArgument(path, ": two new names for '", from, "'");
}

// Reads a JSON object of strings, or lines of an old and a new name.
absl::StatusOr<NameMap> ReadNameMap(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  NameMap names;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) {
    for (const auto& [from, to] : json.items()) {
      if (!to.is_string())
        return InvalidArgument(path, ": the new name of '", from, "' is not a string");
      WEIR_RETURN_IF_ERROR(AddName(path, from, to.get<std::string>(), &names));
    }
    return names;
  }
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty() || words[0][0] == '#') continue;
    if (words.size() != 2)
      return InvalidArgument(path, ", line ", number, ": expected an old and a new name");
    WEIR_RETURN_IF_ERROR(AddName(path, words[0], words[1], &names));
  }
  return names;
}

absl::Status Rename(const EditOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const RenameRules rules, RenameRules::Parse(options.rules));
  if (options.map.empty() == options.rules.empty())
    return InvalidArgument("pass either rules, REGEX=TEXT, or a file of names with --map");
  NameMap names;
  if (!options.map.empty()) {
    WEIR_ASSIGN_OR_RETURN(names, ReadNameMap(options.map));
  }
  WEIR_ASSIGN_OR_RETURN(OpenedCheckpoint opened, OpenCheckpoint(options.in, &console.err));
  for (const auto& [from, to] : names)
    WEIR_RETURN_IF_ERROR(Annotate(opened.reader->Find(from).status(), options.map));
  return EditTensors(options, std::move(opened), console, [&](OutputTensor* tensor) {
    const auto found = names.find(tensor->name);
    tensor->name = found != names.end() ? found->second : rules.Apply(tensor->name);
    return true;
  });
}

// ---- drop and cast

// Returns the names of the tensors that match.
absl::StatusOr<std::set<std::string>> Matching(const OpenedCheckpoint& opened,
                                               const std::string& pattern) {
  WEIR_ASSIGN_OR_RETURN(std::vector<CheckpointTensor> tensors, opened.reader->List());
  const absl::StatusOr<std::vector<CheckpointTensor>> chosen =
      Choose({.keep = pattern}, std::move(tensors));
  if (absl::IsNotFound(chosen.status())) return NotFound("no tensor matches '", pattern, "'");
  WEIR_RETURN_IF_ERROR(chosen.status());
  std::set<std::string> names;
  for (const CheckpointTensor& tensor : *chosen) names.insert(tensor.name);
  return names;
}

absl::Status Drop(const EditOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(OpenedCheckpoint opened, OpenCheckpoint(options.in, &console.err));
  std::set<std::string> dropped;
  for (const std::string& pattern : options.patterns) {
    if (pattern.empty()) return InvalidArgument("an empty pattern matches every name");
    WEIR_ASSIGN_OR_RETURN(std::set<std::string> names, Matching(opened, pattern));
    dropped.merge(names);
  }
  return EditTensors(options, std::move(opened), console,
                     [&](OutputTensor* tensor) { return !dropped.contains(tensor->name); });
}

absl::Status Cast(const EditOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const DataType dtype, FloatType(options.dtype));
  WEIR_ASSIGN_OR_RETURN(OpenedCheckpoint opened, OpenCheckpoint(options.in, &console.err));
  WEIR_ASSIGN_OR_RETURN(const std::set<std::string> names, Matching(opened, options.only));
  return EditTensors(options, std::move(opened), console, [&](OutputTensor* tensor) {
    tensor->allow_overflow = options.allow_overflow;
    if (IsFloating(tensor->dtype) && names.contains(tensor->name)) tensor->dtype = dtype;
    return true;
  });
}

Command AddEdit(Command& ckpt, const std::shared_ptr<EditOptions>& options, const char* name,
                const char* description, const char* example) {
  Command edit = ckpt.Add(name, description, example);
  edit.Argument("FROM", &options->in, kCheckpointHelp).Required();
  edit.Argument("TO", &options->rewrite.out, "the prefix, file or folder to write").Required();
  AddForceOption(edit, &options->rewrite);
  AddRewriteOptions(edit, &options->rewrite);
  return edit;
}

}  // namespace

void AddEditCommands(Command& ckpt) {
  auto options = std::make_shared<EditOptions>();
  Command rename = AddEdit(ckpt, options, "rename", "Write a checkpoint with other names",
                           "  weir ckpt rename runs/model runs/renamed '^encoder/=bert/'\n"
                           "  weir ckpt rename runs/model runs/renamed --map names.txt");
  rename.Arguments("REGEX=TEXT", &options->rules,
                   "replace each match of REGEX in a name with TEXT; \\1 is the first group");
  rename
      .Value("--map", &options->map,
             "a file with lines of an old and a new name, or a JSON object of them")
      .Word("FILE");
  rename.Do([options](Console& console) { return Finish(console, Rename(*options, console)); });

  Command drop = AddEdit(ckpt, options, "drop", "Write a checkpoint without some tensors",
                         "  weir ckpt drop runs/model export/model 'Adam|beta._power'");
  drop.Arguments("REGEX", &options->patterns, "exclude tensors whose names match").Required();
  drop.Do([options](Console& console) { return Finish(console, Drop(*options, console)); });

  Command cast = AddEdit(ckpt, options, "cast", "Write a checkpoint in another floating-point type",
                         "  weir ckpt cast runs/model small/model bfloat16 --only '/kernel$'");
  cast.Argument("TYPE", &options->dtype, "float, double, half or bfloat16").Required();
  cast.Value("--only", &options->only, "only tensors whose names match").Word("REGEX");
  cast.Flag("--allow-overflow", &options->allow_overflow,
            "values that are too large for the type become infinite");
  cast.Do([options](Console& console) { return Finish(console, Cast(*options, console)); });
}

}  // namespace weir::tools
