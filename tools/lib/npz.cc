#include "weir/tools/lib/npz.h"

#include <minizip/unzip.h>
#include <minizip/zip.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/core/io/npy.h"

namespace weir::tools {

namespace {

constexpr size_t kMostAtOnce = size_t{1} << 30;  // minizip's sizes are 32-bit numbers
constexpr unsigned long kEncrypted = 1;          // a flag of a member
// No deflated bytes become more: "Maximum Compression Factor" in zlib's technical details.
constexpr uint64_t kMaxDeflateRatio = 1032;

// minizip's callbacks that are the same for reading and for writing. A stream has a position and a
// size.
template <class Stream>
zlib_filefunc64_def Callbacks(Stream* stream) {
  zlib_filefunc64_def callbacks{};
  callbacks.zopen64_file = [](voidpf opaque, const void*, int) { return opaque; };
  callbacks.ztell64_file = [](voidpf, voidpf opened) {
    return static_cast<ZPOS64_T>(static_cast<Stream*>(opened)->position);
  };
  callbacks.zseek64_file = [](voidpf, voidpf opened, ZPOS64_T offset, int origin) -> long {
    Stream& at = *static_cast<Stream*>(opened);
    const uint64_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? at.position
                          : origin == ZLIB_FILEFUNC_SEEK_END ? at.size()
                                                             : 0;
    // An offset of a damaged directory may be any number.
    if (base + offset < base || base + offset > at.size()) return -1;
    at.position = base + offset;
    return 0;
  };
  callbacks.zclose_file = [](voidpf, voidpf) { return 0; };
  callbacks.zerror_file = [](voidpf, voidpf) { return 0; };
  callbacks.opaque = stream;
  return callbacks;
}

// ---- reading

// An open archive, with its own position. The file outlives it.
class Archive {
 public:
  explicit Archive(const ReadableFile& file) : cursor_{file} {
    zlib_filefunc64_def callbacks = Callbacks(&cursor_);
    callbacks.zread_file = [](voidpf, voidpf opened, void* out, uLong size) -> uLong {
      Cursor& cursor = *static_cast<Cursor*>(opened);
      const absl::StatusOr<size_t> got =
          cursor.file.ReadSome(cursor.position, size, static_cast<char*>(out));
      if (!got.ok()) return 0;
      cursor.position += *got;
      return *got;
    };
    zip_ = unzOpen2_64("", &callbacks);
  }
  ~Archive() {
    if (zip_ != nullptr) unzClose(zip_);
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;
  unzFile zip() const { return zip_; }  // null if the file is no archive
  const ReadableFile& file() const { return cursor_.file; }

 private:
  struct Cursor {
    const ReadableFile& file;
    uint64_t position = 0;
    uint64_t size() const { return file.size(); }
  };
  Cursor cursor_;
  unzFile zip_;
};

// Adds the member at which the archive is, if it is an array.
int AddCurrent(unzFile zip, std::vector<NpzMember>* members) {
  unz_file_info64 info{};
  int status = unzGetCurrentFileInfo64(zip, &info, nullptr, 0, nullptr, 0, nullptr, 0);
  if (status != UNZ_OK) return status;
  std::string name(info.size_filename, '\0');
  status = unzGetCurrentFileInfo64(zip, nullptr, name.data(), name.size(), nullptr, 0, nullptr, 0);
  if (status != UNZ_OK) return status;
  unz64_file_pos position{};
  status = unzGetFilePos64(zip, &position);
  absl::string_view array = name;
  if (status != UNZ_OK || !absl::ConsumeSuffix(&array, ".npy")) return status;
  const bool is_bfloat16 = absl::ConsumeSuffix(&array, ".bf16");
  members->push_back({std::string(array), is_bfloat16, info.uncompressed_size,
                      position.pos_in_zip_directory, position.num_of_file});
  return status;
}

class MemberStream final : public TensorStream {
 public:
  MemberStream(const ReadableFile& file, const std::string& what, uint64_t bytes)
      : archive_(file), what_(what), left_(bytes) {}

