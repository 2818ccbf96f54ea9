#include <algorithm>
#include <cstring>

#include "weir/core/io/bundle_reader.h"

// Reading parts of a tensor: a box of it, and all of it in pieces. A tensor is stored in row-major
// order, so a box consists of runs of consecutive elements, at offsets that ascend with the index
// of the dimensions that the box does not span.
namespace weir {

namespace internal {
namespace {

// Runs that are closer to each other than kNear are read together, up to kWindow bytes at a time.
constexpr uint64_t kNear = uint64_t{1} << 16;
constexpr uint64_t kWindow = uint64_t{1} << 18;
// The part of a partitioned tensor that a stream holds.
constexpr int64_t kBlockBytes = int64_t{4} << 20;

// The runs of a box: `count` of them, each of `bytes` bytes. All dimensions from `rank` on are in
// one run.
struct Runs {
  int rank = 0;
  int64_t count = 1;
  uint64_t bytes = 0;
  std::vector<uint64_t> strides;  // of all dimensions, in bytes
};

Runs RunsOf(const Box& box, const Shape& shape, size_t element_size) {
  Runs runs;
  runs.strides.assign(static_cast<size_t>(shape.rank()), element_size);
  for (int i = shape.rank() - 2; i >= 0; --i)
    runs.strides[i] = runs.strides[i + 1] * static_cast<uint64_t>(shape.dim(i + 1));
  int first = shape.rank() - 1;  // the outermost dimension of a run
  while (first > 0 && box.size[first] == shape.dim(first)) --first;
  runs.rank = std::max(first, 0);
  runs.bytes = element_size;
  for (int i = runs.rank; i < shape.rank(); ++i) runs.bytes *= static_cast<uint64_t>(box.size[i]);
  for (int i = 0; i < runs.rank; ++i) runs.count *= box.size[i];
  return runs;
}

// Reads runs in ascending order, near ones through a window.
class RunReader {
 public:
  RunReader(const ReadableFile& file, const BundleEntry& entry, uint64_t end, bool use_window)
      : file_(file), entry_(entry), end_(end), use_window_(use_window) {}

  absl::Status Read(uint64_t begin, size_t size, char* out) {
    if (!use_window_) return ReadTensorBytes(file_, entry_, begin, size, out, nullptr);
    if (begin < start_ || begin + size > start_ + window_.size()) {
      start_ = begin;
      window_.resize(std::min(std::max<uint64_t>(kWindow, size), end_ - begin));
      WEIR_RETURN_IF_ERROR(
          ReadTensorBytes(file_, entry_, begin, window_.size(), window_.data(), nullptr));
    }
    std::memcpy(out, window_.data() + (begin - start_), size);
    return absl::OkStatus();
  }

 private:
  const ReadableFile& file_;
  const BundleEntry& entry_;
  const uint64_t end_;  // of the last run
  const bool use_window_;
  uint64_t start_ = 0;
  std::string window_;
};

}  // namespace

absl::StatusOr<Tensor> ReadTensorBox(const ReadableFile& file, const BundleEntry& entry,
                                     bool big_endian, absl::string_view key, const Box& box) {
  WEIR_RETURN_IF_ERROR(CheckTensorExtent(file, entry, key));
  WEIR_ASSIGN_OR_RETURN(Tensor out,
                        Tensor::Allocate(HostAllocator(), entry.dtype, Shape(box.size)));
  if (out.num_elements() == 0) return out;
  const Runs runs = RunsOf(box, entry.shape, ElementSize(entry.dtype));
  uint64_t begin = 0, last = 0;
  for (int i = 0; i < entry.shape.rank(); ++i) {
    begin += static_cast<uint64_t>(box.start[i]) * runs.strides[i];
    if (i < runs.rank) last += static_cast<uint64_t>(box.size[i] - 1) * runs.strides[i];
  }
  const bool near = runs.rank > 0 && runs.strides[runs.rank - 1] <= kNear;
  RunReader reader(file, entry, begin + last + runs.bytes, near);
  std::vector<int64_t> index(static_cast<size_t>(runs.rank), 0);
  char* to = static_cast<char*>(out.raw());
  for (int64_t run = 0; run < runs.count; ++run, to += runs.bytes) {
    WEIR_RETURN_IF_ERROR(reader.Read(begin, runs.bytes, to));
    for (int i = runs.rank - 1; i >= 0; --i) {
      begin += runs.strides[i];
      if (++index[i] < box.size[i]) break;
      begin -= static_cast<uint64_t>(box.size[i]) * runs.strides[i];
      index[i] = 0;
    }
  }
  if (big_endian) SwapElementBytes(entry.dtype, static_cast<char*>(out.raw()), out.num_bytes());
  return out;
}

namespace {

absl::Status PastEnd(absl::string_view name) {
  return absl::OutOfRangeError(absl::StrCat("the stream of tensor ", name, " is at its end"));
}

// A tensor that is stored in one piece.
class StoredStream final : public TensorStream {
 public:
  StoredStream(const ReadableFile& file, BundleEntry entry, bool big_endian, std::string name)
      : file_(file), entry_(std::move(entry)), big_endian_(big_endian), name_(std::move(name)) {}

