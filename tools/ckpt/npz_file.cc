#include "weir/tools/ckpt/npz_file.h"

#include <minizip/unzip.h>
#include <minizip/zip.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "weir/core/io/file.h"
#include "weir/core/io/npy.h"
#include "weir/tools/ckpt/array_reader.h"

namespace weir::tools {

namespace {

constexpr unsigned long kEncrypted = 1;  // a flag of a member

// ---- reading. minizip reads through callbacks on a ReadableFile.

struct Cursor {
  const ReadableFile* file;
  uint64_t position = 0;
};

Cursor& CursorOf(voidpf stream) { return *static_cast<Cursor*>(stream); }

uLong ReadCallback(voidpf, voidpf stream, void* out, uLong size) {
  Cursor& cursor = CursorOf(stream);
  const absl::StatusOr<size_t> got =
      cursor.file->ReadSome(cursor.position, size, static_cast<char*>(out));
  if (!got.ok()) return 0;
  cursor.position += *got;
  return *got;
}

long SeekCallback(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  Cursor& cursor = CursorOf(stream);
  const uint64_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? cursor.position
                        : origin == ZLIB_FILEFUNC_SEEK_END ? cursor.file->size()
                                                           : 0;
  // An offset of a damaged directory may be any number.
  if (base + offset < base || base + offset > cursor.file->size()) return -1;
  cursor.position = base + offset;
  return 0;
}

// An open archive, with its own position. The file outlives it.
class Archive {
 public:
  explicit Archive(const ReadableFile& file) : cursor_{&file} {
    zlib_filefunc64_def callbacks{};
    callbacks.zopen64_file = [](voidpf opaque, const void*, int) { return opaque; };
    callbacks.zread_file = ReadCallback;
    callbacks.ztell64_file = [](voidpf, voidpf stream) {
      return static_cast<ZPOS64_T>(CursorOf(stream).position);
    };
    callbacks.zseek64_file = SeekCallback;
    callbacks.zclose_file = [](voidpf, voidpf) { return 0; };
    callbacks.zerror_file = [](voidpf, voidpf) { return 0; };
    callbacks.opaque = &cursor_;
    zip_ = unzOpen2_64("", &callbacks);
  }
  ~Archive() {
    if (zip_ != nullptr) unzClose(zip_);
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;
  unzFile zip() const { return zip_; }

 private:
  Cursor cursor_;
  unzFile zip_;
};

struct Member {
  unz64_file_pos position{};
  uint64_t bytes = 0;  // not compressed
};

// The bytes of a member, of which the first may have been read as the header of the array.
class MemberStream final : public TensorStream {
 public:
  MemberStream(const ReadableFile& file, const Member& member, std::string what)
      : archive_(file), member_(member), what_(std::move(what)), left_(member.bytes) {}

  absl::Status Open() {
    const unz64_file_pos position = member_.position;
    if (archive_.zip() == nullptr || unzGoToFilePos64(archive_.zip(), &position) != UNZ_OK ||
        unzOpenCurrentFile(archive_.zip()) != UNZ_OK)
      return DataLoss(what_, ": its header contradicts the archive's directory");
    return absl::OkStatus();
  }

  absl::Status Read(size_t size, char* out) override {
    if (size > left_) return OutOfRange(what_, ": the tensor is at its end");
    constexpr size_t kMostAtOnce = size_t{1} << 30;  // minizip's sizes are 32-bit numbers
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

  uint64_t left() const { return left_; }

 private:
  Archive archive_;
  const Member member_;
  const std::string what_;
  uint64_t left_;
  bool is_checked_ = false;
};

class NpzReader final : public ArrayReader {
 public:
  using ArrayReader::ArrayReader;

  absl::Status Open() {
    WEIR_ASSIGN_OR_RETURN(file_, Files().Open(path()));
    const Archive archive(*file_);
    if (archive.zip() == nullptr) {
      return InvalidArgument(path(),
                             ": it is not a .npz file: the directory at the end of the archive is "
                             "missing (is the file complete?)");
    }
    WEIR_RETURN_IF_ERROR(ReadDirectory(archive.zip()));
    for (const auto& [name, member] : members_) WEIR_RETURN_IF_ERROR(AddArray(name));
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Read(absl::string_view name) override {
    WEIR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, Find(name));
    if (tensor.dtype == DT_STRING) return ReadArray(name);
    return ArrayReader::Read(name);
  }

