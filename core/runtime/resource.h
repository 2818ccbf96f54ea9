#ifndef WEIR_CORE_RUNTIME_RESOURCE_H_
#define WEIR_CORE_RUNTIME_RESOURCE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/tensor.h"

// State that outlives steps: variables, and what holds queues, tables and iterators too.
namespace WEIR_API weir {

class Device;

// State that outlives a step: a variable, a queue, a lookup table. Owned jointly by the ResourceMap
// of its device (or of all devices of a session) and by the handles in running steps.
class Resource {
 public:
  virtual ~Resource() = default;
  // A description for messages: "variable 'hidden/w'".
  virtual std::string Describe() const = 0;
  // Called when the resource is destroyed or its container is reset: frees memory and wakes
  // waiters.
  virtual void Clear() {}
};

// The storage of one variable, resource or reference variable: a tensor and a lock.
//
// A read returns the tensor itself, sharing its buffer, and a value never changes once read: a
// writer copies the buffer first if it is shared (copy-on-write), otherwise it writes in place.
// Uninitialized until the first assignment.
class VariableState final : public Resource {
 public:
  // An uninitialized variable. Made by the kernels of VarHandleOp and VariableV2.
  VariableState(std::string name, DataType dtype, Shape shape, bool on_host = true)
      : name_(std::move(name)), dtype_(dtype), shape_(std::move(shape)), on_host_(on_host) {}

  std::string Describe() const override { return "variable '" + name_ + "'"; }
  void Clear() override;
  // The name in its container, and the type of its values.
  const std::string& name() const { return name_; }
  DataType dtype() const { return dtype_; }
  // The declared shape; may be partly unknown.
  const Shape& shape() const { return shape_; }
  // True if values are in host memory rather than in an accelerator's.
  bool on_host() const { return on_host_; }

  // Serializes writers; readers of the value hold it briefly too. Updates (Apply*, Scatter*) hold
  // it while they write.
  Mutex& mutex() const ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

  // The functions below require mutex() to be held.
  // The value; an uninitialized tensor if there is none.
  bool initialized() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return value_.initialized(); }
  const Tensor& value() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return value_; }
  // Replaces the value. The tensor must own its memory (not a step's arena): see
  // KernelContext::Own.
  void Set(Tensor value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { value_ = std::move(value); }
  // Returns the value with an unshared buffer. A shared buffer is copied first, by `device`, whose
  // memory it is in. Returns FAILED_PRECONDITION if there is no value yet, RESOURCE_EXHAUSTED if
  // there is no memory for the copy.
  absl::StatusOr<Tensor*> Writable(Device& device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copies `value` into the variable: into the existing buffer if it is unshared and has the right
  // size, otherwise into a new one. The caller checks shapes.
  absl::Status Assign(const Tensor& value, Device& device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Returns a snapshot of the value; FAILED_PRECONDITION if there is none yet. Takes the lock.
  absl::StatusOr<Tensor> Read();
  // Whether it has a value. Takes the lock.
  bool IsInitialized();
  // Returns TensorFlow's error for an uninitialized variable.
  absl::Status Uninitialized() const;

 private:
  const std::string name_;
  const DataType dtype_;
  const Shape shape_;
  const bool on_host_;
  mutable Mutex mutex_;
  Tensor value_ ABSL_GUARDED_BY(mutex_);
};

// The resources of a session (or of a server's devices), by container, type and name. Thread-safe.
class ResourceMap {
 public:
  static constexpr char kDefaultContainer[] = "localhost";  // of resources whose nodes name none

  // Returns the resource of that name and type; creates it with `make` if it does not exist.
  template <class T>
  std::shared_ptr<T> LookupOrCreate(absl::string_view container, absl::string_view name,
                                    const std::function<std::shared_ptr<T>()>& make) {
    return std::static_pointer_cast<T>(
        LookupOrCreateErased(container, std::type_index(typeid(T)), name, [&] { return make(); }));
  }
  // Returns null if there is no such resource.
  template <class T>
  std::shared_ptr<T> Lookup(absl::string_view container, absl::string_view name) {
    return std::static_pointer_cast<T>(LookupErased(container, std::type_index(typeid(T)), name));
  }
  // Clears and removes all resources in these containers (empty list: in the default container).
  void Reset(const std::vector<std::string>& containers);
  // Returns all resources of type T, sorted by name.
  template <class T>
  std::vector<std::shared_ptr<T>> All() {
    std::vector<std::shared_ptr<T>> out;
    for (auto& r : AllErased(std::type_index(typeid(T))))
      out.push_back(std::static_pointer_cast<T>(r));
    return out;
  }

 private:
  using Key = std::pair<std::type_index, std::string>;
  std::shared_ptr<Resource> LookupOrCreateErased(
      absl::string_view container, std::type_index type, absl::string_view name,
      const std::function<std::shared_ptr<Resource>()>& make);
  std::shared_ptr<Resource> LookupErased(absl::string_view container, std::type_index type,
                                         absl::string_view name);
  std::vector<std::shared_ptr<Resource>> AllErased(std::type_index type);

  Mutex mutex_;
  std::map<std::string, std::map<Key, std::shared_ptr<Resource>>, std::less<>> containers_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir

#endif  // WEIR_CORE_RUNTIME_RESOURCE_H_
