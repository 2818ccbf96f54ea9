#include "weir/tools/ckpt/resume.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/file.h"
#include "weir/tools/ckpt/new_folder.h"

namespace weir::tools {

namespace {

constexpr int64_t kMinPartBytes = int64_t{1} << 20, kMaxPartBytes = int64_t{1} << 30;
constexpr int64_t kParts = 16;  // of an output between these sizes

void RemoveAll(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

// Returns the regular files of a checkpoint, sorted: those below a folder, or a file and those
// whose names begin with its name and a dot.
std::vector<std::string> FilesOf(const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  if (Files().IsDirectory(path)) {
    auto entry = std::filesystem::recursive_directory_iterator(path, error);
    for (; !error && entry != std::filesystem::recursive_directory_iterator();
         entry.increment(error)) {
      if (entry->is_regular_file(error)) files.push_back(entry->path().string());
    }
  } else {
    const std::string folder = DirectoryOf(path), name(BaseName(path));
    const absl::StatusOr<std::vector<std::string>> names = Files().List(folder);
    for (const std::string& other : names.ok() ? *names : std::vector<std::string>()) {
      const bool is_its = other == name || absl::StartsWith(other, name + ".");
      const std::string file = JoinPath(folder, other);
      if (is_its && !IsTemporaryOrLockName(other) && !Files().IsDirectory(file))
        files.push_back(file);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Describes what is converted: the files of the input, with their sizes and times, and the tensors.
// Two conversions with one description write the same bytes.
std::string DescribePlan(const CheckpointFormat& format, const Output& output,
                         const std::string& input) {
  std::string plan = absl::StrCat("format ", format.name, "\n");
  for (const std::string& file : FilesOf(input)) {
    std::error_code error;
    const auto time = std::filesystem::last_write_time(file, error).time_since_epoch().count();
    absl::StrAppend(&plan, "file ", file, " ", std::filesystem::file_size(file, error), " ",
                    static_cast<int64_t>(time), "\n");
  }
  for (const OutputTensor& tensor : output.tensors) {
    absl::StrAppend(&plan, "tensor ", tensor.name, " ", DataTypeName(tensor.dtype), " ",
                    tensor.shape.ToString(), tensor.allow_overflow ? " overflow" : "");
    for (const TensorSource& source : tensor.sources)
      absl::StrAppend(&plan, " from ", source.name, " ", DataTypeName(source.dtype));
    plan += "\n";
  }
  return plan;
}

// Returns consecutive tensors as outputs, each of about the same size.
std::vector<Output> SplitIntoParts(const Output& output) {
  const int64_t limit = std::clamp(BytesOf(output) / kParts, kMinPartBytes, kMaxPartBytes);
  std::vector<Output> parts;
  int64_t bytes = 0;
  for (const OutputTensor& tensor : output.tensors) {
    if (parts.empty() || bytes >= limit) {
      parts.emplace_back();
      bytes = 0;
    }
    parts.back().tensors.push_back(tensor);
    bytes += BytesOf(tensor.dtype, tensor.shape);
  }
  return parts;
}

// Returns the names, sizes and checksum of the files of a part.
absl::StatusOr<std::string> Summarize(const std::string& part) {
  std::string summary;
  std::vector<char> piece(kPieceBytes);
  for (const std::string& path : FilesOf(part)) {
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, Files().Open(path));
    uint32_t crc = 0;
    for (uint64_t at = 0; at < file->size();) {
      const size_t size = std::min<uint64_t>(piece.size(), file->size() - at);
      WEIR_RETURN_IF_ERROR(file->Read(at, size, piece.data()));
      crc = ExtendCrc32c(crc, piece.data(), size);
      at += size;
    }
    absl::StrAppend(&summary, path.substr(part.size()), " ", file->size(), " ", crc, "\n");
  }
  return summary;
}

class PartsFolder {
 public:
  PartsFolder(const CheckpointFormat& format, absl::string_view path) : format_(format) {
    while (path.size() > 1 && absl::ConsumeSuffix(&path, "/")) continue;
    folder_ = absl::StrCat(path, ".weir-resume");
  }

  const std::string& path() const { return folder_; }

  void Remove() const { RemoveAll(folder_); }

  // Empties the folder unless it has parts of the same plan.
  absl::Status Open(const std::string& plan, std::ostream& notes) {
    const std::string file = JoinPath(folder_, "plan");
    const absl::StatusOr<std::string> found = ReadFile(file);
    if (found.ok() && *found == plan) return absl::OkStatus();
    if (found.ok()) notes << "weir: " << folder_ << " has parts of something else: starting over\n";
    RemoveAll(folder_);
    WEIR_RETURN_IF_ERROR(MakeDirectories(folder_));
    return WriteFileAtomically(file, plan);
  }

  // Whether a part was completely written and is as it was.
  bool Has(size_t i) const {
    const absl::StatusOr<std::string> written = ReadFile(SummaryOf(i));
    if (!written.ok()) return false;
    const absl::StatusOr<std::string> there = Summarize(PathOf(i));
    return there.ok() && *there == *written;
  }

  absl::Status Write(size_t i, const Output& part, ProgressBar& progress) const {
    for (const std::string& file : FilesOf(PathOf(i))) Files().Remove(file).IgnoreError();
    RemoveAll(PathOf(i));
    RemoveAll(SummaryOf(i));
    WEIR_RETURN_IF_ERROR(format_.write(PathOf(i), part, progress));
    WEIR_ASSIGN_OR_RETURN(const std::string summary, Summarize(PathOf(i)));
    return WriteFileAtomically(SummaryOf(i), summary);
  }

  // Joins the first `count` parts, and removes the folder.
  absl::Status Join(size_t count, const std::string& path) const {
    std::vector<std::string> parts;
    for (size_t i = 0; i < count; ++i) parts.push_back(PathOf(i));
    WEIR_RETURN_IF_ERROR(format_.name == "v2" ? MergeBundles(parts, path)
                                              : JoinFolders(parts, path));
    Remove();
    return absl::OkStatus();
  }

 private:
  std::string PathOf(size_t i) const { return JoinPath(folder_, absl::StrFormat("part-%05d", i)); }
  std::string SummaryOf(size_t i) const {
    return JoinPath(folder_, absl::StrFormat("checksums-%05d", i));
  }

  static absl::Status JoinFolders(const std::vector<std::string>& parts, const std::string& path) {
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<NewFolder> joined, NewFolder::Create(path));
    for (const std::string& part : parts) {
      for (const std::string& file : FilesOf(part)) {
        const std::string to = joined->path() + file.substr(part.size());
        WEIR_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(to)));
        WEIR_RETURN_IF_ERROR(Files().Rename(file, to));
      }
    }
    return joined->Commit();
  }

  const CheckpointFormat& format_;
  std::string folder_;
};

}  // namespace

bool CanResume(const CheckpointFormat& format) {
  return format.name == "v2" || format.name == "npy";
}

absl::Status WriteResumable(const CheckpointFormat& format, const std::string& path,
                            const Output& output, const std::string& input, ProgressBar& progress,
                            std::ostream& notes) {
  PartsFolder folder(format, path);
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WriteLock> lock, WriteLock::Acquire(folder.path()));
  WEIR_RETURN_IF_ERROR(folder.Open(DescribePlan(format, output, input), notes));
  const std::vector<Output> parts = SplitIntoParts(output);
  std::vector<bool> has(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) has[i] = folder.Has(i);
  const auto kept = std::count(has.begin(), has.end(), true);
  if (kept > 0)
    notes << "weir: going on: " << kept << " of " << parts.size() << " parts are written\n";
  absl::Status status;
  for (size_t i = 0; i < parts.size() && status.ok(); ++i) {
    if (has[i])
      progress.Add(static_cast<double>(parts[i].tensors.size()));
    else
      status = folder.Write(i, parts[i], progress);
  }
  if (status.ok()) status = folder.Join(parts.size(), path);
  if (status.ok()) return status;
  return absl::Status(
      status.code(), absl::StrCat(status.message(), "; what was written is kept in ", folder.path(),
                                  ": repeat the command to go on"));
}

// Joining moves the files of the parts away.
void RemoveJoinedParts(const CheckpointFormat& format, const std::string& path) {
  const PartsFolder folder(format, path);
  if (!Files().IsDirectory(folder.path()) || folder.Has(0)) return;
  const absl::StatusOr<std::unique_ptr<WriteLock>> lock = WriteLock::Acquire(folder.path());
  if (lock.ok()) folder.Remove();
}

}  // namespace weir::tools
