#ifndef WEIR_TOOLS_LIB_NPZ_H_
#define WEIR_TOOLS_LIB_NPZ_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/memory_folder.h"
#include "weir/tools/lib/zip_archive.h"

// NumPy's .npz files: zip archives of .npy files, stored (numpy.savez) or deflated
// (numpy.savez_compressed), with 64-bit sizes where needed. The member "x.npy" is the array x.
// bfloat16 arrays are in members named "x.bf16.npy" (core/io/npy.h).
namespace weir::tools {

// An array of an archive.
struct NpzMember {
  std::string name;
  bool is_bfloat16 = false;  // by the member's name
  ZipMember file;            // the .npy file
};

// Returns the arrays in the order of the archive's directory, which may have two of one name.
// Members that are not .npy files are ignored. INVALID_ARGUMENT for a file that is no zip archive,
// DATA_LOSS if its directory is damaged.
absl::StatusOr<std::vector<NpzMember>> ListNpz(const ReadableFile& file);

// Reads the whole array; nothing is allocated for a size that the .npy header inside contradicts.
// Errors are those of OpenZipMember, and INVALID_ARGUMENT for a malformed .npy file or an element
// type without a dtype (ParseNpy).
absl::StatusOr<Tensor> ReadNpzMember(const ReadableFile& file, const NpzMember& member,
                                     const std::string& what);

// No array of an archive in memory may have more bytes.
inline constexpr uint64_t kMaxNpzArrayBytes = uint64_t{8} << 30;

// An archive that is read from memory. Movable.
class NpzReader {
 public:
  // Errors are those of ListNpz. Of two members with one name the last counts, as in NumPy.
  static absl::StatusOr<NpzReader> Open(std::string bytes);

  // The names of the arrays, sorted.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return members_.count(name) > 0; }
  // Reads an array. Errors are those of ReadNpzMember, and:
  //
  //   NOT_FOUND           there is no such array; the message lists those that are there
  //   RESOURCE_EXHAUSTED  more than kMaxNpzArrayBytes, or than there is memory for
  absl::StatusOr<Tensor> Read(const std::string& name) const;

 private:
  explicit NpzReader(std::string bytes)
      : bytes_(std::make_unique<const std::string>(std::move(bytes))),
        file_(FileOfBytes("the .npz file", *bytes_)) {}

  std::unique_ptr<const std::string> bytes_;
  std::unique_ptr<const ReadableFile> file_;
  std::map<std::string, NpzMember> members_;
};

// Adds the array `name` to an archive; `write` appends the .npy file, which has `bytes` bytes.
absl::Status AddNpzMember(ZipWriter& zip, const std::string& name, DataType dtype, uint64_t bytes,
                          absl::FunctionRef<absl::Status(ZipWriter::Append append)> write);

// Returns the bytes of an archive with these arrays, which numpy.load reads. INVALID_ARGUMENT, with
// the array's name, for one that a .npy file cannot hold, and for two of one name.
absl::StatusOr<std::string> SerializeNpz(const std::vector<std::pair<std::string, Tensor>>& arrays);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_NPZ_H_