  absl::Status Read(size_t size, char* out) override {
    const auto total = static_cast<uint64_t>(entry_.size);
    if (size > total - done_) return PastEnd(name_);
    WEIR_RETURN_IF_ERROR(ReadTensorBytes(file_, entry_, done_, size, out, &crc_));
    done_ += size;
    if (big_endian_) SwapElementBytes(entry_.dtype, out, size);
    return done_ == total ? CheckTensorChecksum(file_, entry_, name_, crc_) : absl::OkStatus();
  }

 private:
  const ReadableFile& file_;
  const BundleEntry entry_;
  const bool big_endian_;
  const std::string name_;
  uint64_t done_ = 0;
  uint32_t crc_ = 0;
};

// A tensor that is read block by block: ranges of the outermost dimension whose rows are small
// enough, at one index of each dimension before it. It is no scalar and not empty, and its
// checksums were verified before.
class BlockStream final : public TensorStream {
 public:
  BlockStream(CheckpointReader& reader, CheckpointTensor tensor)
      : reader_(reader), tensor_(std::move(tensor)) {
    const Shape& shape = tensor_.shape;
    int64_t row = static_cast<int64_t>(ElementSize(tensor_.dtype));
    split_ = shape.rank() - 1;
    for (; split_ > 0 && shape.dim(split_) <= kBlockBytes / row; --split_) row *= shape.dim(split_);
    rows_ = std::max<int64_t>(kBlockBytes / row, 1);
    start_.assign(static_cast<size_t>(shape.rank()), 0);
  }

