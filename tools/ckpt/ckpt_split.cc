#include <re2/re2.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "weir/core/io/file.h"
#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/ckpt/new_folder.h"
#include "weir/tools/ckpt/npy_folder.h"
#include "weir/tools/ckpt/rewrite.h"
#include "weir/tools/lib/text_table.h"

// weir ckpt split: a folder with several checkpoints that together have the tensors of one. The
// folder appears as a whole.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct SplitOptions {
  std::string in, rest;
  std::vector<std::string> parts;
  int64_t max_bytes = 0;
  RewriteOptions rewrite;
};

// The new checkpoints by name.
using Parts = std::map<std::string, Output>;

// Cuts the list of tensors where a part would become too large.
Parts SplitBySize(const SplitOptions& options, CheckpointReader& reader,
                  const std::vector<CheckpointTensor>& tensors) {
  std::vector<Output> parts(1);
  int64_t bytes = 0;
  for (const CheckpointTensor& tensor : tensors) {
    const int64_t size = BytesOf(tensor.dtype, tensor.shape);
    if (bytes + size > options.max_bytes && !parts.back().tensors.empty()) {
      parts.emplace_back();
      bytes = 0;
    }
    bytes += size;
    parts.back().tensors.push_back(CopyOf(reader, tensor));
  }
  constexpr size_t kDigits = 5;
  Parts named;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string number = absl::StrCat(i);
    number.insert(0, kDigits - std::min(kDigits, number.size()), '0');
    named.emplace("part-" + number, std::move(parts[i]));
  }
  return named;
}

// Gives each tensor to the first part whose pattern its name matches.
absl::StatusOr<Parts> SplitByName(const SplitOptions& options, CheckpointReader& reader,
                                  const std::vector<CheckpointTensor>& tensors) {
  std::vector<std::pair<std::string, std::unique_ptr<RE2>>> rules;
  for (const std::string& part : options.parts) {
    const std::pair<std::string, std::string> words = absl::StrSplit(part, absl::MaxSplits('=', 1));
    auto pattern = std::make_unique<RE2>(words.second, RE2::Quiet);
    if (words.second.empty() || !pattern->ok())
      return InvalidArgument("--part ", part, ": expected NAME=REGEX. ", pattern->error());
    WEIR_RETURN_IF_ERROR(Annotate(CheckFileName(words.first), absl::StrCat("--part ", part)));
    rules.emplace_back(words.first, std::move(pattern));
  }
  Parts parts;
  for (const CheckpointTensor& tensor : tensors) {
    std::string name = options.rest;
    for (const auto& [part, pattern] : rules) {
      if (!RE2::PartialMatch(tensor.name, *pattern)) continue;
      name = part;
      break;
    }
    if (name.empty()) {
      return InvalidArgument("tensor '", tensor.name,
                             "' matches no --part; give the others a name with --rest");
    }
    parts[name].tensors.push_back(CopyOf(reader, tensor));
  }
  for (const auto& [part, pattern] : rules) {
    if (!parts.contains(part)) return NotFound("no tensor matches --part ", part, "=...");
  }
  return parts;
}

// The options of a part in a folder.
RewriteOptions PartOptions(const SplitOptions& options, const std::string& folder,
                           const std::string& name) {
  RewriteOptions part = options.rewrite;
  const CheckpointFormat* const format = FindFormat(part.format);
  part.out = absl::StrCat(folder, "/", name, format == nullptr ? "" : format->ending);
  return part;
}

void PrintParts(const SplitOptions& options, const Parts& parts, Console& console) {
  if (options.rewrite.json) {
    Json json = Json::object();
    for (const auto& [name, output] : parts) {
      Json names = Json::array();
      for (const OutputTensor& tensor : output.tensors) names.push_back(tensor.name);
      json[name] = {{"bytes", BytesOf(output)}, {"tensors", std::move(names)}};
    }
    const Json all = {{"folder", options.rewrite.out},
                      {"dry_run", options.rewrite.dry_run},
                      {"parts", std::move(json)}};
    console.out << all.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    return;
  }
  TextTable table({"checkpoint", ">tensors", ">bytes"});
  for (const auto& [name, output] : parts)
    table.Row({JoinPath(options.rewrite.out, name), absl::StrCat(output.tensors.size()),
               WithCommas(BytesOf(output))});
  table.Print(console);
  if (options.rewrite.dry_run) console.out << "nothing was written\n";
}

absl::Status Split(const SplitOptions& options, Console& console) {
  if ((options.max_bytes > 0) == !options.parts.empty())
    return InvalidArgument("pass either --part or --max-bytes");
  const std::string& out = options.rewrite.out;
  if (Files().Exists(out)) return AlreadyExists(out, " exists; choose another folder");
  WEIR_ASSIGN_OR_RETURN(const OpenedCheckpoint opened, OpenCheckpoint(options.in, &console.err));
  WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors, opened.reader->List());
  Parts parts;
  if (options.max_bytes > 0) {
    parts = SplitBySize(options, *opened.reader, tensors);
  } else {
    WEIR_ASSIGN_OR_RETURN(parts, SplitByName(options, *opened.reader, tensors));
  }
  // By part: without --format, the ending of a part's name chooses.
  std::map<std::string, const CheckpointFormat*> formats;
  size_t count = 0;
  for (auto& [name, output] : parts) {
    WEIR_ASSIGN_OR_RETURN(formats[name], CheckOutput(PartOptions(options, out, name), {}, &output));
    count += output.tensors.size();
  }
  if (!options.rewrite.dry_run) {
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<NewFolder> folder, NewFolder::Create(out));
    ProgressBar progress(console, "Writing", "tensors", static_cast<double>(count));
    for (const auto& [name, output] : parts) {
      const std::string path = PartOptions(options, folder->path(), name).out;
      WEIR_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(path)));
      WEIR_RETURN_IF_ERROR(formats[name]->write(path, output, progress));
    }
    WEIR_RETURN_IF_ERROR(folder->Commit());
  }
  PrintParts(options, parts, console);
  return absl::OkStatus();
}

}  // namespace

void AddSplitCommand(Command& ckpt) {
  auto options = std::make_shared<SplitOptions>();
  Command split = ckpt.Add("split", "Write a folder of checkpoints with parts of one",
                           "  weir ckpt split runs/model parts --part head=^head/ --rest body\n"
                           "  weir ckpt split runs/model parts --max-bytes 1000000000");
  split.Argument("FROM", &options->in, kCheckpointHelp).Required();
  split.Argument("FOLDER", &options->rewrite.out, "the folder to write; it does not exist")
      .Required();
  split
      .Repeated("--part", &options->parts,
                "write the tensors whose names match REGEX to FOLDER/NAME; repeatable, the first "
                "match counts")
      .Word("NAME=REGEX");
  split.Value("--rest", &options->rest, "write all other tensors to FOLDER/NAME").Word("NAME");
  split
      .Value("--max-bytes", &options->max_bytes,
             "write parts of at most this size, FOLDER/part-00000 and so on")
      .Word("N")
      .AtLeast(1);
  AddRewriteOptions(split, &options->rewrite);
  split.Do([options](Console& console) { return Finish(console, Split(*options, console)); });
}

}  // namespace weir::tools
