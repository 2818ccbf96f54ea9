#include "weir/tools/ckpt/hdf5_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "weir/core/io/file.h"
#include "weir/tools/ckpt/array_reader.h"
#include "weir/tools/ckpt/hdf5_attributes.h"
#include "weir/tools/ckpt/hdf5_process.h"
#include "weir/tools/ckpt/new_file.h"

namespace weir::tools {

namespace {

constexpr absl::string_view kSignature("\x89HDF\r\n\x1a\n", 8);

// The elements of a dataset.
class Hdf5Stream final : public TensorStream {
 public:
  Hdf5Stream(Hdf5Process& process, size_t tensor) : process_(process), tensor_(tensor) {}

  absl::Status Read(size_t size, char* out) override {
    const CheckpointTensor& tensor = process_.contents().tensors[tensor_];
    const size_t width = ElementSize(tensor.dtype);
    const auto total = static_cast<uint64_t>(tensor.shape.num_elements());
    if (size / width > total - first_) return OutOfRange("the tensor is at its end");
    for (size_t done = 0; done < size;) {
      const size_t piece = std::min(kPieceBytes, size - done);
      const size_t count = piece / width;
      WEIR_RETURN_IF_ERROR(Annotate(process_.Read(tensor_, first_, count, out + done),
                                    absl::StrCat("tensor '", tensor.name, "'")));
      first_ += count;
      done += piece;
    }
    return absl::OkStatus();
  }

 private:
  Hdf5Process& process_;
  const size_t tensor_;
  uint64_t first_ = 0;  // element that is read next
};

class Hdf5FileReader final : public ArrayReader {
 public:
  Hdf5FileReader(std::string path, std::unique_ptr<ReadableFile> file)
      : ArrayReader(std::move(path)), file_(std::move(file)) {}

