#ifndef WEIR_TOOLS_LIB_ZIP_ARCHIVE_H_
#define WEIR_TOOLS_LIB_ZIP_ARCHIVE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"

// Zip archives: members that are stored or deflated, with 64-bit sizes where needed. Each member
// has a checksum.
namespace weir::tools {

// Deflated bytes become at most so many times as many: "Maximum Compression Factor" in zlib's
// technical details.
inline constexpr uint64_t kMaxDeflateRatio = 1032;

struct ZipMember {
  std::string name;
  uint64_t bytes = 0;                         // when decompressed, as the directory says
  uint64_t directory_offset = 0, number = 0;  // minizip's position
};

// Returns the members in the order of the archive's directory, which may have two of one name.
// INVALID_ARGUMENT for a file that is no zip archive, DATA_LOSS if its directory is damaged.
absl::StatusOr<std::vector<ZipMember>> ListZip(const ReadableFile& file);

// Opens the bytes of a member. `file` outlives the stream; messages begin with `what`. The call
// that reads the last byte verifies the checksum.
//
//   DATA_LOSS      the directory is contradicted; later: a wrong checksum or size
//   UNIMPLEMENTED  the member is encrypted, or compressed by another method than deflate
absl::StatusOr<std::unique_ptr<TensorStream>> OpenZipMember(const ReadableFile& file,
                                                            const ZipMember& member,
                                                            const std::string& what);

// Returns where the bytes of a member begin in the file. UNIMPLEMENTED if they are compressed;
// otherwise errors are those of OpenZipMember.
absl::StatusOr<uint64_t> OffsetOfZipMember(const ReadableFile& file, const ZipMember& member,
                                           const std::string& what);

// Writes an archive of stored members. They have the date of 1980, so that equal contents are equal
// files.
class ZipWriter {
 public:
  // Creates a file, without writing it aside.
  static absl::StatusOr<std::unique_ptr<ZipWriter>> Create(const std::string& path);
  // Appends the archive to a text, which outlives the writer.
  static absl::StatusOr<std::unique_ptr<ZipWriter>> Create(std::string* bytes);
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  // Adds a member of `bytes` bytes, which `write` appends in pieces.
  using Append = absl::FunctionRef<absl::Status(absl::string_view piece)>;
  absl::Status Add(const std::string& name, uint64_t bytes,
                   absl::FunctionRef<absl::Status(Append append)> write);
  // Writes the directory. No other call may follow.
  absl::Status Close();

 private:
  struct Impl;
  explicit ZipWriter(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_ZIP_ARCHIVE_H_