  absl::Status Read(size_t size, char* out) override {
    while (size > 0) {
      if (at_ == block_.num_bytes()) WEIR_RETURN_IF_ERROR(Load());
      const size_t piece = std::min(size, block_.num_bytes() - at_);
      std::memcpy(out, static_cast<const char*>(block_.raw()) + at_, piece);
      at_ += piece;
      out += piece;
      size -= piece;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Load() {
    const Shape& shape = tensor_.shape;
    if (at_end_) return PastEnd(tensor_.name);
    TensorSlice slice = TensorSlice::Full(shape.rank());
    for (int i = 0; i < split_; ++i) slice.extents[i] = {start_[i], 1};
    const int64_t rows = std::min(rows_, shape.dim(split_) - start_[split_]);
    slice.extents[split_] = {start_[split_], rows};
    WEIR_ASSIGN_OR_RETURN(block_, reader_.ReadSliceUnverified(tensor_.name, slice));
    at_ = 0;
    start_[split_] += rows;
    for (int i = split_; i >= 0 && start_[i] == shape.dim(i); --i) {
      start_[i] = 0;
      if (i == 0)
        at_end_ = true;
      else
        ++start_[i - 1];
    }
    return absl::OkStatus();
  }

  CheckpointReader& reader_;
  const CheckpointTensor tensor_;
  int split_ = 0;               // the dimension of which a block is a range
  int64_t rows_ = 1;            // in a block
  std::vector<int64_t> start_;  // of the next block
  bool at_end_ = false;
  Tensor block_;
  size_t at_ = 0;  // in the block
};

// A tensor that is in memory.
class HeldStream final : public TensorStream {
 public:
  HeldStream(Tensor tensor, std::string name)
      : tensor_(std::move(tensor)), name_(std::move(name)) {}
  absl::Status Read(size_t size, char* out) override {
    if (size > tensor_.num_bytes() - done_) return PastEnd(name_);
    if (size > 0) std::memcpy(out, static_cast<const char*>(tensor_.raw()) + done_, size);
    done_ += size;
    return absl::OkStatus();
  }

 private:
  const Tensor tensor_;
  const std::string name_;
  size_t done_ = 0;
};

}  // namespace

absl::StatusOr<Tensor> BundleReader::ReadBoxUnverified(absl::string_view key,
                                                       const BundleEntry& entry, const Box& box) {
  Tensor out;
  WEIR_RETURN_IF_ERROR(WithDataFile(entry, [&](const ReadableFile& file) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(out, ReadTensorBox(file, entry, header_.big_endian, key, box));
    return absl::OkStatus();
  }));
  return out;
}

absl::StatusOr<Tensor> BundleReader::ReadSliceUnverified(absl::string_view name,
                                                         const TensorSlice& slice) {
  WEIR_ASSIGN_OR_RETURN(const BundleEntry entry, Entry(name));
  if (!IsPlain(entry.dtype)) return ReadSlice(name, slice);
  WEIR_RETURN_IF_ERROR(slice.ShapeIn(entry.shape).status());
  const Box want = ResolveSlice(slice, entry.shape);
  if (entry.slices.empty()) return ReadBoxUnverified(name, entry, want);
  const auto read = [&](const TensorSlice& stored, const Box& part) -> absl::StatusOr<Tensor> {
    WEIR_ASSIGN_OR_RETURN(const BundleEntry found, PartEntry(name, entry, stored));
    const Box whole = ResolveSlice(stored, entry.shape);
    Box inside = part;
    for (size_t i = 0; i < inside.start.size(); ++i) inside.start[i] -= whole.start[i];
    return ReadBoxUnverified(EncodeSliceKey(name, stored), found, inside);
  };
  return AssembleBoxes(entry.dtype, entry.shape, want, entry.slices, read,
                       absl::StrCat(index_->path(), ": tensor ", name));
}

absl::StatusOr<std::unique_ptr<TensorStream>> BundleReader::Stream(absl::string_view name) {
  WEIR_ASSIGN_OR_RETURN(BundleEntry entry, Entry(name));
  const bool is_partitioned = !entry.slices.empty();
  if (!IsPlain(entry.dtype) ||
      (is_partitioned && (entry.shape.rank() == 0 || entry.shape.num_elements() == 0)))
    return CheckpointReader::Stream(name);
  if (!is_partitioned) {
    WEIR_ASSIGN_OR_RETURN(const ReadableFile* const file, DataFile(entry.shard));
    WEIR_RETURN_IF_ERROR(WithDataFile(
        entry, [&](const ReadableFile& f) { return CheckTensorExtent(f, entry, name); }));
    // An empty tensor has no call of Read in which its checksum is verified.
    if (entry.size == 0) WEIR_RETURN_IF_ERROR(CheckTensorChecksum(*file, entry, name, 0));
    return std::make_unique<StoredStream>(*file, std::move(entry), header_.big_endian,
                                          std::string(name));
  }
  for (const TensorSlice& slice : entry.slices) {
    WEIR_ASSIGN_OR_RETURN(const BundleEntry part, PartEntry(name, entry, slice));
    WEIR_RETURN_IF_ERROR(CheckStored(EncodeSliceKey(name, slice), part));
  }
  CheckpointTensor tensor{std::string(name), entry.dtype, entry.shape, {}};
  return std::make_unique<BlockStream>(*this, std::move(tensor));
}

}  // namespace internal

absl::StatusOr<std::unique_ptr<TensorStream>> CheckpointReader::Stream(absl::string_view name) {
  WEIR_ASSIGN_OR_RETURN(Tensor tensor, Read(name));
  if (!IsPlain(tensor.dtype())) {
    return InvalidArgument("tensor ", name, " of type ", DataTypeName(tensor.dtype()),
                           " cannot be read in pieces");
  }
  return std::make_unique<internal::HeldStream>(std::move(tensor), std::string(name));
}

}  // namespace weir
