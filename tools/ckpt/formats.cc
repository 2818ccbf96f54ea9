#include "weir/tools/ckpt/formats.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "weir/core/io/file.h"
#include "weir/tools/ckpt/checkpoint_path.h"
#include "weir/tools/ckpt/gguf_file.h"
#include "weir/tools/ckpt/hdf5_file.h"
#include "weir/tools/ckpt/keras_file.h"
#include "weir/tools/ckpt/npy_folder.h"
#include "weir/tools/ckpt/npz_file.h"
#include "weir/tools/ckpt/safetensors_file.h"

namespace weir::tools {

namespace {

absl::Status AnyTensor(const OutputTensor&) { return absl::OkStatus(); }

bool BundleHolds(DataType dtype) { return IsPlain(dtype) || dtype == DT_STRING; }

absl::Status WriteBundle(const std::string& path, const Output& output, ProgressBar& progress) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<BundleWriter> writer, BundleWriter::Create(path));
  writer->Reserve(static_cast<uint64_t>(BytesOf(output)));
  for (const OutputTensor& tensor : output.tensors) {
    if (IsPlain(tensor.dtype)) {
      WEIR_RETURN_IF_ERROR(writer->Begin(tensor.name, tensor.dtype, tensor.shape));
      WEIR_RETURN_IF_ERROR(
          CopyElements(tensor, [&](absl::string_view piece) { return writer->Append(piece); }));
    } else {
      WEIR_ASSIGN_OR_RETURN(const Tensor whole, ReadWhole(tensor));
      WEIR_RETURN_IF_ERROR(writer->Add(tensor.name, whole));
    }
    progress.Add(1);
  }
  return writer->Finish();
}

// What TensorFlow writes; it has no 16-bit quantized integers there.
bool V1Holds(DataType dtype) {
  return dtype == DT_STRING ||
         DispatchType(
             dtype,
             List<float, double, int32_t, uint8_t, int16_t, int8_t, int64_t, uint16_t, bool, half,
                  qint8, quint8, qint32, std::complex<float>, std::complex<double>>{},
             []<class T>() {});
}

absl::Status WriteV1(const std::string& path, const Output& output, ProgressBar& progress) {
  std::vector<CheckpointTensor> tensors;
  for (const OutputTensor& tensor : output.tensors)
    tensors.push_back({tensor.name, tensor.dtype, tensor.shape, {}});
  return WriteCheckpointV1(path, tensors, [&](size_t i) {
    progress.Add(1);
    return ReadWhole(output.tensors[i]);
  });
}

// NumPy's types, and bfloat16 by a convention of names.
bool NpyHolds(DataType dtype) {
  return dtype == DT_STRING || dtype == DT_BOOL || IsInteger(dtype) || IsFloating(dtype) ||
         IsComplex(dtype);
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenTensorFlow(const std::string& prefix,
                                                                 Metadata*) {
  return CheckpointReader::Open(prefix);
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenFolder(const std::string& path, Metadata*) {
  return OpenNpyFolder(path);
}

absl::Status CheckArrayFile(const OutputTensor& tensor) { return CheckFileName(tensor.name); }

constexpr CheckpointFormat kFormats[] = {
    {"v2", "", true, BundleHolds, AnyTensor, nullptr, OpenTensorFlow, WriteBundle},
    {"v1", "", true, V1Holds, AnyTensor, nullptr, OpenTensorFlow, WriteV1},
    {"npy", "", false, NpyHolds, CheckArrayFile, nullptr, OpenFolder, WriteNpyFolder},
    {"npz", ".npz", true, NpzHolds, CheckNpzTensor, IsNpz, OpenNpz, WriteNpz},
    {"safetensors", ".safetensors", false, SafetensorsHolds, CheckSafetensor, nullptr,
     OpenSafetensors, WriteSafetensors},
    {"gguf", ".gguf", false, GgufHolds, CheckGgufTensor, IsGguf, OpenGguf, WriteGguf},
    {"h5", ".h5", false, Hdf5Holds, CheckHdf5Tensor, IsHdf5, OpenHdf5, WriteHdf5},
    {"keras", ".keras", true, Hdf5Holds, CheckHdf5Tensor, IsKeras, OpenKeras, WriteKeras},
};

// Returns the format that the contents of a file tell; null if there is none.
const CheckpointFormat* FormatOfContents(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = Files().Open(path);
  if (!file.ok()) return nullptr;
  const auto* const found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const auto& format) {
        return format.recognizes != nullptr && format.recognizes(**file);
      });
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace

const CheckpointFormat* FindFormat(absl::string_view name) {
  const auto* const found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                         [&](const auto& format) { return format.name == name; });
  return found == std::end(kFormats) ? nullptr : found;
}

const CheckpointFormat& FormatOfPath(absl::string_view path) {
  for (const CheckpointFormat& format : kFormats) {
    if (!format.ending.empty() && absl::EndsWith(path, format.ending)) return format;
  }
  return kFormats[0];
}

std::string FormatNames() {
  return absl::StrJoin(kFormats, ", ", [](std::string* out, const CheckpointFormat& format) {
    absl::StrAppend(out, format.name);
  });
}

absl::StatusOr<CheckpointLocation> LocateCheckpoint(const std::string& path, std::ostream* notes) {
  if (Files().Exists(path) && !Files().IsDirectory(path)) {
    const CheckpointFormat* const by_contents = FormatOfContents(path);
    const CheckpointFormat& by_ending = FormatOfPath(path);
    if (by_contents != nullptr) return CheckpointLocation{path, by_contents};
    if (!by_ending.ending.empty()) return CheckpointLocation{path, &by_ending};
  }
  const absl::StatusOr<std::string> prefix = CheckpointPrefix(path, notes);
  if (prefix.ok()) {
    const bool is_v2 = Files().Exists(*prefix + ".index");
    return CheckpointLocation{*prefix, FindFormat(is_v2 ? "v2" : "v1")};
  }
  const bool is_folder = absl::IsNotFound(prefix.status()) && HasArrayFiles(path);
  if (!is_folder) return prefix.status();
  return CheckpointLocation{path, FindFormat("npy")};
}

absl::StatusOr<OpenedCheckpoint> OpenCheckpoint(const std::string& path, std::ostream* notes) {
  WEIR_ASSIGN_OR_RETURN(const CheckpointLocation location, LocateCheckpoint(path, notes));
  OpenedCheckpoint opened{location.path, location.format};
  WEIR_ASSIGN_OR_RETURN(opened.reader, location.format->open(location.path, &opened.metadata));
  return opened;
}

}  // namespace weir::tools
