#ifndef WEIR_CORE_BUNDLE_FORMAT_H_
#define WEIR_CORE_BUNDLE_FORMAT_H_

#include <string>
#include <vector>

#include "weir/core/file.h"
#include "weir/core/tensor.h"
#include "weir/core/tensor_slice.h"
#include "weir/core/thread_pool.h"

// The parts of a bundle, for its writer, reader and verifier.
namespace weir::internal {

std::string BundleIndexName(absl::string_view prefix);
std::string BundleDataName(absl::string_view prefix, int shard, int num_shards);

struct BundleHeader {
  int num_shards = 1;
  bool big_endian = false;
};
std::string SerializeBundleHeader(const BundleHeader& header);
// DATA_LOSS if malformed; UNIMPLEMENTED for a version of the format that is not known. Messages
// name `file`.
absl::StatusOr<BundleHeader> ParseBundleHeader(absl::string_view bytes, absl::string_view file);

// What the index says of a tensor, or of a part of one.
struct BundleEntry {
  DataType dtype = DT_INVALID;
  Shape shape;
  int shard = 0;
  int64_t offset = 0, size = 0;     // in the data file
  uint32_t crc = 0;                 // masked
  std::vector<TensorSlice> slices;  // not empty: the tensor is stored in these parts, and the four
                                    // fields above say nothing
};
std::string SerializeBundleEntry(const BundleEntry& entry);
// DATA_LOSS if malformed, naming `file` and `key`.
absl::StatusOr<BundleEntry> ParseBundleEntry(absl::string_view bytes, absl::string_view key,
                                             absl::string_view file);

// "w", or "w, slice 0,2:-" for the key of a part.
std::string DescribeBundleKey(absl::string_view key);

// Appends a tensor's elements; sets offset, size and crc of the entry. With a pool, the checksum of
// a large one is computed meanwhile.
absl::Status WriteTensorData(const Tensor& tensor, BufferedFile* file, ThreadPool* pool,
                             BundleEntry* entry);
// The elements of an entry without slices, checked. `key` is for messages.
absl::StatusOr<Tensor> ReadTensorData(const ReadableFile& file, const BundleEntry& entry,
                                      bool big_endian, absl::string_view key);
// The same for a plain type, into a tensor of the entry's dtype and shape.
absl::Status ReadTensorDataInto(const ReadableFile& file, const BundleEntry& entry, bool big_endian,
                                absl::string_view key, Tensor* out);
// The same without keeping them.
absl::Status CheckTensorData(const ReadableFile& file, const BundleEntry& entry, bool big_endian,
                             absl::string_view key);

}  // namespace weir::internal

#endif  // WEIR_CORE_BUNDLE_FORMAT_H_