  absl::StatusOr<std::unique_ptr<TensorStream>> Stream(absl::string_view name) override {
    WEIR_RETURN_IF_ERROR(Find(name).status());
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<MemberStream> stream, OpenMember(name));
    WEIR_ASSIGN_OR_RETURN(const NpyHeader header, ReadHeader(name, stream.get()));
    if (header.dtype == DT_STRING)
      return InvalidArgument("tensor ", name, " of type string cannot be read in pieces");
    if (header.fortran_order) {
      WEIR_ASSIGN_OR_RETURN(Tensor whole, ReadArray(name));
      return StreamOf(std::move(whole));
    }
    return std::make_unique<NpyStream>(header, std::move(stream));
  }

 private:
  std::string Describe(absl::string_view name) const {
    return absl::StrCat(path(), ": array '", name, "'");
  }

  absl::Status ReadDirectory(unzFile zip) {
    unz_global_info64 global{};
    if (unzGetGlobalInfo64(zip, &global) == UNZ_OK && global.number_entry == 0)
      return absl::OkStatus();
    int status = unzGoToFirstFile(zip);
    for (; status == UNZ_OK; status = unzGoToNextFile(zip)) {
      unz_file_info64 info{};
      Member member;
      std::string name;
      status = unzGetCurrentFileInfo64(zip, &info, nullptr, 0, nullptr, 0, nullptr, 0);
      if (status == UNZ_OK) {
        name.resize(info.size_filename);
        status =
            unzGetCurrentFileInfo64(zip, nullptr, name.data(), name.size(), nullptr, 0, nullptr, 0);
      }
      if (status == UNZ_OK) status = unzGetFilePos64(zip, &member.position);
      if (status != UNZ_OK) break;
      member.bytes = info.uncompressed_size;
      WEIR_RETURN_IF_ERROR(AddMember(name, info, member));
    }
    if (status == UNZ_END_OF_LIST_OF_FILE) return absl::OkStatus();
    return DataLoss(path(), ": the directory of the archive is damaged after ", members_.size(),
                    " of ", global.number_entry, " members");
  }

  absl::Status AddMember(absl::string_view name, const unz_file_info64& info,
                         const Member& member) {
    if (!absl::ConsumeSuffix(&name, ".npy")) return absl::OkStatus();
    const bool is_bfloat16 = absl::ConsumeSuffix(&name, ".bf16");
    if ((info.flag & kEncrypted) != 0) return Unimplemented(Describe(name), " is encrypted");
    if (info.compression_method != 0 && info.compression_method != Z_DEFLATED) {
      return Unimplemented(Describe(name), " is compressed by method ", info.compression_method,
                           "; only deflate (8) is known");
    }
    if (is_bfloat16) bfloat16s_.emplace(name);
    if (members_.emplace(std::string(name), member).second) return absl::OkStatus();
    return InvalidArgument(path(), ": two members have the name '", name, "'");
  }

  absl::StatusOr<std::unique_ptr<MemberStream>> OpenMember(absl::string_view name) const {
    auto stream =
        std::make_unique<MemberStream>(*file_, members_.find(name)->second, Describe(name));
    WEIR_RETURN_IF_ERROR(stream->Open());
    return stream;
  }

  // Reads the header, and checks that as many bytes follow as the shape says. So nothing is
  // allocated for a shape that the member has no room for.
  absl::StatusOr<NpyHeader> ReadHeader(absl::string_view name, MemberStream* stream) const {
    // The fixed part has the length of the rest: in two bytes in version 1, then in four.
    constexpr uint64_t kFixed = 10, kFixedLater = 12;
    std::string head(std::min(kFixed, stream->left()), '\0');
    WEIR_RETURN_IF_ERROR(stream->Read(head.size(), head.data()));
    if (head.size() < kFixed) return InvalidArgument(Describe(name), " is not a .npy file");
    uint64_t length =
        static_cast<uint8_t>(head[8]) | static_cast<uint64_t>(static_cast<uint8_t>(head[9])) << 8;
    if (head[6] > 1) {
      head.resize(std::min(kFixedLater, kFixed + stream->left()));
      WEIR_RETURN_IF_ERROR(stream->Read(head.size() - kFixed, head.data() + kFixed));
      if (head.size() == kFixedLater) {
        length |= static_cast<uint64_t>(static_cast<uint8_t>(head[10])) << 16 |
                  static_cast<uint64_t>(static_cast<uint8_t>(head[11])) << 24;
      }
    }
    const size_t fixed = head.size();
    head.resize(fixed + std::min({length, stream->left(), uint64_t{kMaxNpyHeaderBytes}}));
    WEIR_RETURN_IF_ERROR(stream->Read(head.size() - fixed, head.data() + fixed));
    absl::StatusOr<NpyHeader> header = ParseNpyHeader(head);
    if (!header.ok()) return Annotate(header.status(), Describe(name));
    const uint64_t width = IsPlain(header->dtype) ? ElementSize(header->dtype) : header->text_bytes;
    if (stream->left() / width == static_cast<uint64_t>(header->shape.num_elements()) &&
        stream->left() % width == 0)
      return header;
    return InvalidArgument(Describe(name), ": its header says ", DataTypeName(header->dtype),
                           header->shape.ToString(), ", but ", stream->left(),
                           " bytes of elements follow");
  }

