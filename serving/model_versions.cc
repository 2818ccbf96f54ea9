#include "weir/serving/model_versions.h"

#include <new>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"

namespace weir::serving {
namespace {

constexpr size_t kMaxEnded = 20;  // unloaded versions whose states are kept for clients

// Whether a load that failed may succeed later, although the directory stays the same.
bool MayPass(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kFailedPrecondition:
      return false;
    default:
      return true;
  }
}

}  // namespace

void ModelVersions::Look(std::chrono::milliseconds settle) {
  absl::StatusOr<std::map<int64_t, std::string>> directories = ListVersions(config_.base_path);
  error_ = directories.status();
  if (directories.ok()) Merge(*directories, settle);
}

void ModelVersions::Merge(const std::map<int64_t, std::string>& directories,
                          std::chrono::milliseconds settle) {
  for (auto& [number, version] : versions_) {
    if (directories.count(number) == 0) version.directory.clear();
  }
  // The largest first: once there are enough, the others need not be looked at.
  for (auto it = directories.rbegin(); it != directories.rend(); ++it) {
    if (MayBeWanted(it->first)) Update(versions_[it->first], it->second, settle);
  }
}

bool ModelVersions::MayBeWanted(int64_t number) const {
  const auto known = versions_.find(number);
  if (known != versions_.end() && known->second.loaded != nullptr) return true;
  switch (config_.versions.kind) {
    case VersionPolicy::Kind::kSpecific:
      return absl::c_linear_search(config_.versions.versions, number);
    case VersionPolicy::Kind::kLatest: {
      const std::vector<int64_t> wanted = Wanted();
      return static_cast<int64_t>(wanted.size()) < config_.versions.num_versions ||
             number >= wanted.back();
    }
    case VersionPolicy::Kind::kAll:
      break;
  }
  return true;
}

// A file system whose clock is not this machine's gives times of change in the future. So a
// directory is complete also if it has looked the same for a while by this machine's clock.
void ModelVersions::Update(Version& version, const std::string& directory,
                           std::chrono::milliseconds settle) {
  if (version.loaded != nullptr && version.directory == directory) return;
  const absl::StatusOr<DirectorySnapshot> snapshot = TakeSnapshot(directory);
  const Clock::time_point now = Clock::now();
  version.is_settled = false;
  if (!snapshot.ok()) {
    version.directory = directory;
    version.error = snapshot.status();
    return;
  }
  if (version.directory != directory || version.snapshot.digest != snapshot->digest) {
    version.directory = directory;
    version.seen = now;
    version.attempts = 0;
    version.next_attempt = {};
    if (version.loaded == nullptr && version.state != VersionState::kUnloading)
      version.state = VersionState::kStart;
  }
  version.snapshot = *snapshot;
  version.is_settled = std::chrono::system_clock::now() - snapshot->changed >= settle ||
                       now - version.seen >= settle;
}

std::vector<int64_t> ModelVersions::Wanted() const {
  std::vector<int64_t> wanted;
  const auto is_specific = [&](int64_t number) {
    return absl::c_linear_search(config_.versions.versions, number);
  };
  for (const auto& [number, version] : versions_) {
    const bool is_there = !version.directory.empty();
    if (!is_there || !(version.is_settled || version.loaded != nullptr)) continue;
    switch (config_.versions.kind) {
      case VersionPolicy::Kind::kLatest:
        if (static_cast<int64_t>(wanted.size()) == config_.versions.num_versions) return wanted;
        break;
      case VersionPolicy::Kind::kAll:
        break;
      case VersionPolicy::Kind::kSpecific:
        if (!is_specific(number)) continue;
        break;
    }
    wanted.push_back(number);
  }
  return wanted;
}

int64_t ModelVersions::NextToLoad(Clock::time_point now) const {
  for (const int64_t number : Wanted()) {
    const Version& version = versions_.at(number);
    const bool has_failed = version.state == VersionState::kEnd && !version.error.ok();
    if (version.loaded == nullptr && version.is_settled && !has_failed &&
        now >= version.next_attempt)
      return number;
  }
  return -1;
}

absl::Status ModelVersions::CheckMemory(int64_t number, int64_t bytes) const {
  if (config_.max_memory_bytes == 0) return absl::OkStatus();
  int64_t used = 0;
  std::vector<int64_t> users;
  for (const auto& [other, version] : versions_) {
    if (other == number || version.memory_bytes == 0) continue;
    used += version.memory_bytes;
    users.push_back(other);
  }
  if (bytes <= config_.max_memory_bytes - used) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "model '", config_.name, "', version ", number, ", asks for ", bytes,
      " bytes of memory; the model may use ", config_.max_memory_bytes, ", and ", used,
      " are in use", users.empty() ? "" : absl::StrCat(" by versions ", absl::StrJoin(users, ", ")),
      ". Raise the limit, which must hold the old version beside the new one"));
}

