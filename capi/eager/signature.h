#ifndef WEIR_CAPI_EAGER_SIGNATURE_H_
#define WEIR_CAPI_EAGER_SIGNATURE_H_

#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "weir/core/graph/graph.h"

namespace weir::capi {

// What determines how an op is executed: the op, its device, the attributes, and the types of its
// inputs. Arguments set attributes too, and an attribute keeps the first value that is set, by
// either, as in TensorFlow's eager runtime.
class Signature {
 public:
  Signature() = default;
  explicit Signature(const OpSpec* op) : op_(op) {}

  // The op, or the record of the function's signature.
  const OpSpec* op() const { return op_; }
  const std::string& device() const { return device_; }
  void set_device(std::string device) { device_ = std::move(device); }

  // Sets an attribute, unless it is set, to a value that may be of any kind.
  void SetAttr(absl::string_view name, AttrValue value);
  // Adds the next argument, or one tensor of a list that is added one by one.
  void AddInput(DataType type);
  // Adds a list. INVALID_ARGUMENT if the signature has a single tensor there.
  absl::Status AddInputList(absl::Span<const DataType> types);

  // Returns all attributes that are set.
  AttrMap Attrs() const;
  // The same with the defaults of the op.
  AttrMap AttrsWithDefaults() const;
  // The types of all inputs.
  absl::Span<const DataType> types() const { return types_; }

  friend bool operator==(const Signature& a, const Signature& b);
  template <class H>
  friend H AbslHashValue(H h, const Signature& s) {
    return H::combine(std::move(h), s.Hash());
  }

 private:
  struct Argument {
    int end;  // of its inputs
    bool is_list;
    friend bool operator==(const Argument&, const Argument&) = default;
  };

  size_t Hash() const;
  // Calls visit(name, value) with each attribute that the arguments determine: those before the
  // first one that is a tensor of a list, added alone.
  template <class Visit>
  void VisitArgumentAttrs(Visit visit) const;
  // Whether the next argument is in its place in the signature.
  bool IsInPlace() const;

  const OpSpec* op_ = nullptr;
  std::string device_;
  absl::InlinedVector<Argument, 4> arguments_;
  absl::InlinedVector<DataType, 4> types_;
  absl::InlinedVector<std::pair<std::string, AttrValue>, 2> attrs_;  // set by name
};

}  // namespace weir::capi

#endif  // WEIR_CAPI_EAGER_SIGNATURE_H_
