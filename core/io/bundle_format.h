#ifndef WEIR_CORE_IO_BUNDLE_FORMAT_H_
#define WEIR_CORE_IO_BUNDLE_FORMAT_H_

#include <string>
#include <vector>

#include "weir/core/io/file.h"
#include "weir/core/io/tensor_slice.h"
#include "weir/core/runtime/thread_pool.h"
#include "weir/core/tensor/tensor.h"

// The serialization of bundles, shared by the writer, the reader and the verifier.
namespace weir::internal {

std::string BundleIndexName(absl::string_view prefix);
std::string BundleDataName(absl::string_view prefix, int shard, int num_shards);

struct BundleHeader {
  int num_shards = 1;
  bool big_endian = false;
};
std::string SerializeBundleHeader(const BundleHeader& header);
// Returns DATA_LOSS if malformed, UNIMPLEMENTED for an unknown format version. Messages contain
// `file`.
absl::StatusOr<BundleHeader> ParseBundleHeader(absl::string_view bytes, absl::string_view file);

// The index entry of a tensor, or of a slice of one.
struct BundleEntry {
  DataType dtype = DT_INVALID;
  Shape shape;
  int shard = 0;
  int64_t offset = 0, size = 0;     // in the data file
  uint32_t crc = 0;                 // masked
  std::vector<TensorSlice> slices;  // not empty: the tensor is stored in these slices, and the four
                                    // fields above are unused
};
std::string SerializeBundleEntry(const BundleEntry& entry);
// Returns DATA_LOSS, with `file` and `key`, if malformed.
absl::StatusOr<BundleEntry> ParseBundleEntry(absl::string_view bytes, absl::string_view key,
                                             absl::string_view file);

// Returns "w", or "w, slice 0,2:-" for the key of a slice.
std::string DescribeBundleKey(absl::string_view key);

// Appends a tensor's elements; sets offset, size and crc of the entry. With a pool, the checksum of
// a large tensor is computed while it is written.
absl::Status WriteTensorData(const Tensor& tensor, BufferedFile* file, ThreadPool* pool,
                             BundleEntry* entry);
// Returns the verified elements of an entry without slices. `key` is for messages.
absl::StatusOr<Tensor> ReadTensorData(const ReadableFile& file, const BundleEntry& entry,
                                      bool big_endian, absl::string_view key);
// Same, for a plain type, into a tensor of the entry's dtype and shape.
absl::Status ReadTensorDataInto(const ReadableFile& file, const BundleEntry& entry, bool big_endian,
                                absl::string_view key, Tensor* out);
// Checks that an entry's size fits its dtype and shape, and that the file has all of its bytes.
absl::Status CheckTensorExtent(const ReadableFile& file, const BundleEntry& entry,
                               absl::string_view key);
// Reads bytes [begin, begin + size) of the elements of an entry of plain type, as they are stored.
// Extends the checksum `crc`, unless it is null. CheckTensorExtent has returned OK.
absl::Status ReadTensorBytes(const ReadableFile& file, const BundleEntry& entry, uint64_t begin,
                             size_t size, char* out, uint32_t* crc);
// Compares the checksum of all bytes with the one in the entry.
absl::Status CheckTensorChecksum(const ReadableFile& file, const BundleEntry& entry,
                                 absl::string_view key, uint32_t crc);
// Returns the elements of a box of an entry of plain type. Reads only the bytes near them, and
// verifies no checksum.
absl::StatusOr<Tensor> ReadTensorBox(const ReadableFile& file, const BundleEntry& entry,
                                     bool big_endian, absl::string_view key, const Box& box);
// Swaps the bytes of each number in `size` bytes of elements.
void SwapElementBytes(DataType dtype, char* data, size_t size);
// Same as ReadTensorData, without keeping the elements.
absl::Status CheckTensorData(const ReadableFile& file, const BundleEntry& entry, bool big_endian,
                             absl::string_view key);

}  // namespace weir::internal

#endif  // WEIR_CORE_IO_BUNDLE_FORMAT_H_
