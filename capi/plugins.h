#ifndef WEIR_CAPI_PLUGINS_H_
#define WEIR_CAPI_PLUGINS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/c/kernels.h"
#include "weir/core/graph/op.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/mutex.h"

// Ops and kernels that plug-ins and programs register through ops.h and kernels.h. That API
// registers for the whole process, at any time: this is the only place of Weir with such state.
namespace weir::capi {

// A kernel as a plug-in has registered it.
struct PluginKernel {
  // Returns whether the kernel is for this node: its attributes have the types and the label.
  bool IsFor(const Node& node) const;

  std::string op, device, label;
  int32_t priority = 0;
  std::vector<std::pair<std::string, DataTypes>> constraints;  // attribute -> one of these types
  std::vector<std::string> host_args;
  void* (*create)(TF_OpKernelConstruction*) = nullptr;
  // One of the two is set.
  void (*compute)(void*, TF_OpKernelContext*) = nullptr;
  void (*compute_async)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*) = nullptr;
  void (*destroy)(void*) = nullptr;
};

// Creates the kernel of a node. `kernel` outlives it.
absl::StatusOr<Kernel> MakeKernel(const PluginKernel& kernel, const KernelInit& init);

// The registered ops and kernels. Nothing is ever removed: graphs and sessions refer to it. So that
// lookups take no lock, each registration adds a layer to the registries. Thread-safe.
class Plugins {
 public:
  // The one of the process.
  static Plugins& Instance();

  // The built-in ops and kernels, and those of plug-ins. For all graphs and sessions of the API.
  const OpRegistry& ops() const { return ops_; }
  const KernelRegistry& kernels() const { return kernels_; }

  // Adds an op. INVALID_ARGUMENT for a mistake in it, ALREADY_EXISTS if there is another of its
  // name; OK if a built-in op is the same.
  absl::Status AddOp(OpSpec op);
  // Adds a kernel. One for the CPU and a built-in op is ignored, with a line in the log:
  // TensorFlow, loaded after this library into the global scope, registers kernels of its own here,
  // and ends the process if it cannot.
  absl::Status AddKernel(PluginKernel kernel);

  // Returns the ops in the order of their registration, from the one with this number on.
  std::vector<const OpSpec*> OpsFrom(size_t first) const;
  // Returns the kernels of an op; of all ops if the name is empty.
  std::vector<const PluginKernel*> KernelsOf(absl::string_view op) const;

 private:
  Plugins();
  // Creates the kernel of a node by the registration of the highest priority.
  absl::StatusOr<Kernel> Make(const std::string& op, const KernelInit& init) const;

  OpRegistry ops_;
  KernelRegistry kernels_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<OpRegistry>> op_layers_ ABSL_GUARDED_BY(mutex_);
  std::vector<const OpSpec*> op_list_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<KernelRegistry>> kernel_layers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<std::unique_ptr<const PluginKernel>>, std::less<>> by_op_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::capi

#endif  // WEIR_CAPI_PLUGINS_H_
