#include "weir/tools/ckpt/npz_file.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "weir/core/io/file.h"
#include "weir/core/io/npy.h"
#include "weir/tools/ckpt/array_reader.h"
#include "weir/tools/ckpt/new_file.h"
#include "weir/tools/lib/npz.h"

namespace weir::tools {

namespace {

class NpzFileReader final : public ArrayReader {
 public:
  using ArrayReader::ArrayReader;

  absl::Status Open() {
    WEIR_ASSIGN_OR_RETURN(file_, Files().Open(path()));
    const absl::StatusOr<std::vector<NpzMember>> members = ListNpz(*file_);
    if (!members.ok()) return Annotate(members.status(), path());
    for (const NpzMember& member : *members) WEIR_RETURN_IF_ERROR(AddArray(member));
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Read(absl::string_view name) override {
    WEIR_RETURN_IF_ERROR(Find(name).status());
    const Array& array = arrays_.find(name)->second;
    if (!array.is_read_whole) return ArrayReader::Read(name);
    return ReadNpzMember(*file_, array.member, Describe(array.member));
  }

  absl::StatusOr<std::unique_ptr<TensorStream>> Stream(absl::string_view name) override {
    WEIR_RETURN_IF_ERROR(Find(name).status());
    const Array& array = arrays_.find(name)->second;
    if (array.is_read_whole) return CheckpointReader::Stream(name);
    NpyHeader header;
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<TensorStream> stream, OpenArray(array.member, &header));
    return std::make_unique<NpyStream>(header, std::move(stream));
  }

 private:
  struct Array {
    NpzMember member;
    bool is_read_whole = false;  // strings, and arrays in Fortran's order
  };

  std::string Describe(const NpzMember& member) const {
    return absl::StrCat(path(), ": array '", member.name, "'");
  }

  // Returns the bytes after the header.
  absl::StatusOr<std::unique_ptr<TensorStream>> OpenArray(const NpzMember& member,
                                                          NpyHeader* header) const {
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<TensorStream> stream,
                          OpenZipMember(*file_, member.file, Describe(member)));
    WEIR_ASSIGN_OR_RETURN(*header, ReadNpyHeader(*stream, member.file.bytes, Describe(member)));
    return stream;
  }

  absl::Status AddArray(const NpzMember& member) {
    NpyHeader header;
    WEIR_RETURN_IF_ERROR(OpenArray(member, &header).status());
    const bool is_bfloat16 = member.is_bfloat16 && header.dtype == DT_UINT16;
    arrays_[member.name] = {member, !IsPlain(header.dtype) || header.fortran_order};
    return Add(member.name, is_bfloat16 ? DT_BFLOAT16 : header.dtype, header.shape);
  }

  std::unique_ptr<ReadableFile> file_;
  std::map<std::string, Array, std::less<>> arrays_;
};

absl::Status WriteArchive(const std::string& path, const Output& output, ProgressBar& progress) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ZipWriter> zip, ZipWriter::Create(path));
  for (const OutputTensor& tensor : output.tensors) {
    const std::string header = SerializeNpyHeader(tensor.dtype, tensor.shape);
    const auto elements = static_cast<uint64_t>(BytesOf(tensor.dtype, tensor.shape));
    WEIR_RETURN_IF_ERROR(AddNpzMember(*zip, tensor.name, tensor.dtype, header.size() + elements,
                                      [&](ZipWriter::Append append) -> absl::Status {
                                        WEIR_RETURN_IF_ERROR(append(header));
                                        return CopyElements(tensor, append);
                                      }));
    progress.Add(1);
  }
  return zip->Close();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenNpz(const std::string& path, Metadata*) {
  auto reader = std::make_unique<NpzFileReader>(path);
  WEIR_RETURN_IF_ERROR(reader->Open());
  return reader;
}

bool IsNpz(const ReadableFile& file) {
  if (!BeginsWith(file, "PK")) return false;
  const absl::StatusOr<std::vector<NpzMember>> members = ListNpz(file);
  return members.ok() && !members->empty();
}

bool NpzHolds(DataType dtype) {
  return dtype == DT_BOOL || IsInteger(dtype) || IsFloating(dtype) || IsComplex(dtype);
}

absl::Status CheckNpzTensor(const OutputTensor& tensor) {
  constexpr size_t kMaxNameBytes = 60000;  // a zip archive has two bytes for the length
  const std::string& name = tensor.name;
  const bool has_zero = name.find('\0') != std::string::npos;
  if (!has_zero && name.size() <= kMaxNameBytes && !absl::EndsWith(name, ".bf16"))
    return absl::OkStatus();
  return InvalidArgument("tensor name '", name.substr(0, kMaxNameBytes),
                         "' cannot be that of an array in a .npz file; rename the tensor with "
                         "--rename or exclude it with --drop");
}

absl::Status WriteNpz(const std::string& path, const Output& output, ProgressBar& progress) {
  return WriteNewFile(path, [&](const std::string& temporary) {
    return WriteArchive(temporary, output, progress);
  });
}

}  // namespace weir::tools
