#include "weir/core/io/checkpoint_state.h"

#include <re2/re2.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/core/io/file.h"
#include "weir/core/io/text_proto.h"
#include "weir/proto/checkpoint_state.pb.h"

namespace weir {
namespace {

bool IsAbsolute(const std::string& path) { return !path.empty() && path[0] == '/'; }

// Returns `path` relative to `directory`, or unchanged if it has no relative form.
std::string RelativeTo(const std::string& path, const std::string& directory) {
  if (IsAbsolute(path) != IsAbsolute(directory)) return path;
  const auto from = std::filesystem::path(directory).lexically_normal();
  const std::string relative =
      std::filesystem::path(path).lexically_normal().lexically_relative(from).string();
  return relative.empty() ? path : relative;
}

}  // namespace

absl::Status CheckStatePath(const std::string& path) {
  // UTF-8 by its bytes (Unicode, table 3-7).
  static const RE2* const kUtf8 = new RE2(
      R"((?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf])"
      R"(|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf])"
      R"(|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})*)",
      RE2::Latin1);
  if (RE2::FullMatch(path, *kUtf8)) return absl::OkStatus();
  return InvalidArgument("a state file cannot name the checkpoint '", absl::CHexEscape(path),
                         "', which is not UTF-8");
}

absl::StatusOr<CheckpointState> ReadCheckpointState(const std::string& directory,
                                                    const std::string& filename) {
  const std::string path = JoinPath(directory, filename);
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  proto::CheckpointState p;
  const absl::Status parsed = ParseTextProto(text, path, &p, {.allow_unknown_fields = true});
  if (!parsed.ok()) return DataLoss(parsed.message());
  if (p.model_checkpoint_path().empty()) return DataLoss(path, ": no model_checkpoint_path");
  CheckpointState state;
  state.model_checkpoint_path = JoinPath(directory, p.model_checkpoint_path());
  for (const std::string& each : p.all_model_checkpoint_paths()) {
    state.all_model_checkpoint_paths.push_back(JoinPath(directory, each));
  }
  state.all_model_checkpoint_timestamps = {p.all_model_checkpoint_timestamps().begin(),
                                           p.all_model_checkpoint_timestamps().end()};
  state.last_preserved_timestamp = p.last_preserved_timestamp();
  return state;
}

namespace {

constexpr char kStateFile[] = "checkpoint";

absl::StatusOr<std::unique_ptr<WriteLock>> LockState(const std::string& directory,
                                                     const std::string& filename) {
  return WriteLock::Acquire(JoinPath(directory, filename), std::chrono::seconds(10));
}

absl::StatusOr<proto::CheckpointState> ToProto(const std::string& directory, CheckpointState state,
                                               bool relative) {
  std::vector<std::string>& all = state.all_model_checkpoint_paths;
  if (all.empty() || all.back() != state.model_checkpoint_path)
    all.push_back(state.model_checkpoint_path);
  if (!state.all_model_checkpoint_timestamps.empty() &&
      state.all_model_checkpoint_timestamps.size() != all.size()) {
    return InvalidArgument("there are ", all.size(), " checkpoints and ",
                           state.all_model_checkpoint_timestamps.size(), " timestamps");
  }
  for (const std::string& path : all) WEIR_RETURN_IF_ERROR(CheckStatePath(path));
  const auto written = [&](const std::string& path) {
    return IsAbsolute(path) && !relative ? path : RelativeTo(path, directory);
  };
  proto::CheckpointState p;
  p.set_model_checkpoint_path(written(state.model_checkpoint_path));
  for (const std::string& path : all) p.add_all_model_checkpoint_paths(written(path));
  for (const double t : state.all_model_checkpoint_timestamps)
    p.add_all_model_checkpoint_timestamps(t);
  p.set_last_preserved_timestamp(state.last_preserved_timestamp);
  return p;
}

}  // namespace

absl::Status WriteCheckpointState(const std::string& directory, CheckpointState state,
                                  bool relative, const std::string& filename,
                                  Durability durability) {
  WEIR_ASSIGN_OR_RETURN(const proto::CheckpointState p,
                        ToProto(directory, std::move(state), relative));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WriteLock> lock, LockState(directory, filename));
  return WriteFileAtomically(JoinPath(directory, filename), PrintTextProto(p), durability);
}

