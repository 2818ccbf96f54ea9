#ifndef WEIR_CORE_RESOURCE_H_
#define WEIR_CORE_RESOURCE_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <vector>

#include "weir/core/resource_handle.h"
#include "weir/core/tensor.h"

namespace weir {

class Device;

// State that outlives a run: a variable, a queue, a table. Owned by the ResourceMap of its device
// (or shared by all of a session's devices), and by whoever holds a handle in a running step.
class Resource {
 public:
  virtual ~Resource() = default;
  // "variable 'hidden/w'", for messages.
  virtual std::string Describe() const = 0;
  // Called when the resource is destroyed or its container reset: gives up memory, wakes those who
  // wait.
  virtual void Clear() {}
};

// The storage of one variable, of either kind: a tensor and a lock.
//
// Reads hand out the tensor itself, sharing its buffer; so a value once read never changes. A
// writer that finds the buffer shared copies it first, and otherwise writes in place. Uninitialized
// until the first assignment.
class VariableState final : public Resource {
 public:
  VariableState(std::string name, DataType dtype, Shape shape, bool on_host = true)
      : name_(std::move(name)), dtype_(dtype), shape_(std::move(shape)), on_host_(on_host) {}

  std::string Describe() const override { return "variable '" + name_ + "'"; }
  void Clear() override;
  const std::string& name() const { return name_; }
  DataType dtype() const { return dtype_; }
  // As declared; may be partly unknown.
  const Shape& shape() const { return shape_; }
  // Values lie in host memory, not in an accelerator's.
  bool on_host() const { return on_host_; }

  // Serializes writers; readers of the value take it too, briefly. Updates (Apply*, Scatter*) hold
  // it while they write.
  std::mutex& mutex() { return mutex_; }

  // The following need mutex() held.
  bool initialized() const { return value_.initialized(); }
  const Tensor& value() const { return value_; }
  // Replaces the value. The tensor must own its memory (not a step's arena): see
  // KernelContext::Own.
  void Set(Tensor value) { value_ = std::move(value); }
  // The value, with its buffer not shared with anyone: copied first if it is, by `device`, whose
  // memory it lies in. FAILED_PRECONDITION if there is no value yet, RESOURCE_EXHAUSTED if there is
  // no room for the copy.
  absl::StatusOr<Tensor*> Writable(Device& device);
  // Copies `value` into the variable: into the buffer at hand if nobody shares it and the size
  // fits, else a new one. Shapes are the caller's business.
  absl::Status Assign(const Tensor& value, Device& device);

  // A snapshot; FAILED_PRECONDITION if there is no value yet. Takes the lock.
  absl::StatusOr<Tensor> Read();
  bool IsInitialized();
  // The error for a variable without a value, with TensorFlow's words.
  absl::Status Uninitialized() const;

 private:
  const std::string name_;
  const DataType dtype_;
  const Shape shape_;
  const bool on_host_;
  std::mutex mutex_;
  Tensor value_;
};

// The resources of a session (or of a server's devices), by container, type and name. Thread-safe.
class ResourceMap {
 public:
  static constexpr char kDefaultContainer[] = "localhost";

  // The resource of that name and type, made with `make` if there is none yet.
  template <class T>
  std::shared_ptr<T> LookupOrCreate(absl::string_view container, absl::string_view name,
                                    const std::function<std::shared_ptr<T>()>& make) {
    return std::static_pointer_cast<T>(
        LookupOrCreateErased(container, std::type_index(typeid(T)), name, [&] { return make(); }));
  }
  // Null if there is none.
  template <class T>
  std::shared_ptr<T> Lookup(absl::string_view container, absl::string_view name) {
    return std::static_pointer_cast<T>(LookupErased(container, std::type_index(typeid(T)), name));
  }
  // Clears and forgets everything in these containers (empty list: the default one).
  void Reset(const std::vector<std::string>& containers);
  // All resources of type T, sorted by name.
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

  std::mutex mutex_;
  std::map<std::string, std::map<Key, std::shared_ptr<Resource>>, std::less<>> containers_;
};

}  // namespace weir

#endif  // WEIR_CORE_RESOURCE_H_
