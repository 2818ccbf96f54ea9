#include "weir/tools/lib/npz.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/core/io/npy.h"

namespace weir::tools {

absl::StatusOr<std::vector<NpzMember>> ListNpz(const ReadableFile& file) {
  WEIR_ASSIGN_OR_RETURN(std::vector<ZipMember> members, ListZip(file));
  std::vector<NpzMember> arrays;
  for (ZipMember& member : members) {
    absl::string_view array = member.name;
    if (!absl::ConsumeSuffix(&array, ".npy")) continue;
    const bool is_bfloat16 = absl::ConsumeSuffix(&array, ".bf16");
    std::string name(array);
    arrays.push_back({std::move(name), is_bfloat16, std::move(member)});
  }
  return arrays;
}

absl::StatusOr<Tensor> ReadNpzMember(const ReadableFile& file, const NpzMember& member,
                                     const std::string& what) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<TensorStream> stream,
                        OpenZipMember(file, member.file, what));
  std::string head(std::min<uint64_t>(member.file.bytes, kMaxNpyHeaderBytes), '\0');
  WEIR_RETURN_IF_ERROR(stream->Read(head.size(), head.data()));
  WEIR_RETURN_IF_ERROR(Annotate(CheckNpySize(head, member.file.bytes), what));
  WEIR_ASSIGN_OR_RETURN(Tensor bytes, Tensor::Allocate(HostAllocator(), DT_UINT8,
                                                       {static_cast<int64_t>(member.file.bytes)}));
  auto* const data = reinterpret_cast<char*>(bytes.data<uint8_t>());
  std::copy(head.begin(), head.end(), data);
  WEIR_RETURN_IF_ERROR(stream->Read(member.file.bytes - head.size(), data + head.size()));
  const absl::StatusOr<Tensor> array =
      ParseNpy(absl::string_view(data, static_cast<size_t>(member.file.bytes)));
  if (!array.ok()) return Annotate(array.status(), what);
  const bool is_bfloat16 = member.is_bfloat16 && array->dtype() == DT_UINT16;
  return is_bfloat16 ? array->BitcastTo(DT_BFLOAT16) : *array;
}

absl::StatusOr<NpzReader> NpzReader::Open(std::string bytes) {
  NpzReader reader(std::move(bytes));
  WEIR_ASSIGN_OR_RETURN(const std::vector<NpzMember> members, ListNpz(*reader.file_));
  for (const NpzMember& member : members) reader.members_[member.name] = member;
  return reader;
}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, member] : members_) names.push_back(name);
  return names;
}

absl::StatusOr<Tensor> NpzReader::Read(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end()) {
    return NotFound("no array '", name, "'; arrays: ", absl::StrJoin(names(), ", "));
  }
  const NpzMember& member = found->second;
  if (member.file.bytes > kMaxNpzArrayBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the array '", name, "' has ", member.file.bytes, " bytes; at most ",
                     kMaxNpzArrayBytes, " are read from a .npz file"));
  }
  return ReadNpzMember(*file_, member, absl::StrCat("the array '", name, "'"));
}

absl::Status AddNpzMember(ZipWriter& zip, const std::string& name, DataType dtype, uint64_t bytes,
                          absl::FunctionRef<absl::Status(ZipWriter::Append append)> write) {
  return zip.Add(absl::StrCat(name, dtype == DT_BFLOAT16 ? ".bf16.npy" : ".npy"), bytes, write);
}

absl::StatusOr<std::string> SerializeNpz(
    const std::vector<std::pair<std::string, Tensor>>& arrays) {
  constexpr size_t kMaxNameBytes = 1 << 15;
  std::string file;
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ZipWriter> zip, ZipWriter::Create(&file));
  std::set<std::string> names;
  for (const auto& [name, tensor] : arrays) {
    const absl::StatusOr<std::string> bytes = SerializeNpy(tensor);
    absl::Status status = bytes.status();
    if (!names.insert(name).second) status = InvalidArgument("it occurs twice");
    if (name.size() > kMaxNameBytes || name.find('\0') != name.npos)
      status = InvalidArgument("a zip archive cannot have this name");
    if (status.ok()) {
      status = AddNpzMember(*zip, name, tensor.dtype(), bytes->size(),
                            [&](ZipWriter::Append append) { return append(*bytes); });
    }
    WEIR_RETURN_IF_ERROR(Annotate(status, absl::StrCat("the array '", name, "'")));
  }
  WEIR_RETURN_IF_ERROR(zip->Close());
  return file;
}

}  // namespace weir::tools
