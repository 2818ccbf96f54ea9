#ifndef WEIR_KERNELS_DNNL_STATUS_H_
#define WEIR_KERNELS_DNNL_STATUS_H_

#include <memory>
#include <mutex>

#include "weir/core/status.h"
#include "weir/kernels/dnnl.h"

namespace weir {

// What oneDNN answers, as a Status: RESOURCE_EXHAUSTED without memory, else INTERNAL.
inline absl::Status DnnlStatus(dnnl_status_t status, absl::string_view what) {
  if (status == dnnl_success) return absl::OkStatus();
  if (status == dnnl_out_of_memory)
    return absl::ResourceExhaustedError(absl::StrCat("oneDNN has no memory to ", what));
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

// The CPU, or null if oneDNN cannot make an engine.
dnnl_engine_t DnnlEngine();
// The calling thread's stream, or null; oneDNN uses one thread when called from it.
dnnl_stream_t DnnlThreadStream();
absl::StatusOr<DnnlMemory> DnnlWrap(const dnnl_memory_desc_t& desc, const void* data);
// A primitive is to run in memory of ours, and to add to what is there already, or not. Null if
// oneDNN has no memory.
DnnlAttributes MakeDnnlAttributes(bool add);
// A primitive that copies from one layout to the other; null if there is none.
DnnlPrimitive MakeDnnlReorder(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to);

// The first error of work that several threads share.
class FirstError {
 public:
  void Note(absl::Status status) {
    if (status.ok()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
  }
  // Once all are done.
  const absl::Status& status() const { return status_; }

 private:
  std::mutex mutex_;
  absl::Status status_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_DNNL_STATUS_H_