absl::Status ChangeCheckpointState(const std::string& directory,
                                   absl::FunctionRef<bool(CheckpointState*)> change) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WriteLock> lock, LockState(directory, kStateFile));
  WEIR_ASSIGN_OR_RETURN(CheckpointState state, ReadCheckpointState(directory, kStateFile));
  if (!change(&state)) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const proto::CheckpointState p,
                        ToProto(directory, std::move(state), /*relative=*/true));
  return WriteFileAtomically(JoinPath(directory, kStateFile), PrintTextProto(p));
}

bool CheckpointExists(const std::string& prefix) {
  if (Files().Exists(prefix + ".index")) return true;
  const auto found = MatchFiles(prefix);
  return found.ok() && std::any_of(found->begin(), found->end(), [](const std::string& path) {
           return !Files().IsDirectory(path);
         });
}

namespace {

// Returns the prefixes of the V2 checkpoints in a directory, sorted.
std::vector<std::string> CheckpointsIn(const std::string& directory) {
  std::vector<std::string> prefixes;
  const absl::StatusOr<std::vector<std::string>> names = Files().List(directory);
  if (!names.ok()) return prefixes;
  for (const std::string& name : *names) {
    absl::string_view prefix = name;
    if (absl::ConsumeSuffix(&prefix, ".index")) prefixes.push_back(JoinPath(directory, prefix));
  }
  std::sort(prefixes.begin(), prefixes.end());
  return prefixes;
}

}  // namespace

absl::StatusOr<std::string> LatestCheckpoint(const std::string& directory,
                                             const std::string& filename) {
  WEIR_ASSIGN_OR_RETURN(const CheckpointState state, ReadCheckpointState(directory, filename));
  if (CheckpointExists(state.model_checkpoint_path)) return state.model_checkpoint_path;
  const std::string moved = JoinPath(directory, BaseName(state.model_checkpoint_path));
  if (CheckpointExists(moved)) return moved;
  const std::vector<std::string> others = CheckpointsIn(directory);
  return NotFound(JoinPath(directory, filename), " names the checkpoint ",
                  state.model_checkpoint_path, ", which is not there",
                  others.empty() ? "" : "; these are: ", absl::StrJoin(others, ", "));
}

namespace {

// Returns a prefix without the numbers of V1 shards.
std::string WithoutShards(const std::string& prefix) {
  static const RE2* const kShards = new RE2("-[0-9?]+-of-[0-9]+$");
  std::string base(prefix);
  RE2::Replace(&base, *kShards, "");
  return base;
}

}  // namespace

std::string MetaGraphPath(const std::string& prefix) { return WithoutShards(prefix) + ".meta"; }

std::string PinPath(const std::string& prefix) { return WithoutShards(prefix) + ".pin"; }

std::string MetricPath(const std::string& prefix) { return WithoutShards(prefix) + ".metric"; }

std::string ResumePath(const std::string& prefix) { return WithoutShards(prefix) + ".resume"; }

bool IsPinned(const std::string& prefix) { return Files().Exists(PinPath(prefix)); }

namespace {

absl::StatusOr<std::vector<std::string>> BundleFiles(const std::string& prefix) {
  std::vector<std::string> paths = {prefix + ".index", prefix + ".index.previous"};
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> names, Files().List(DirectoryOf(prefix)));
  const std::string data = absl::StrCat(BaseName(prefix), ".data-");
  for (const std::string& name : names) {
    if (name.compare(0, data.size(), data) == 0)
      paths.push_back(JoinPath(DirectoryOf(prefix), name));
  }
  return paths;
}

// Returns the file of that name, or the shards that match "m-7-?????-of-00002".
absl::StatusOr<std::vector<std::string>> V1Files(const std::string& prefix) {
  if (Files().Exists(prefix) || !absl::StrContains(prefix, "-\?\?\?\?\?-of-"))
    return std::vector<std::string>{prefix};
  return MatchFiles(prefix);
}

}  // namespace

absl::Status RemoveCheckpoint(const std::string& prefix, int version) {
  WEIR_ASSIGN_OR_RETURN(std::vector<std::string> paths,
                        version < 2 ? V1Files(prefix) : BundleFiles(prefix));
  paths.push_back(MetaGraphPath(prefix));
  paths.push_back(MetricPath(prefix));
  paths.push_back(ResumePath(prefix));
  for (const std::string& path : paths) {
    const absl::Status removed = Files().Remove(path);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  return absl::OkStatus();
}

}  // namespace weir
