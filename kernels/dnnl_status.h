#ifndef WEIR_KERNELS_DNNL_STATUS_H_
#define WEIR_KERNELS_DNNL_STATUS_H_

#include <dnnl.h>

#include <mutex>

#include "weir/core/status.h"

namespace weir {

// What oneDNN answers, as a Status: RESOURCE_EXHAUSTED without memory, else INTERNAL.
inline absl::Status DnnlStatus(dnnl_status_t status, absl::string_view what) {
  if (status == dnnl_success) return absl::OkStatus();
  if (status == dnnl_out_of_memory)
    return absl::ResourceExhaustedError(absl::StrCat("oneDNN has no memory to ", what));
  return Internal("oneDNN failed to ", what, " (status ", static_cast<int>(status), ")");
}

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
