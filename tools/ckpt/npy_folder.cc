#include "weir/tools/ckpt/npy_folder.h"

#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weir/core/io/file.h"
#include "weir/tools/ckpt/array_reader.h"
#include "weir/tools/ckpt/new_folder.h"
#include "weir/tools/lib/value_file.h"

namespace weir::tools {

namespace {

// Longest first: "w.bf16.npy" is the tensor w.
constexpr absl::string_view kEndings[] = {".bf16.npy", ".npy", ".json"};

bool IsArrayFile(absl::string_view path) {
  return absl::EndsWith(path, ".npy") || absl::EndsWith(path, ".json");
}

absl::string_view EndingOf(DataType dtype) {
  return dtype == DT_STRING ? ".json" : dtype == DT_BFLOAT16 ? ".bf16.npy" : ".npy";
}

// Calls visit(path, path below the folder) for each regular file.
template <class Visit>
absl::Status ForEachFile(const std::string& folder, Visit visit) {
  std::error_code error;
  auto file = std::filesystem::recursive_directory_iterator(folder, error);
  for (; !error && file != std::filesystem::recursive_directory_iterator(); file.increment(error)) {
    if (!file->is_regular_file(error)) continue;
    const std::string below = file->path().lexically_relative(folder).generic_string();
    WEIR_RETURN_IF_ERROR(visit(file->path().string(), below));
  }
  if (error) return NotFound("cannot list the files of ", folder, ": ", error.message());
  return absl::OkStatus();
}

class NpyFolderReader final : public ArrayReader {
 public:
  using ArrayReader::ArrayReader;

  absl::Status Open() {
    return ForEachFile(path(), [&](const std::string& file, absl::string_view below) {
      for (const absl::string_view ending : kEndings) {
        if (absl::ConsumeSuffix(&below, ending)) return AddFile(file, std::string(below));
      }
      return absl::OkStatus();
    });
  }

  absl::StatusOr<Tensor> Read(absl::string_view name) override {
    WEIR_RETURN_IF_ERROR(Find(name).status());
    return ReadValueFile(files_.find(name)->second);
  }

  absl::StatusOr<std::unique_ptr<TensorStream>> Stream(absl::string_view name) override {
    WEIR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, Find(name));
    if (!IsPlain(tensor.dtype)) return CheckpointReader::Stream(name);
    WEIR_ASSIGN_OR_RETURN(OpenedFile opened, OpenFile(files_.find(name)->second));
    if (opened.header.fortran_order) return CheckpointReader::Stream(name);
    return std::make_unique<NpyFileStream>(std::move(opened));
  }

 private:
  // A .npy file, and its bytes after the header.
  struct OpenedFile {
    std::unique_ptr<ReadableFile> file;
    std::unique_ptr<TensorStream> elements;
    NpyHeader header;
  };

  // Keeps its file open.
  class NpyFileStream final : public TensorStream {
   public:
    explicit NpyFileStream(OpenedFile opened)
        : file_(std::move(opened.file)), stream_(opened.header, std::move(opened.elements)) {}
    absl::Status Read(size_t size, char* out) override { return stream_.Read(size, out); }

   private:
    const std::unique_ptr<ReadableFile> file_;
    NpyStream stream_;
  };

  static absl::StatusOr<OpenedFile> OpenFile(const std::string& path) {
    OpenedFile opened;
    WEIR_ASSIGN_OR_RETURN(opened.file, Files().Open(path));
    const uint64_t size = opened.file->size();
    WEIR_ASSIGN_OR_RETURN(opened.elements, FileStream::Open(*opened.file, 0, size));
    WEIR_ASSIGN_OR_RETURN(opened.header, ReadNpyHeader(*opened.elements, size, path));
    return opened;
  }

  absl::Status AddFile(const std::string& path, const std::string& name) {
    const auto [at, is_new] = files_.emplace(name, path);
    if (!is_new) {
      return InvalidArgument("two files for tensor '", name, "': ", at->second, " and ", path,
                             "; remove one of them");
    }
    if (absl::EndsWith(path, ".json")) {
      WEIR_ASSIGN_OR_RETURN(const Tensor tensor, ReadValueFile(path));
      return Add(name, tensor.dtype(), tensor.shape());
    }
    WEIR_ASSIGN_OR_RETURN(const OpenedFile opened, OpenFile(path));
    const NpyHeader& header = opened.header;
    const bool is_bfloat16 = header.dtype == DT_UINT16 && absl::EndsWith(path, ".bf16.npy");
    return Add(name, is_bfloat16 ? DT_BFLOAT16 : header.dtype, header.shape);
  }

  std::map<std::string, std::string, std::less<>> files_;  // by name
};

// Writes a file whose folder NewFolder::Commit syncs.
absl::Status WriteNpyFile(const std::string& path, const OutputTensor& tensor) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> created, Files().Create(path));
  BufferedFile file(std::move(created));
  WEIR_RETURN_IF_ERROR(file.Append(SerializeNpyHeader(tensor.dtype, tensor.shape)));
  WEIR_RETURN_IF_ERROR(
      CopyElements(tensor, [&](absl::string_view piece) { return file.Append(piece); }));
  WEIR_RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenNpyFolder(const std::string& path) {
  auto reader = std::make_unique<NpyFolderReader>(path);
  WEIR_RETURN_IF_ERROR(reader->Open());
  return reader;
}

absl::Status CheckFileName(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  if (absl::EndsWith(name, ".bf16")) {
    return InvalidArgument("tensor name '", name,
                           "' ends as the files of bfloat16 arrays do; rename the tensor with "
                           "--rename or exclude it with --drop");
  }
  for (const std::string& part : parts) {
    if (!part.empty() && part != "." && part != ".." && !absl::StrContains(part, '\0')) continue;
    return InvalidArgument("tensor name '", name,
                           "' is not a valid file name; rename the tensor with --rename or "
                           "exclude it with --drop");
  }
  return absl::OkStatus();
}

absl::Status WriteNpyFolder(const std::string& path, const Output& output, ProgressBar& progress) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<NewFolder> folder, NewFolder::Create(path));
  for (const OutputTensor& tensor : output.tensors) {
    const std::string file = absl::StrCat(folder->path(), "/", tensor.name, EndingOf(tensor.dtype));
    WEIR_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(file)));
    if (tensor.dtype == DT_STRING) {
      WEIR_ASSIGN_OR_RETURN(const Tensor strings, ReadWhole(tensor));
      WEIR_RETURN_IF_ERROR(WriteValueFile(file, strings));
    } else {
      WEIR_RETURN_IF_ERROR(WriteNpyFile(file, tensor));
    }
    progress.Add(1);
  }
  return folder->Commit();
}

bool HasArrayFiles(const std::string& path) {
  // The first one ends the walk.
  return absl::IsAlreadyExists(ForEachFile(path, [](const std::string& file, absl::string_view) {
    return IsArrayFile(file) ? AlreadyExists(file) : absl::OkStatus();
  }));
}

bool IsNpyFolder(const std::string& path) {
  return ForEachFile(path,
                     [](const std::string& file, absl::string_view) {
                       return IsArrayFile(file) ? absl::OkStatus() : FailedPrecondition(file);
                     })
      .ok();
}

}  // namespace weir::tools
