#include "weir/tools/lib/npz.h"

#include <minizip/unzip.h>
#include <minizip/zip.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/core/io/npy.h"

namespace weir::tools {

namespace {

// minizip reads and writes archives through callbacks; these are for an archive in memory.
struct MemoryFile {
  std::string bytes;
  uint64_t position = 0;
};

MemoryFile& FileOf(voidpf stream) { return *static_cast<MemoryFile*>(stream); }

uLong ReadMemory(voidpf, voidpf stream, void* out, uLong size) {
  MemoryFile& file = FileOf(stream);
  const uint64_t left = file.bytes.size() - std::min<uint64_t>(file.position, file.bytes.size());
  const uint64_t n = std::min<uint64_t>(size, left);
  if (n > 0) std::memcpy(out, file.bytes.data() + file.position, n);
  file.position += n;
  return n;
}

uLong WriteMemory(voidpf, voidpf stream, const void* data, uLong size) {
  MemoryFile& file = FileOf(stream);
  if (file.bytes.size() < file.position + size) file.bytes.resize(file.position + size);
  std::memcpy(file.bytes.data() + file.position, data, size);
  file.position += size;
  return size;
}

long SeekMemory(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  MemoryFile& file = FileOf(stream);
  const uint64_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? file.position
                        : origin == ZLIB_FILEFUNC_SEEK_END ? file.bytes.size()
                                                           : 0;
  // An offset of a damaged directory may be any number.
  if (base + offset < base || base + offset > file.bytes.size()) return -1;
  file.position = base + offset;
  return 0;
}

zlib_filefunc64_def MemoryCallbacks(MemoryFile* file) {
  zlib_filefunc64_def callbacks{};
  callbacks.zopen64_file = [](voidpf opaque, const void*, int) { return opaque; };
  callbacks.zread_file = ReadMemory;
  callbacks.zwrite_file = WriteMemory;
  callbacks.ztell64_file = [](voidpf, voidpf stream) {
    return static_cast<ZPOS64_T>(FileOf(stream).position);
  };
  callbacks.zseek64_file = SeekMemory;
  callbacks.zclose_file = [](voidpf, voidpf) { return 0; };
  callbacks.zerror_file = [](voidpf, voidpf) { return 0; };
  callbacks.opaque = file;
  return callbacks;
}

// As much of a .npy file holds the header of any array that NumPy writes.
constexpr uint64_t kNpyHeadBytes = uint64_t{1} << 17;
constexpr unsigned kReadBytes = 1U << 30;  // minizip's sizes are 32-bit numbers
constexpr unsigned long kEncrypted = 1;    // a flag of a member

absl::Status Damaged(const std::string& name, absl::string_view what) {
  return DataLoss("the array '", name, "' is damaged: ", what);
}

// Reads `size` bytes of the open member.
absl::Status ReadMember(unzFile zip, const std::string& name, uint64_t size, char* out) {
  for (uint64_t done = 0; done < size;) {
    const auto n = static_cast<unsigned>(std::min<uint64_t>(size - done, kReadBytes));
    const int got = unzReadCurrentFile(zip, out + done, n);
    if (got < 0) return Damaged(name, "its compressed bytes are malformed");
    if (got == 0) {
      return Damaged(name, absl::StrCat("it ends after ", done, " of the ", size,
                                        " bytes that the "
                                        "archive's directory says"));
    }
    done += static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace

struct NpzReader::Archive {
  explicit Archive(std::string bytes) : file{std::move(bytes)} {
    zlib_filefunc64_def callbacks = MemoryCallbacks(&file);
    zip = unzOpen2_64("", &callbacks);
  }
  ~Archive() {
    if (zip != nullptr) unzClose(zip);
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  MemoryFile file;
  unzFile zip;
};

absl::StatusOr<NpzReader> NpzReader::Open(std::string bytes) {
  const bool is_empty = absl::StartsWith(bytes, "PK\5\6");  // its directory's end alone
  auto archive = std::make_shared<Archive>(std::move(bytes));
  if (is_empty) return NpzReader(std::move(archive));
  if (archive->zip == nullptr) {
    return InvalidArgument(
        "it is not a .npz file: a zip archive ends with a directory, which is "
        "missing here (is the file complete?)");
  }
  NpzReader reader(std::move(archive));
  WEIR_RETURN_IF_ERROR(reader.ReadDirectory());
  return reader;
}

absl::Status NpzReader::ReadDirectory() {
  const unzFile zip = archive_->zip;
  unz_global_info64 global{};
  if (unzGetGlobalInfo64(zip, &global) == UNZ_OK && global.number_entry == 0)
    return absl::OkStatus();
  int status = unzGoToFirstFile(zip);
  for (; status == UNZ_OK; status = unzGoToNextFile(zip)) {
    unz_file_info64 info{};
    unz64_file_pos position{};
    if (unzGetCurrentFileInfo64(zip, &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK) break;
    std::string name(info.size_filename, '\0');
    if (unzGetCurrentFileInfo64(zip, nullptr, name.data(), name.size(), nullptr, 0, nullptr, 0) !=
            UNZ_OK ||
        unzGetFilePos64(zip, &position) != UNZ_OK) {
      break;
    }
    absl::string_view array = name;
    if (!absl::ConsumeSuffix(&array, ".npy")) continue;
    const bool is_bfloat16 = absl::ConsumeSuffix(&array, ".bf16");
    members_[std::string(array)] = {position.pos_in_zip_directory, position.num_of_file,
                                    is_bfloat16};
  }
  if (status == UNZ_END_OF_LIST_OF_FILE) return absl::OkStatus();
  return DataLoss("the directory of the .npz file is damaged after ", members_.size(), " of ",
                  global.number_entry, " members");
}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, member] : members_) names.push_back(name);
  return names;
}

absl::StatusOr<Tensor> NpzReader::Read(const std::string& name) {
  const auto found = members_.find(name);
  if (found == members_.end()) {
    return NotFound("no array '", name, "'; arrays: ", absl::StrJoin(names(), ", "));
  }
  const unzFile zip = archive_->zip;
  const unz64_file_pos position{found->second.directory_offset, found->second.number};
  unz_file_info64 info{};
  if (unzGoToFilePos64(zip, &position) != UNZ_OK ||
      unzGetCurrentFileInfo64(zip, &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK) {
    return Damaged(name, "its directory entry cannot be read");
  }
  if ((info.flag & kEncrypted) != 0) return Unimplemented("the array '", name, "' is encrypted");
  if (info.compression_method != 0 && info.compression_method != Z_DEFLATED) {
    return Unimplemented("the array '", name, "' is compressed by method ", info.compression_method,
                         "; only deflate (8) is supported");
  }
  if (info.uncompressed_size > kMaxNpzArrayBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the array '", name, "' has ", info.uncompressed_size, " bytes; at most ",
                     kMaxNpzArrayBytes, " are read from a .npz file"));
  }
  if (unzOpenCurrentFile(zip) != UNZ_OK)
    return Damaged(name, "its header contradicts the directory");
  const auto close = [zip](const absl::Status& status) {
    unzCloseCurrentFile(zip);
    return status;
  };
  // The header says how many bytes there must be, before memory for them is allocated.
  std::string head(std::min<uint64_t>(info.uncompressed_size, kNpyHeadBytes), '\0');
  absl::Status status = ReadMember(zip, name, head.size(), head.data());
  if (!status.ok()) return close(status);
  status = CheckNpySize(head, info.uncompressed_size);
  if (!status.ok()) return close(Annotate(status, absl::StrCat("the array '", name, "'")));
  absl::StatusOr<Tensor> bytes =
      Tensor::Allocate(HostAllocator(), DT_UINT8, {static_cast<int64_t>(info.uncompressed_size)});
  if (!bytes.ok()) return close(bytes.status());
  auto* const data = reinterpret_cast<char*>(bytes->data<uint8_t>());
  std::copy(head.begin(), head.end(), data);
  status = ReadMember(zip, name, info.uncompressed_size - head.size(), data + head.size());
  if (!status.ok()) return close(status);
  if (unzCloseCurrentFile(zip) != UNZ_OK) return Damaged(name, "its checksum is wrong");
  absl::StatusOr<Tensor> array =
      ParseNpy(absl::string_view(data, static_cast<size_t>(info.uncompressed_size)));
  if (!array.ok()) return Annotate(array.status(), absl::StrCat("the array '", name, "'"));
  const bool is_bfloat16 = found->second.is_bfloat16 && array->dtype() == DT_UINT16;
  return is_bfloat16 ? array->BitcastTo(DT_BFLOAT16) : *std::move(array);
}

namespace {

constexpr unsigned long kFirstDay = 0x21 << 16;  // 1980-01-01, as NumPy writes: no clock
constexpr size_t kMaxNameBytes = 1 << 15;
constexpr uint64_t kZip32Bytes = std::numeric_limits<uint32_t>::max();

absl::Status AddMember(zipFile zip, const std::string& name, absl::string_view bytes) {
  zip_fileinfo info{};
  info.dosDate = kFirstDay;
  const int is_large = bytes.size() >= kZip32Bytes ? 1 : 0;
  int status = zipOpenNewFileInZip64(zip, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr,
                                     /*method=*/0, /*level=*/0, is_large);
  while (status == ZIP_OK && !bytes.empty()) {
    const auto n = static_cast<unsigned>(std::min<size_t>(bytes.size(), kReadBytes));
    status = zipWriteInFileInZip(zip, bytes.data(), n);
    bytes.remove_prefix(n);
  }
  if (status == ZIP_OK) status = zipCloseFileInZip(zip);
  return status == ZIP_OK ? absl::OkStatus() : Internal("minizip returns ", status);
}

}  // namespace

absl::StatusOr<std::string> SerializeNpz(
    const std::vector<std::pair<std::string, Tensor>>& arrays) {
  MemoryFile file;
  zlib_filefunc64_def callbacks = MemoryCallbacks(&file);
  const zipFile zip = zipOpen2_64("", APPEND_STATUS_CREATE, nullptr, &callbacks);
  if (zip == nullptr) return Internal("minizip cannot create an archive");
  absl::Status status;
  std::set<std::string> names;
  for (const auto& [name, tensor] : arrays) {
    const absl::StatusOr<std::string> bytes = SerializeNpy(tensor);
    status = bytes.status();
    if (!names.insert(name).second) status = InvalidArgument("it occurs twice");
    if (name.size() > kMaxNameBytes || name.find('\0') != name.npos)
      status = InvalidArgument("a zip archive cannot have this name");
    const char* const ending = tensor.dtype() == DT_BFLOAT16 ? ".bf16.npy" : ".npy";
    if (status.ok()) status = AddMember(zip, name + ending, *bytes);
    if (!status.ok()) status = Annotate(status, absl::StrCat("the array '", name, "'"));
    if (!status.ok()) break;
  }
  const int closed = zipClose(zip, nullptr);
  WEIR_RETURN_IF_ERROR(status);
  if (closed != ZIP_OK) return Internal("minizip returns ", closed);
  return std::move(file.bytes);
}

}  // namespace weir::tools