  absl::Status AddArray(const std::string& name) {
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<MemberStream> stream, OpenMember(name));
    WEIR_ASSIGN_OR_RETURN(const NpyHeader header, ReadHeader(name, stream.get()));
    const bool is_bfloat16 = bfloat16s_.contains(name) && header.dtype == DT_UINT16;
    return Add(name, is_bfloat16 ? DT_BFLOAT16 : header.dtype, header.shape);
  }

  // Reads a member as a whole: strings, and arrays in Fortran's order.
  absl::StatusOr<Tensor> ReadArray(absl::string_view name) const {
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<MemberStream> stream, OpenMember(name));
    WEIR_ASSIGN_OR_RETURN(
        Tensor bytes,
        Tensor::Allocate(HostAllocator(), DT_UINT8, Shape({static_cast<int64_t>(stream->left())})));
    auto* const data = reinterpret_cast<char*>(bytes.data<uint8_t>());
    WEIR_RETURN_IF_ERROR(stream->Read(bytes.num_bytes(), data));
    absl::StatusOr<Tensor> array = ParseNpy(absl::string_view(data, bytes.num_bytes()));
    return array.ok() ? array : Annotate(array.status(), Describe(name));
  }

  std::unique_ptr<ReadableFile> file_;
  std::map<std::string, Member, std::less<>> members_;
  std::set<std::string, std::less<>> bfloat16s_;  // names
};

// ---- writing. minizip writes to the temporary file itself: it goes back to the beginning of a
// member to write its checksum.

absl::Status ZipError(int status) { return Internal("minizip returns ", status); }

absl::Status WriteMember(zipFile zip, const OutputTensor& tensor) {
  const std::string header = SerializeNpyHeader(tensor.dtype, tensor.shape);
  const std::string name =
      absl::StrCat(tensor.name, tensor.dtype == DT_BFLOAT16 ? ".bf16.npy" : ".npy");
  const uint64_t bytes = header.size() + static_cast<uint64_t>(BytesOf(tensor.dtype, tensor.shape));
  zip_fileinfo info{};
  info.dosDate = 0x21 << 16;  // 1980-01-01, as NumPy writes: no clock
  const int is_large = bytes >= std::numeric_limits<uint32_t>::max() ? 1 : 0;
  int status = zipOpenNewFileInZip64(zip, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr,
                                     /*method=*/0, /*level=*/0, is_large);
  if (status != ZIP_OK) return ZipError(status);
  const auto write = [&](absl::string_view piece) {
    const int result = zipWriteInFileInZip(zip, piece.data(), static_cast<unsigned>(piece.size()));
    return result == ZIP_OK ? absl::OkStatus() : ZipError(result);
  };
  WEIR_RETURN_IF_ERROR(write(header));
  WEIR_RETURN_IF_ERROR(CopyElements(tensor, write));
  status = zipCloseFileInZip(zip);
  return status == ZIP_OK ? absl::OkStatus() : ZipError(status);
}

absl::Status WriteArchive(const std::string& path, const Output& output, ProgressBar& progress) {
  const zipFile zip = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  if (zip == nullptr) return FailedPrecondition("cannot create ", path);
  absl::Status status;
  for (const OutputTensor& tensor : output.tensors) {
    status = WriteMember(zip, tensor);
    if (!status.ok()) break;
    progress.Add(1);
  }
  const int closed = zipClose(zip, nullptr);
  WEIR_RETURN_IF_ERROR(status);
  return closed == ZIP_OK ? absl::OkStatus() : ZipError(closed);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenNpz(const std::string& path, Metadata*) {
  auto reader = std::make_unique<NpzReader>(path);
  WEIR_RETURN_IF_ERROR(reader->Open());
  return reader;
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
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WriteLock> lock, WriteLock::Acquire(path));
  TemporaryFile temporary(path);
  WEIR_RETURN_IF_ERROR(WriteArchive(temporary.path(), output, progress));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                        Files().OpenAtEnd(temporary.path()));
  WEIR_RETURN_IF_ERROR(file->Sync());
  WEIR_RETURN_IF_ERROR(file->Close());
  WEIR_RETURN_IF_ERROR(Files().Rename(temporary.path(), path));
  temporary.SetRenamed();
  return Files().SyncDirectory(DirectoryOf(path));
}

}  // namespace weir::tools
