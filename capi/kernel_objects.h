#ifndef WEIR_CAPI_KERNEL_OBJECTS_H_
#define WEIR_CAPI_KERNEL_OBJECTS_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/capi/objects.h"
#include "weir/capi/plugins.h"

// The objects behind what the functions of a plug-in's kernel get.
namespace weir::capi {

// A kernel of a node: the plug-in's state, and the names of the inputs as a NodeDef has them.
struct KernelInstance {
  explicit KernelInstance(const PluginKernel& of) : kernel(of) {}
  ~KernelInstance() {
    if (kernel.destroy != nullptr) kernel.destroy(state);
  }
  KernelInstance(const KernelInstance&) = delete;
  KernelInstance& operator=(const KernelInstance&) = delete;

  const PluginKernel& kernel;
  void* state = nullptr;
  std::vector<std::string> inputs;
};

}  // namespace weir::capi

struct TF_OpKernelConstruction {
  const weir::KernelInit& init;
  absl::Status error;  // the first that the plug-in reports
};

struct TF_OpKernelContext {
  TF_OpKernelContext(weir::KernelContext& c, std::shared_ptr<const weir::capi::KernelInstance> i)
      : context(c), instance(std::move(i)), outputs(c.num_outputs()), strings(c.num_outputs()) {}
  TF_OpKernelContext(const TF_OpKernelContext&) = delete;
  TF_OpKernelContext& operator=(const TF_OpKernelContext&) = delete;

  // Sets the outputs that are strings allocated by the plug-in, and returns its error.
  absl::Status Finish();

  weir::KernelContext& context;
  const std::shared_ptr<const weir::capi::KernelInstance> instance;
  absl::Status error;                            // the first that the plug-in reports
  absl::InlinedVector<weir::Tensor, 2> outputs;  // as set
  // Those that the plug-in writes its strings into: until Finish, the output is not set.
  absl::InlinedVector<std::unique_ptr<TF_Tensor>, 2> strings;
};

#endif  // WEIR_CAPI_KERNEL_OBJECTS_H_
