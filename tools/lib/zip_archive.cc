#include "weir/tools/lib/zip_archive.h"

#include <minizip/unzip.h>
#include <minizip/zip.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/ascii.h"

namespace weir::tools {

namespace {

constexpr size_t kMostAtOnce = size_t{1} << 30;  // minizip's sizes are 32-bit numbers
constexpr unsigned long kEncrypted = 1;          // a flag of a member

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

// Returns the member at which the archive is.
int GetCurrent(unzFile zip, ZipMember* member) {
  unz_file_info64 info{};
  int status = unzGetCurrentFileInfo64(zip, &info, nullptr, 0, nullptr, 0, nullptr, 0);
  if (status != UNZ_OK) return status;
  std::string name(info.size_filename, '\0');
  status = unzGetCurrentFileInfo64(zip, nullptr, name.data(), name.size(), nullptr, 0, nullptr, 0);
  if (status != UNZ_OK) return status;
  unz64_file_pos position{};
  status = unzGetFilePos64(zip, &position);
  *member = {std::move(name), info.uncompressed_size, position.pos_in_zip_directory,
             position.num_of_file};
  return status;
}

class MemberStream final : public TensorStream {
 public:
  MemberStream(const ReadableFile& file, const std::string& what, uint64_t bytes)
      : archive_(file), what_(what), left_(bytes) {}

  absl::Status Open(const ZipMember& member) {
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
    is_stored_ = info.compression_method == 0;
    if (unzOpenCurrentFile(zip) != UNZ_OK)
      return DataLoss(what_, ": its header contradicts the archive's directory");
    return absl::OkStatus();
  }

  // Only for an opened member that is stored.
  uint64_t offset() const { return unzGetCurrentFileZStreamPos64(archive_.zip()); }
  bool is_stored() const { return is_stored_; }

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
  bool is_checked_ = false, is_stored_ = false;
};

}  // namespace

absl::StatusOr<std::vector<ZipMember>> ListZip(const ReadableFile& file) {
  constexpr absl::string_view kEnd = "PK\5\6";  // of the directory; an empty archive has only it
  std::vector<ZipMember> members;
  std::string start(kEnd.size(), '\0');
  WEIR_ASSIGN_OR_RETURN(const size_t got, file.ReadSome(0, start.size(), start.data()));
  if (absl::string_view(start).substr(0, got) == kEnd) return members;
  const Archive archive(file);
  if (archive.zip() == nullptr) {
    return InvalidArgument(
        "it is not a zip archive: one ends with a directory, which is missing here (is the file "
        "complete?)");
  }
  unz_global_info64 global{};
  if (unzGetGlobalInfo64(archive.zip(), &global) == UNZ_OK && global.number_entry == 0)
    return members;
  int status = unzGoToFirstFile(archive.zip());
  while (status == UNZ_OK) {
    ZipMember member;
    status = GetCurrent(archive.zip(), &member);
    if (status != UNZ_OK) break;
    members.push_back(std::move(member));
    status = unzGoToNextFile(archive.zip());
  }
  if (status == UNZ_END_OF_LIST_OF_FILE) return members;
  return DataLoss("the directory of the archive is damaged after ", members.size(), " of ",
                  global.number_entry, " members");
}

absl::StatusOr<std::unique_ptr<TensorStream>> OpenZipMember(const ReadableFile& file,
                                                            const ZipMember& member,
                                                            const std::string& what) {
  auto stream = std::make_unique<MemberStream>(file, what, member.bytes);
  WEIR_RETURN_IF_ERROR(stream->Open(member));
  return stream;
}

absl::StatusOr<uint64_t> OffsetOfZipMember(const ReadableFile& file, const ZipMember& member,
                                           const std::string& what) {
  MemberStream stream(file, what, member.bytes);
  WEIR_RETURN_IF_ERROR(stream.Open(member));
  if (!stream.is_stored()) return Unimplemented(what, " is compressed");
  const uint64_t offset = stream.offset();
  if (offset <= file.size() && member.bytes <= file.size() - offset) return offset;
  return DataLoss(what, ": the archive is truncated");
}

// ---- writing

namespace {

constexpr unsigned long kFirstDay = 0x21 << 16;  // 1980-01-01, as NumPy writes: no clock
constexpr unsigned long kUtf8Name = 1 << 11;     // a flag of a member; without it: code page 437
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

struct ZipWriter::Impl {
  MemoryArchive memory;
  std::string* bytes = nullptr;  // where a text gets `memory`
  zipFile zip = nullptr;         // null when closed
};

ZipWriter::ZipWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ZipWriter::~ZipWriter() {
  if (impl_->zip != nullptr) zipClose(impl_->zip, nullptr);
}

absl::StatusOr<std::unique_ptr<ZipWriter>> ZipWriter::Create(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  impl->zip = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  if (impl->zip == nullptr) return FailedPrecondition("cannot create ", path);
  return std::unique_ptr<ZipWriter>(new ZipWriter(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<ZipWriter>> ZipWriter::Create(std::string* bytes) {
  auto impl = std::make_unique<Impl>();
  zlib_filefunc64_def callbacks = Callbacks(&impl->memory);
  callbacks.zwrite_file = WriteMemory;
  impl->bytes = bytes;
  impl->zip = zipOpen2_64("", APPEND_STATUS_CREATE, nullptr, &callbacks);
  if (impl->zip == nullptr) return Internal("minizip cannot create an archive");
  return std::unique_ptr<ZipWriter>(new ZipWriter(std::move(impl)));
}

absl::Status ZipWriter::Add(const std::string& name, uint64_t bytes,
                            absl::FunctionRef<absl::Status(Append append)> write) {
  const zipFile zip = impl_->zip;
  zip_fileinfo info{};
  info.dosDate = kFirstDay;
  const bool is_ascii = std::all_of(name.begin(), name.end(), absl::ascii_isascii);
  WEIR_RETURN_IF_ERROR(ZipStatus(zipOpenNewFileInZip4_64(
      zip, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, /*method=*/0, /*level=*/0,
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

absl::Status ZipWriter::Close() {
  WEIR_RETURN_IF_ERROR(ZipStatus(zipClose(std::exchange(impl_->zip, nullptr), nullptr)));
  if (impl_->bytes != nullptr) impl_->bytes->append(impl_->memory.bytes);
  return absl::OkStatus();
}

}  // namespace weir::tools
