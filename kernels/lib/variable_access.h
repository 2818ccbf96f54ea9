#ifndef WEIR_KERNELS_LIB_VARIABLE_ACCESS_H_
#define WEIR_KERNELS_LIB_VARIABLE_ACCESS_H_

#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/mutex.h"

namespace weir {

// A session has its own resource map for the state of its nodes: random streams, iterators, queues
// without a shared_name. Sessions of a server share a second map for resources whose names are
// global: variables, and resources with a shared_name. The session's map refers to the shared one.

// Lets a session's map share `shared`. Must be called before kernels are created.
void ShareState(ResourceMap& session, std::shared_ptr<ResourceMap> shared);
// Returns the map that a session's map shares, or the session's map itself if it shares none.
ResourceMap& SharedState(ResourceMap& session);

// The variables at the first inputs of a kernel, locked until this goes out of scope. The kernels
// of reference and of resource variables differ only in the error text for a variable without a
// value.
class LockedVariables {
 public:
  // Locks inputs [0, count), each variable once, in an order that is the same for all kernels, so
  // that two kernels cannot deadlock. Returns INVALID_ARGUMENT for an input that is not a variable,
  // has another dtype than `dtype`, or is on another device.
  static absl::StatusOr<LockedVariables> Lock(const KernelContext& c, int count, DataType dtype);

  VariableState& operator[](int i) const { return *states_[static_cast<size_t>(i)]; }
  // Returns FAILED_PRECONDITION, in TensorFlow's words, if variable i has no value.
  absl::Status CheckInitialized(const KernelContext& c, int i) const;
  // Returns the variable's value for writing.
  absl::StatusOr<Tensor*> Writable(const KernelContext& c, int i) const;

 private:
  absl::InlinedVector<VariableState*, 4> states_;
  absl::InlinedVector<std::unique_lock<Mutex>, 4> locks_;
};

// Returns INVALID_ARGUMENT, in TensorFlow's words, if a value of this shape cannot be assigned. A
// resource variable accepts shapes compatible with its declared shape (and with validate_shape only
// the shape of its value). A reference accepts the shape of its value, or any shape without
// validate_shape. Requires the lock.
absl::Status CheckAssignable(const VariableState& v, const Shape& shape, bool is_ref,
                             bool validate_shape);

// Returns INVALID_ARGUMENT, naming both devices, if the value of variable i of a kernel is in
// memory that the kernel's device cannot access: a handle from elsewhere was fed. Requires the
// lock.
absl::Status CheckReachable(const KernelContext& c, int i, const VariableState& variable);

// Returns the error for reading variable i of a kernel, which has no value.
absl::Status UninitializedVariable(const KernelContext& c, int i, const VariableState& variable);

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_VARIABLE_ACCESS_H_
