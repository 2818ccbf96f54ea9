#ifndef WEIR_TOOLS_LIB_NPZ_H_
#define WEIR_TOOLS_LIB_NPZ_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/tensor/tensor.h"

// NumPy's .npz files: zip archives of .npy files, stored (numpy.savez) or deflated
// (numpy.savez_compressed), with 64-bit sizes where needed. The member "x.npy" is the array x.
// bfloat16 arrays are in members named "x.bf16.npy" (core/io/npy.h).
namespace weir::tools {

// No array of an archive may have more bytes.
inline constexpr uint64_t kMaxNpzArrayBytes = uint64_t{8} << 30;

// An archive that is read from memory. Movable; not thread-safe.
class NpzReader {
 public:
  // Returns INVALID_ARGUMENT for bytes that are no zip archive, DATA_LOSS if its directory is
  // damaged. Members that are not .npy files are not arrays, and ignored. Of two members with one
  // name the last counts, as in NumPy.
  static absl::StatusOr<NpzReader> Open(std::string bytes);

  // The names of the arrays, sorted.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return members_.count(name) > 0; }
  // Reads an array. Nothing is allocated for a size that the .npy header inside contradicts.
  //
  //   NOT_FOUND           there is no such array; the message lists those that are there
  //   INVALID_ARGUMENT    a malformed .npy file, or an element type without a dtype (ParseNpy)
  //   DATA_LOSS           a wrong checksum or size
  //   RESOURCE_EXHAUSTED  more than kMaxNpzArrayBytes, or than there is memory for
  //   UNIMPLEMENTED       the member is encrypted, or compressed by another method than deflate
  absl::StatusOr<Tensor> Read(const std::string& name);

 private:
  struct Archive;
  struct Member {
    uint64_t directory_offset = 0, number = 0;  // minizip's position
    bool is_bfloat16 = false;
  };
  explicit NpzReader(std::shared_ptr<Archive> archive) : archive_(std::move(archive)) {}
  absl::Status ReadDirectory();

  std::shared_ptr<Archive> archive_;
  std::map<std::string, Member> members_;
};

// Returns the bytes of an archive with these arrays, which numpy.load reads. INVALID_ARGUMENT, with
// the array's name, for one that a .npy file cannot hold, and for two of one name.
absl::StatusOr<std::string> SerializeNpz(const std::vector<std::pair<std::string, Tensor>>& arrays);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_NPZ_H_
