#ifndef WEIR_CAPI_EAGER_SIGNATURE_H_
#define WEIR_CAPI_EAGER_SIGNATURE_H_

#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "weir/core/graph/graph.h"

namespace weir::capi {

// What determines how an op is executed: the op, its device, the attributes that were set, and the
// types of its inputs. Arguments set attributes too, as TensorFlow's eager runtime does it: the
// first argument with an attribute sets it over what was set before, and a later setting replaces
// that. So the order of settings and arguments is part of a signature.
class Signature {
 public:
  Signature() = default;
  explicit Signature(const OpSpec* op) : op_(op) {}

  // The op, or the record of the function's signature.
  const OpSpec* op() const { return op_; }
  const std::string& device() const { return device_; }
  void set_device(std::string device) { device_ = std::move(device); }

  // Sets an attribute to a value that may be of any kind.
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
    int attrs_before;  // number of attributes that were set before it
    friend bool operator==(const Argument&, const Argument&) = default;
  };

  size_t Hash() const;
  // Whether argument i determines attributes: until the tensors of a list are added one by one.
  bool Determines(size_t i) const;
  void SetFromArgument(size_t i, absl::InlinedVector<absl::string_view, 4>* set,
                       AttrMap* attrs) const;

  const OpSpec* op_ = nullptr;
  std::string device_;
  absl::InlinedVector<Argument, 4> arguments_;
  absl::InlinedVector<DataType, 4> types_;
  absl::InlinedVector<std::pair<std::string, AttrValue>, 2> attrs_;  // as set, oldest first
};

}  // namespace weir::capi

#endif  // WEIR_CAPI_EAGER_SIGNATURE_H_
