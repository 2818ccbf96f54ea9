#include "weir/core/repeated_tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>

// How a value fills many pages and takes few. A graph keeps the initial value of a variable for as
// long as it lives, and the value of most biases, and of every optimizer's slot that starts from a
// constant, is one number as often as the variable has elements. So a 64th of the tensor is
// written to a file in memory, and mapped 64 times in a row: pages that look different to the
// program are the same ones to the processor, and nothing else has to know. They are mapped as the
// program's own: who writes to one gets a copy of that page, as after a fork.
//
// It is quicker than filling memory as well: no fresh pages but those of the file, and the system
// maps sixteen of these for each one that is read. Pieces are counted, not sized, because the
// number of mappings a process may have is limited (65,530 by default on Linux); a system without
// such files, or at its limits, gives ordinary memory. In what the system says a process has
// resident, pages count as often as they are mapped.
namespace weir {

namespace {

constexpr size_t kLeast = size_t{1} << 20, kMost = size_t{4} << 30;  // bytes of a tensor
constexpr size_t kPieces = 64, kGranule = size_t{64} << 10;

struct Mapping {
  void* data = nullptr;
  size_t bytes = 0;
};

// A file in memory with `bytes` bytes of the element over and over; -1 if the system has none.
int RepeatedFile(const Tensor& value, size_t bytes) {
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

// The first `piece` bytes of the file again and again. No data if the system does not go along.
Mapping MapOver(int file, size_t piece, size_t bytes) {
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

// Not initialized if it cannot be had.
Tensor MappedTensor(const Tensor& value, const Shape& shape, size_t bytes) {
  const size_t piece = (bytes / kPieces + kGranule) / kGranule * kGranule;
  const int file = RepeatedFile(value, piece);
  if (file < 0) return {};
  const Mapping mapping = MapOver(file, piece, bytes);
  close(file);  // the mappings keep it
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
  if (fits && bytes >= kLeast && bytes <= kMost) {
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
  for (size_t done = size; done < all;) {  // what is there already is copied as a whole
    const size_t more = std::min(done, all - done);
    std::memcpy(to + done, to, more);
    done += more;
  }
}

}  // namespace weir
