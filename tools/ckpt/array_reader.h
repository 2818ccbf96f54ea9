#ifndef WEIR_TOOLS_CKPT_ARRAY_READER_H_
#define WEIR_TOOLS_CKPT_ARRAY_READER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/core/io/bundle.h"
#include "weir/core/io/npy.h"

// What the readers of formats with whole tensors share.
namespace weir::tools {

// Whether the first bytes of a file are these.
bool BeginsWith(const ReadableFile& file, absl::string_view bytes);

// A reader whose tensors are known when it is opened. A derived class adds them, and implements
// Stream, which fails for a tensor that the file does not have room for; for strings also Read.
class ArrayReader : public CheckpointReader {
 public:
  explicit ArrayReader(std::string path) : path_(std::move(path)) {}
  absl::StatusOr<std::vector<CheckpointTensor>> List() override;
  absl::StatusOr<CheckpointTensor> Find(absl::string_view name) override;
  // Reads through Stream.
  absl::StatusOr<Tensor> Read(absl::string_view name) override;
  absl::Status Check(absl::string_view name) override;
  absl::StatusOr<Tensor> ReadSlice(absl::string_view name, const TensorSlice& slice) override;
  absl::StatusOr<std::unique_ptr<TensorStream>> Stream(absl::string_view name) override = 0;

 protected:
  // INVALID_ARGUMENT for a second tensor of one name.
  absl::Status Add(const std::string& name, DataType dtype, const Shape& shape);
  const std::string& path() const { return path_; }
  // DATA_LOSS with the path.
  template <class... Args>
  absl::Status Bad(const Args&... why) const {
    return DataLoss(path_, ": ", why...);
  }

 private:
  const std::string path_;
  std::map<std::string, CheckpointTensor, std::less<>> tensors_;
};

// The elements of a part of a file: `size` bytes at `offset`, as they are in memory. The file
// outlives the stream. DATA_LOSS if the file is shorter.
class FileStream : public TensorStream {
 public:
  static absl::StatusOr<std::unique_ptr<FileStream>> Open(const ReadableFile& file, uint64_t offset,
                                                          uint64_t size);
  absl::Status Read(size_t size, char* out) override;

 private:
  FileStream(const ReadableFile& file, uint64_t offset, uint64_t size)
      : file_(file), offset_(offset), missing_(size) {}
  const ReadableFile& file_;
  uint64_t offset_, missing_;
};

// The bytes of another stream, which has `size` bytes and is read in large pieces.
class ReadAheadStream : public TensorStream {
 public:
  ReadAheadStream(std::unique_ptr<TensorStream> from, uint64_t size)
      : from_(std::move(from)), left_(size) {}
  absl::Status Read(size_t size, char* out) override;

 private:
  const std::unique_ptr<TensorStream> from_;
  uint64_t left_;  // in from_
  std::vector<char> buffer_;
  size_t at_ = 0;
};

// The elements of an array as a .npy file stores them, from a stream of its bytes after the header.
// The array is in row-major order and of plain type.
class NpyStream : public TensorStream {
 public:
  NpyStream(const NpyHeader& header, std::unique_ptr<TensorStream> bytes)
      : header_(header), bytes_(std::move(bytes)) {}
  absl::Status Read(size_t size, char* out) override;

 private:
  const NpyHeader header_;
  const std::unique_ptr<TensorStream> bytes_;
};

// Reads the header from a stream of a .npy file of `size` bytes, which then is at the first
// element. Checks that as many bytes follow as the header says: so nothing is allocated for a shape
// that the file has no room for. Messages begin with `what`.
absl::StatusOr<NpyHeader> ReadNpyHeader(TensorStream& file, uint64_t size, absl::string_view what);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_ARRAY_READER_H_
