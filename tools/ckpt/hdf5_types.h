#ifndef WEIR_TOOLS_CKPT_HDF5_TYPES_H_
#define WEIR_TOOLS_CKPT_HDF5_TYPES_H_

#include <hdf5/serial/hdf5.h>

#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "weir/core/tensor/dtype.h"
#include "weir/core/tensor/status.h"

// What the reader and the writer of HDF5 files share: handles, element types and selections.
namespace weir::tools {

// An object of HDF5's library, which is closed with this handle.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  // `id` is negative if the call that made it failed.
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept { *this = std::move(other); }
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  bool ok() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

// Stops the library from printing its errors, in this thread.
void SilenceHdf5Errors();
// Returns the innermost cause of the last failure of a call in this thread.
std::string LastHdf5Error();

// Whether an HDF5 file can hold the type as Keras and h5py do: numbers of the usual sizes, bool as
// an enumeration, complex numbers as pairs "r" and "i", bfloat16 as two opaque bytes.
bool Hdf5Holds(DataType dtype);
// Returns HDF5's type for a type that it holds. The bytes are those in memory.
Hdf5Handle Hdf5FileType(DataType dtype);
// Returns the type of the elements of a dataset; DT_INVALID if it has no dtype. Opaque bytes are
// bfloat16 if an attribute of the dataset says so (`is_bfloat16`).
DataType DtypeOfHdf5(hid_t type, bool is_bfloat16);
// Returns the type as which HDF5 delivers elements of the file's type, with the bytes of `dtype`.
Hdf5Handle Hdf5MemoryType(hid_t file_type, DataType dtype);

// Splits a range of elements, in row-major order, into boxes, which HDF5 can select: calls
// visit(start, size, elements) for each of them, in order.
absl::Status ForEachBox(
    absl::Span<const int64_t> dims, uint64_t first, uint64_t count,
    absl::FunctionRef<absl::Status(const hsize_t* start, const hsize_t* size, uint64_t elements)>
        visit);

// Reads or writes a range of elements of a dataset: `transfer` is called with the memory's space,
// the file's space and the offset of the elements in the range.
absl::Status TransferRange(
    hid_t dataset, absl::Span<const int64_t> dims, uint64_t first, uint64_t count,
    absl::FunctionRef<herr_t(hid_t memory, hid_t file, uint64_t offset)> transfer);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_HDF5_TYPES_H_