// The files are about as large as the variables and constants. So a version that cannot fit is
// refused before its memory is allocated, and measured once it is there.
absl::StatusOr<std::shared_ptr<const LoadedVersion>> ModelVersions::TryLoad(
    int64_t number, const ModelManagerOptions& options,
    const std::shared_ptr<VersionPool>& pool) const {
  const Version& version = versions_.at(number);
  WEIR_RETURN_IF_ERROR(CheckMemory(number, version.snapshot.bytes));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<const Servable> servable,
                        Servable::Load(config_.name, number, version.directory, options.servable));
  WEIR_RETURN_IF_ERROR(CheckMemory(number, servable->memory_bytes()));
  auto loaded = std::make_unique<const LoadedVersion>(std::move(servable), config_.batching);
  if (options.servable.warm_up) WEIR_RETURN_IF_ERROR(loaded->WarmUpBatches(version.directory));
  return VersionPool::Share(pool, std::move(loaded));
}

void ModelVersions::Load(int64_t number, const ModelManagerOptions& options,
                         const std::shared_ptr<VersionPool>& pool) {
  absl::StatusOr<std::shared_ptr<const LoadedVersion>> loaded = absl::UnknownError("");
  try {
    loaded = TryLoad(number, options, pool);
  } catch (const std::bad_alloc&) {
    loaded = absl::ResourceExhaustedError(
        absl::StrCat("out of memory when loading model '", config_.name, "', version ", number,
                     ", whose files "
                     "have ",
                     versions_.at(number).snapshot.bytes, " bytes"));
  }
  Version& version = versions_.at(number);
  version.error = loaded.status();
  if (loaded.ok()) {
    version.loaded = *std::move(loaded);
    version.memory_bytes = version.loaded->servable().memory_bytes();
    version.state = VersionState::kAvailable;
    return;
  }
  const bool is_final = ++version.attempts > options.max_load_retries || !MayPass(version.error);
  version.state = is_final ? VersionState::kEnd : VersionState::kLoading;
  version.next_attempt = Clock::now() + options.load_retry_interval;
}

void ModelVersions::Unload() {
  const std::vector<int64_t> wanted = Wanted();
  const bool is_specific = config_.versions.kind == VersionPolicy::Kind::kSpecific;
  size_t missing = is_specific ? config_.versions.versions.size() : wanted.size();
  for (const int64_t number : wanted) missing -= versions_.at(number).loaded != nullptr;
  for (auto& [number, version] : versions_) {
    if (version.loaded == nullptr || absl::c_linear_search(wanted, number)) continue;
    if (missing > 0) {
      --missing;
      continue;
    }
    version.unloading = version.loaded;
    version.loaded.reset();
    version.state = VersionState::kUnloading;
  }
}

void ModelVersions::Sweep() {
  size_t ended = 0;
  for (auto it = versions_.begin(); it != versions_.end();) {
    Version& version = it->second;
    if (version.loaded == nullptr && version.unloading.expired()) {
      version.memory_bytes = 0;
      if (version.state == VersionState::kUnloading) version.state = VersionState::kEnd;
    }
    const bool has_ended = version.state == VersionState::kEnd && version.error.ok();
    const bool is_over = version.loaded == nullptr && version.memory_bytes == 0 &&
                         (has_ended || version.directory.empty());
    const bool is_old = is_over && ++ended > kMaxEnded;
    it = is_old ? versions_.erase(it) : std::next(it);
  }
}

bool ModelVersions::HasAvailable() const {
  return absl::c_any_of(versions_, [](const auto& v) { return v.second.loaded != nullptr; });
}

bool ModelVersions::IsPending() const {
  const auto is_unsettled = [&](const auto& entry) {
    const Version& version = entry.second;
    return !version.directory.empty() && !version.is_settled && version.loaded == nullptr &&
           MayBeWanted(entry.first);
  };
  if (absl::c_any_of(versions_, is_unsettled)) return true;
  return absl::c_any_of(Wanted(), [&](int64_t number) {
    const VersionState state = versions_.at(number).state;
    return state == VersionState::kStart || state == VersionState::kLoading;
  });
}

absl::Status ModelVersions::Failure() const {
  if (!error_.ok()) return error_;
  for (const int64_t number : Wanted()) {
    const absl::Status& error = versions_.at(number).error;
    if (error.ok()) continue;
    return Annotate(error, absl::StrCat("model '", config_.name, "', version ", number));
  }
  return absl::OkStatus();
}

}  // namespace weir::serving
