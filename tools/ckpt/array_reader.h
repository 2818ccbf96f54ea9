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

// A tensor that is in memory. Plain types only.
std::unique_ptr<TensorStream> StreamOf(Tensor tensor);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_ARRAY_READER_H_