  absl::Status Open(uint64_t offset, uint64_t size, Metadata* metadata) {
    WEIR_ASSIGN_OR_RETURN(process_, Hdf5Process::Start({*file_, offset, size}, path()));
    const Hdf5Contents& contents = process_->contents();
    for (size_t i = 0; i < contents.tensors.size(); ++i) {
      const CheckpointTensor& tensor = contents.tensors[i];
      WEIR_RETURN_IF_ERROR(Add(tensor.name, tensor.dtype, tensor.shape));
      indexes_[tensor.name] = i;
    }
    metadata->insert(metadata->end(), contents.metadata.begin(), contents.metadata.end());
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<TensorStream>> Stream(absl::string_view name) override {
    WEIR_RETURN_IF_ERROR(Find(name).status());
    return std::make_unique<Hdf5Stream>(*process_, indexes_.find(name)->second);
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
  std::unique_ptr<Hdf5Process> process_;
  std::map<std::string, size_t, std::less<>> indexes_;  // in the process's contents
};

// ---- writing

// A dataset cannot also be a group: "w" and "w/Adam" exclude each other.
absl::Status CheckPaths(const Output& output) {
  std::set<absl::string_view> names;
  for (const OutputTensor& tensor : output.tensors) names.insert(tensor.name);
  for (const absl::string_view name : names) {
    for (size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
      if (!names.contains(name.substr(0, slash))) continue;
      return InvalidArgument("tensors '", name.substr(0, slash), "' and '", name,
                             "': an HDF5 file cannot have a tensor below another; rename one with "
                             "--rename or exclude it with --drop");
    }
  }
  return absl::OkStatus();
}

Hdf5Handle CreateDataset(hid_t file, const OutputTensor& tensor, hid_t type) {
  const absl::Span<const int64_t> dims = tensor.shape.dims();
  const std::vector<hsize_t> extent(dims.begin(), dims.end());
  const Hdf5Handle space(dims.empty()
                             ? H5Screate(H5S_SCALAR)
                             : H5Screate_simple(tensor.shape.rank(), extent.data(), nullptr),
                         H5Sclose);
  const Hdf5Handle link(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(link.get(), 1);
  const Hdf5Handle create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_fill_time(create.get(), H5D_FILL_TIME_NEVER);
  H5Pset_obj_track_times(create.get(), false);
  return {H5Dcreate2(file, tensor.name.c_str(), type, space.get(), link.get(), create.get(),
                     H5P_DEFAULT),
          H5Dclose};
}

absl::Status WriteDataset(hid_t file, const OutputTensor& tensor) {
  const Hdf5Handle type = Hdf5FileType(tensor.dtype);
  const Hdf5Handle dataset = CreateDataset(file, tensor, type.get());
  if (!dataset.ok())
    return Internal("cannot create dataset '", tensor.name, "': ", LastHdf5Error());
  if (tensor.dtype == DT_BFLOAT16) WEIR_RETURN_IF_ERROR(MarkBfloat16(dataset.get()));
  const size_t width = ElementSize(tensor.dtype);
  uint64_t first = 0;
  return CopyElements(tensor, [&](absl::string_view piece) {
    const uint64_t count = piece.size() / width;
    const absl::Status status =
        TransferRange(dataset.get(), tensor.shape.dims(), first, count,
                      [&](hid_t memory, hid_t space, uint64_t offset) {
                        return H5Dwrite(dataset.get(), type.get(), memory, space, H5P_DEFAULT,
                                        piece.data() + offset * width);
                      });
    first += count;
    return Annotate(status, absl::StrCat("cannot write dataset '", tensor.name, "'"));
  });
}

}  // namespace

bool IsHdf5(const ReadableFile& file) { return BeginsWith(file, kSignature); }

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenHdf5Part(std::unique_ptr<ReadableFile> file,
                                                               uint64_t offset, uint64_t size,
                                                               const std::string& path,
                                                               Metadata* metadata) {
  auto reader = std::make_unique<Hdf5FileReader>(path, std::move(file));
  WEIR_RETURN_IF_ERROR(reader->Open(offset, size, metadata));
  return reader;
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenHdf5(const std::string& path,
                                                           Metadata* metadata) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, Files().Open(path));
  const uint64_t size = file->size();
  return OpenHdf5Part(std::move(file), 0, size, path, metadata);
}

absl::Status CheckHdf5Tensor(const OutputTensor& tensor) {
  for (const absl::string_view part : absl::StrSplit(tensor.name, '/')) {
    if (!part.empty() && part != "." && part.find('\0') == part.npos) continue;
    return InvalidArgument("tensor name '", tensor.name,
                           "' is not a path in an HDF5 file; rename the tensor with --rename or "
                           "exclude it with --drop");
  }
  if (tensor.shape.rank() <= H5S_MAX_RANK) return absl::OkStatus();
  return InvalidArgument("tensor '", tensor.name, "' has rank ", tensor.shape.rank(),
                         ", but HDF5 has at most ", H5S_MAX_RANK);
}

absl::Status WriteHdf5InPlace(const std::string& path, const Output& output,
                              ProgressBar& progress) {
  WEIR_RETURN_IF_ERROR(CheckPaths(output));
  SilenceHdf5Errors();
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access.get(), false, true);  // the temporary file is locked
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get());
  if (file < 0) return FailedPrecondition("cannot create ", path, ": ", LastHdf5Error());
  absl::Status status;
  for (const OutputTensor& tensor : output.tensors) {
    status = WriteDataset(file, tensor);
    if (!status.ok()) break;
    progress.Add(1);
  }
  if (status.ok()) status = WriteHdf5Attributes(file, output.metadata);
  const herr_t closed = H5Fclose(file);
  WEIR_RETURN_IF_ERROR(status);
  return closed >= 0 ? absl::OkStatus() : Internal("cannot write ", path, ": ", LastHdf5Error());
}

absl::Status WriteHdf5(const std::string& path, const Output& output, ProgressBar& progress) {
  return WriteNewFile(path, [&](const std::string& temporary) {
    return WriteHdf5InPlace(temporary, output, progress);
  });
}

}  // namespace weir::tools