  absl::Status Open(const NpzMember& member) {
    const unzFile zip = archive_.zip();
    const unz64_file_pos position{member.directory_offset, member.number};
    unz_file_info64 info{};
    if (zip == nullptr || unzGoToFilePos64(zip, &position) != UNZ_OK ||
        unzGetCurrentFileInfo64(zip, &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK) {
      return DataLoss(what_, ": its entry in the archive's directory cannot be read");
    }
    if ((info.flag & kEncrypted) != 0) return Unimplemented(what_, " is encrypted");
    if (info.compression_method != 0 && info.compression_method != Z_DEFLATED) {
      return Unimplemented(what_, " is compressed by method ", info.compression_method,
                           "; only deflate (8) is known");
    }
    const uint64_t size = archive_.file().size();
    if (member.bytes / kMaxDeflateRatio > size) {
      return DataLoss(what_, ": the archive's directory says that it has ", member.bytes,
                      " bytes, but the archive has only ", size);
    }
    if (unzOpenCurrentFile(zip) != UNZ_OK)
      return DataLoss(what_, ": its header contradicts the archive's directory");
    return absl::OkStatus();
  }

  absl::Status Read(size_t size, char* out) override {
    if (size > left_) return OutOfRange(what_, ": the tensor is at its end");
    while (size > 0) {
      const int got = unzReadCurrentFile(archive_.zip(), out,
                                         static_cast<unsigned>(std::min(size, kMostAtOnce)));
      if (got <= 0) return DataLoss(what_, ": its compressed bytes are damaged or truncated");
      out += got;
      size -= static_cast<size_t>(got);
      left_ -= static_cast<uint64_t>(got);
    }
    if (left_ == 0 && !is_checked_) {
      is_checked_ = true;
      if (unzCloseCurrentFile(archive_.zip()) != UNZ_OK)
        return DataLoss(what_, ": its checksum is wrong");
    }
    return absl::OkStatus();
  }

 private:
  const Archive archive_;
  const std::string what_;
  uint64_t left_;
  bool is_checked_ = false;
};

}  // namespace

absl::StatusOr<std::vector<NpzMember>> ListNpz(const ReadableFile& file) {
  constexpr absl::string_view kEnd = "PK\5\6";  // of the directory; an empty archive has only it
  std::vector<NpzMember> members;
  std::string start(kEnd.size(), '\0');
  WEIR_ASSIGN_OR_RETURN(const size_t got, file.ReadSome(0, start.size(), start.data()));
  if (absl::string_view(start).substr(0, got) == kEnd) return members;
  const Archive archive(file);
  if (archive.zip() == nullptr) {
    return InvalidArgument(
        "it is not a .npz file: a zip archive ends with a directory, which is missing here (is the "
        "file complete?)");
  }
  unz_global_info64 global{};
  if (unzGetGlobalInfo64(archive.zip(), &global) == UNZ_OK && global.number_entry == 0)
    return members;
  int status = unzGoToFirstFile(archive.zip());
  while (status == UNZ_OK) {
    status = AddCurrent(archive.zip(), &members);
    if (status == UNZ_OK) status = unzGoToNextFile(archive.zip());
  }
  if (status == UNZ_END_OF_LIST_OF_FILE) return members;
  return DataLoss("the directory of the .npz file is damaged after ", members.size(), " of ",
                  global.number_entry, " members");
}

absl::StatusOr<std::unique_ptr<TensorStream>> OpenNpzMember(const ReadableFile& file,
                                                            const NpzMember& member,
                                                            const std::string& what) {
  auto stream = std::make_unique<MemberStream>(file, what, member.bytes);
  WEIR_RETURN_IF_ERROR(stream->Open(member));
  return stream;
}

absl::StatusOr<Tensor> ReadNpzMember(const ReadableFile& file, const NpzMember& member,
                                     const std::string& what) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<TensorStream> stream,
                        OpenNpzMember(file, member, what));
  std::string head(std::min<uint64_t>(member.bytes, kMaxNpyHeaderBytes), '\0');
  WEIR_RETURN_IF_ERROR(stream->Read(head.size(), head.data()));
  WEIR_RETURN_IF_ERROR(Annotate(CheckNpySize(head, member.bytes), what));
  WEIR_ASSIGN_OR_RETURN(Tensor bytes, Tensor::Allocate(HostAllocator(), DT_UINT8,
                                                       {static_cast<int64_t>(member.bytes)}));
  auto* const data = reinterpret_cast<char*>(bytes.data<uint8_t>());
  std::copy(head.begin(), head.end(), data);
  WEIR_RETURN_IF_ERROR(stream->Read(member.bytes - head.size(), data + head.size()));
  const absl::StatusOr<Tensor> array =
      ParseNpy(absl::string_view(data, static_cast<size_t>(member.bytes)));
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
  if (member.bytes > kMaxNpzArrayBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the array '", name, "' has ", member.bytes,
                                                     " bytes; at most ", kMaxNpzArrayBytes,
                                                     " are read from a .npz file"));
  }
  return ReadNpzMember(*file_, member, absl::StrCat("the array '", name, "'"));
}

