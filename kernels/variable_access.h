#ifndef WEIR_KERNELS_VARIABLE_ACCESS_H_
#define WEIR_KERNELS_VARIABLE_ACCESS_H_

#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "weir/core/kernel.h"

namespace weir {

// A session has a map of its own for what belongs to its nodes: random streams, iterators, queues
// without a shared_name. Sessions of a server share a second map for what has a name that holds for
// all of them: variables, and resources with a shared_name. The session's map knows the other one.

// Lets a session's map share `shared`. To be called before kernels are made.
void ShareState(ResourceMap& session, std::shared_ptr<ResourceMap> shared);
// The map that a session's map shares, or the session's map itself if it shares none.
ResourceMap& SharedState(ResourceMap& session);

// The variables at the first inputs of a kernel, locked until this goes out of scope. The kernels
// of reference and of resource variables differ only in the words of the error for a variable
// without a value.
class LockedVariables {
 public:
  // Locks inputs [0, count), each variable once, in an order that is the same for all kernels, so
  // that two of them cannot wait for each other. INVALID_ARGUMENT for an input that is no variable,
  // of another dtype than `dtype`, or on another device.
  static absl::StatusOr<LockedVariables> Lock(const KernelContext& c, int count, DataType dtype);

  VariableState& operator[](int i) const { return *states_[static_cast<size_t>(i)]; }
  // FAILED_PRECONDITION, in TensorFlow's words, if variable i has no value.
  absl::Status CheckInitialized(const KernelContext& c, int i) const;
  // Its value, ready to be written.
  absl::StatusOr<Tensor*> Writable(const KernelContext& c, int i) const;

 private:
  absl::InlinedVector<VariableState*, 4> states_;
  absl::InlinedVector<std::unique_lock<std::mutex>, 4> locks_;
};

// INVALID_ARGUMENT, in TensorFlow's words, if a value of this shape cannot be assigned: a resource
// variable takes what fits its declared shape (and with validate_shape what has the shape of its
// value), a reference what has the shape of its value, or any shape without validate_shape. Needs
// the lock.
absl::Status CheckAssignable(const VariableState& v, const Shape& shape, bool is_ref,
                             bool validate_shape);

// INVALID_ARGUMENT, naming both devices, if the value of variable i of a kernel lies in memory that
// the kernel's device cannot use: a handle was fed that came from elsewhere. Needs the lock.
absl::Status CheckReachable(const KernelContext& c, int i, const VariableState& variable);

// The error for reading variable i of a kernel, which has no value.
absl::Status UninitializedVariable(const KernelContext& c, int i, const VariableState& variable);

}  // namespace weir

#endif  // WEIR_KERNELS_VARIABLE_ACCESS_H_
