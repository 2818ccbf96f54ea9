#include "weir/core/tensor/repeated_tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>

// Aliased pages: a tensor of one repeated value takes many virtual pages but few physical ones. A
// graph keeps the initial value of a variable as long as it lives, and most biases, and the slot
// variables that start from a constant, are initialized to one number repeated for every element.
// So 1/64 of the tensor is written to an in-memory file (memfd) and mapped 64 times in a row: the
// virtual pages differ, the physical pages are the same, and no other code has to know. The
// mappings are private (copy-on-write), so a writer gets its own copy of a page, as after a fork.
//
// This is also faster than filling memory: only the file's pages are fresh, and the kernel maps
// sixteen pages per fault. The number of mappings per tensor is fixed, not their size, because the
// number of mappings per process is limited (65,530 by default on Linux). Without memfd, or at a
// limit, the tensor gets ordinary memory. The resident set size that the system reports for a
// process counts such a page once per mapping.
namespace weir {

namespace {

// Size of the tensor in bytes.
constexpr size_t kMinBytes = size_t{1} << 20, kMaxBytes = size_t{4} << 30;
constexpr size_t kPieces = 64, kGranule = size_t{64} << 10;

struct Mapping {
  void* data = nullptr;
  size_t bytes = 0;
};

// Creates an in-memory file with `bytes` bytes of the repeated element. Returns -1 on failure.
int CreateRepeatedFile(const Tensor& value, size_t bytes) {
  const int file = memfd_create("weir repeated tensor", MFD_CLOEXEC);
  if (file < 0) return -1;
  void* const data = ftruncate(file, static_cast<off_t>(bytes)) == 0
                         ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                         : MAP_FAILED;
  if (data == MAP_FAILED) {
    close(file);
    return -1;
  }
  const size_t size = ElementSize(value.dtype());
  RepeatElement(value.raw(), size, data, static_cast<int64_t>(bytes / size));
  munmap(data, bytes);
  return file;
}

// Maps the first `piece` bytes of the file repeatedly. Returns null data on failure.
Mapping MapRepeatedly(int file, size_t piece, size_t bytes) {
  void* const data =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return {};
  for (size_t at = 0; at < bytes; at += piece) {
    if (mmap(static_cast<char*>(data) + at, std::min(piece, bytes - at), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) == MAP_FAILED) {
      munmap(data, bytes);
      return {};
    }
  }
  return {data, bytes};
}

void Unmap(void* mapping) {
  const std::unique_ptr<Mapping> owned(static_cast<Mapping*>(mapping));
  munmap(owned->data, owned->bytes);
}

// Returns an uninitialized tensor on failure.
Tensor MappedTensor(const Tensor& value, const Shape& shape, size_t bytes) {
  const size_t piece = (bytes / kPieces + kGranule) / kGranule * kGranule;
  const int file = CreateRepeatedFile(value, piece);
  if (file < 0) return {};
  const Mapping mapping = MapRepeatedly(file, piece, bytes);
  close(file);  // the mappings keep the file alive
  if (mapping.data == nullptr) return {};
  BufferPtr buffer(Buffer::Wrap(mapping.data, bytes, nullptr, Unmap, new Mapping(mapping)));
  return Tensor(value.dtype(), shape, std::move(buffer), mapping.data);
}

}  // namespace

absl::StatusOr<Tensor> RepeatedTensor(const Tensor& value, const Shape& shape) {
  assert(value.num_elements() == 1 && IsPlain(value.dtype()));
  const size_t size = ElementSize(value.dtype());
  size_t bytes = 0;
  const bool fits =
      shape.IsFullyDefined() &&
      !__builtin_mul_overflow(static_cast<size_t>(shape.num_elements()), size, &bytes);
  if (fits && bytes >= kMinBytes && bytes <= kMaxBytes) {
    if (Tensor mapped = MappedTensor(value, shape, bytes); mapped.initialized()) return mapped;
  }
  WEIR_ASSIGN_OR_RETURN(Tensor filled, Tensor::Allocate(HostAllocator(), value.dtype(), shape));
  RepeatElement(value.raw(), size, filled.raw(), filled.num_elements());
  return filled;
}

void RepeatElement(const void* value, size_t size, void* out, int64_t count) {
  if (count == 0) return;
  char* const to = static_cast<char*>(out);
  std::memcpy(to, value, size);
  const size_t all = static_cast<size_t>(count) * size;
  for (size_t done = size; done < all;) {  // doubles the filled part by copying it
    const size_t more = std::min(done, all - done);
    std::memcpy(to + done, to, more);
    done += more;
  }
}

}  // namespace weir