// ---- writing

namespace {

constexpr unsigned long kFirstDay = 0x21 << 16;  // 1980-01-01, as NumPy writes: no clock
constexpr size_t kMaxNameBytes = 1 << 15;
constexpr unsigned long kUtf8Name = 1 << 11;  // a flag of a member; without it: code page 437
constexpr unsigned long kMadeBy = 0;
constexpr uint64_t kZip32Bytes = std::numeric_limits<uint32_t>::max();

// A file in memory that is being written.
struct MemoryArchive {
  std::string bytes;
  uint64_t position = 0;
  uint64_t size() const { return bytes.size(); }
};

uLong WriteMemory(voidpf, voidpf opened, const void* data, uLong size) {
  MemoryArchive& file = *static_cast<MemoryArchive*>(opened);
  if (file.bytes.size() < file.position + size) file.bytes.resize(file.position + size);
  std::memcpy(file.bytes.data() + file.position, data, size);
  file.position += size;
  return size;
}

absl::Status ZipStatus(int status) {
  return status == ZIP_OK ? absl::OkStatus() : Internal("minizip returns ", status);
}

}  // namespace

absl::Status AddNpzMember(void* zip, const std::string& name, DataType dtype, uint64_t bytes,
                          absl::FunctionRef<absl::Status(NpzAppend append)> write) {
  const std::string file = absl::StrCat(name, dtype == DT_BFLOAT16 ? ".bf16.npy" : ".npy");
  zip_fileinfo info{};
  info.dosDate = kFirstDay;
  const bool is_ascii = std::all_of(file.begin(), file.end(), absl::ascii_isascii);
  WEIR_RETURN_IF_ERROR(ZipStatus(zipOpenNewFileInZip4_64(
      zip, file.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, /*method=*/0, /*level=*/0,
      /*raw=*/0, -MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, /*password=*/nullptr,
      /*crcForCrypting=*/0, kMadeBy, is_ascii ? 0 : kUtf8Name,
      /*zip64=*/bytes >= kZip32Bytes ? 1 : 0)));
  const auto append = [&](absl::string_view piece) -> absl::Status {
    while (!piece.empty()) {
      const size_t size = std::min(piece.size(), kMostAtOnce);
      WEIR_RETURN_IF_ERROR(
          ZipStatus(zipWriteInFileInZip(zip, piece.data(), static_cast<unsigned>(size))));
      piece.remove_prefix(size);
    }
    return absl::OkStatus();
  };
  WEIR_RETURN_IF_ERROR(write(append));
  return ZipStatus(zipCloseFileInZip(zip));
}

absl::StatusOr<std::string> SerializeNpz(
    const std::vector<std::pair<std::string, Tensor>>& arrays) {
  MemoryArchive file;
  zlib_filefunc64_def callbacks = Callbacks(&file);
  callbacks.zwrite_file = WriteMemory;
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
    if (status.ok()) {
      status = AddNpzMember(zip, name, tensor.dtype(), bytes->size(),
                            [&](NpzAppend append) { return append(*bytes); });
    }
    if (!status.ok()) status = Annotate(status, absl::StrCat("the array '", name, "'"));
    if (!status.ok()) break;
  }
  const int closed = zipClose(zip, nullptr);
  WEIR_RETURN_IF_ERROR(status);
  WEIR_RETURN_IF_ERROR(ZipStatus(closed));
  return std::move(file.bytes);
}

}  // namespace weir::tools
