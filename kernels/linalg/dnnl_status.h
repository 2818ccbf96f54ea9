#ifndef WEIR_KERNELS_LINALG_DNNL_STATUS_H_
#define WEIR_KERNELS_LINALG_DNNL_STATUS_H_

#include <memory>
#include <mutex>

#include "weir/core/tensor/status.h"
#include "weir/kernels/linalg/dnnl.h"

namespace weir {

// Converts a oneDNN status: RESOURCE_EXHAUSTED if out of memory, otherwise INTERNAL.
inline absl::Status DnnlStatus(dnnl_status_t status, absl::string_view what) {
  if (status == dnnl_success) return absl::OkStatus();
  if (status == dnnl_out_of_memory)
    return absl::ResourceExhaustedError(
        absl::StrCat("oneDNN ran out of memory and failed to ", what));
  return Internal("oneDNN failed to ", what, " (status ", static_cast<int>(status), ")");
}

template <auto kDestroy>
struct DnnlDestroy {
  template <class T>
  void operator()(T* p) const {
    (*kDestroy)(p);
  }
};
using DnnlMemory = std::unique_ptr<dnnl_memory, DnnlDestroy<&dnnl::memory_destroy>>;
using DnnlPrimitive = std::unique_ptr<dnnl_primitive, DnnlDestroy<&dnnl::primitive_destroy>>;
using DnnlPrimitiveDesc =
    std::unique_ptr<dnnl_primitive_desc, DnnlDestroy<&dnnl::primitive_desc_destroy>>;
using DnnlAttributes =
    std::unique_ptr<dnnl_primitive_attr, DnnlDestroy<&dnnl::primitive_attr_destroy>>;

// Returns the CPU engine, or null if oneDNN cannot create one.
dnnl_engine_t DnnlEngine();
// Returns the calling thread's stream, or null. oneDNN calls from this thread use a single thread.
dnnl_stream_t DnnlThreadStream();
absl::StatusOr<DnnlMemory> DnnlWrap(const dnnl_memory_desc_t& desc, const void* data);
// Creates primitive attributes: user-managed scratchpad, and whether to accumulate into the
// destination. Null if oneDNN is out of memory.
DnnlAttributes MakeDnnlAttributes(bool add);
// Creates a primitive that converts between two layouts. Null if there is none.
DnnlPrimitive MakeDnnlReorder(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to);

// The first error of work shared by several threads.
class FirstError {
 public:
  void Note(absl::Status status) {
    if (status.ok()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
  }
  // Call when all threads are done.
  const absl::Status& status() const { return status_; }

 private:
  std::mutex mutex_;
  absl::Status status_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_LINALG_DNNL_STATUS_H_
