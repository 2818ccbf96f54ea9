#include <chrono>

#include "weir/kernels/lib/registry.h"

namespace weir {

namespace {

absl::StatusOr<Kernel> MakeAbort(const KernelInit& init) {
  std::string message = init.attr<std::string>("error_msg");
  if (message.empty()) message = "Abort_op intentional failure; define exit code";
  return Kernel([message](KernelContext&) -> absl::Status {
    return absl::AbortedError(absl::StrCat(message, " (the process continues)"));
  });
}

absl::Status Timestamp(KernelContext& c) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  c.SetOutput(0, Tensor::Scalar(std::chrono::duration<double>(now).count()));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeFact(const KernelInit&) {
  return Kernel::Constant(Tensor::Scalar(std::string("0! == 1")));
}

}  // namespace

void AddProcessKernels(KernelRegistry* r) {
  r->Add("Abort", kCpu, MakeAbort);
  r->Add("Timestamp", kCpu, Timestamp);
  r->Add("Fact", kCpu, MakeFact);
}

}  // namespace weir
