#ifndef WEIR_CORE_GRAPH_ATTR_H_
#define WEIR_CORE_GRAPH_ATTR_H_

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/core/tensor/dtype.h"
#include "weir/core/tensor/shape.h"
#include "weir/core/tensor/status.h"
#include "weir/core/tensor/tensor.h"

// Attributes: values, maps and declarations, with the kinds and the text forms of TensorFlow's.
namespace WEIR_API weir {

class AttrMap;

// A function name with values for the function's attributes (NameAttrList on the wire).
struct FunctionRef {
  std::string name;                      // of a function in the graph's library
  std::shared_ptr<const AttrMap> attrs;  // null if there are none
  friend bool operator==(const FunctionRef& a, const FunctionRef& b);
};

// A symbol that is replaced when a function is instantiated (AttrValue.placeholder on the wire).
struct AttrPlaceholder {
  std::string name;  // of the attribute whose value replaces it
  friend bool operator==(const AttrPlaceholder&, const AttrPlaceholder&) = default;
};

// The value of a node's attribute: one of TensorFlow's attribute kinds, or a list of one kind. An
// empty list has no kind (EmptyList) until an op's signature gives it one; get<std::vector<T>>
// accepts it for every T.
class AttrValue {
 public:
  // A list that has no elements, and so no kind.
  struct EmptyList {
    friend bool operator==(EmptyList, EmptyList) { return true; }
  };
  // The alternatives. A list of several kinds does not exist.
  using Value = std::variant<std::monostate, std::string, int64_t, float, bool, DataType, Shape,
                             Tensor, FunctionRef, AttrPlaceholder, EmptyList,
                             std::vector<std::string>, std::vector<int64_t>, std::vector<float>,
                             std::vector<bool>, std::vector<DataType>, std::vector<Shape>,
                             std::vector<Tensor>, std::vector<FunctionRef>>;

  // Defined out of line: otherwise every source file that builds a node would compile the copies
  // and destructors of a variant with nineteen alternatives.
  AttrValue();
  ~AttrValue();
  AttrValue(const AttrValue& other);
  AttrValue(AttrValue&& other) noexcept;
  AttrValue& operator=(const AttrValue& other);
  AttrValue& operator=(AttrValue&& other) noexcept;
  // A value of each kind. An int becomes an int64, a string literal a string.
  AttrValue(absl::string_view s);
  AttrValue(const char* s);
  AttrValue(std::string s);
  AttrValue(int i);
  AttrValue(int64_t i);
  AttrValue(float f);
  AttrValue(bool b);
  AttrValue(DataType t);
  AttrValue(Shape s);
  AttrValue(Tensor t);
  AttrValue(FunctionRef f);
  AttrValue(AttrPlaceholder p);
  AttrValue(EmptyList e);
  template <class T>
  AttrValue(std::vector<T> list);  // for the list kinds above

  // Whether the value is of this kind: is<int64_t>().
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  // Returns null if the value is of another kind.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&value_);
  }
  // The variant, for std::visit.
  const Value& value() const { return value_; }

  friend bool operator==(const AttrValue& a, const AttrValue& b);
  friend bool operator!=(const AttrValue& a, const AttrValue& b) { return !(a == b); }
  // Text for messages and `weir graph show`: DT_FLOAT, "SAME", [1, 2], <Tensor: float[2,3]>.
  std::string ToString() const;

 private:
  Value value_;
};

// A map of attributes, sorted by name. It is a sorted vector with a map's interface, because a node
// has few attributes and a graph has many nodes. Copies share memory (copy-on-write): changing a
// map that shares its attributes copies them and invalidates its iterators.
class AttrMap {
 public:
  using value_type = std::pair<std::string, AttrValue>;
  using const_iterator = std::vector<value_type>::const_iterator;

  AttrMap();
  ~AttrMap();
  AttrMap(const AttrMap& other);
  AttrMap(AttrMap&& other) noexcept;
  AttrMap& operator=(const AttrMap& other);
  AttrMap& operator=(AttrMap&& other) noexcept;
  // Creates a map of these attributes, in any order; of several with one name the first is kept.
  AttrMap(std::initializer_list<value_type> attrs);

  // In the order of names. find returns end() if there is no such attribute.
  const_iterator begin() const { return attrs().begin(); }
  const_iterator end() const { return attrs().end(); }
  size_t size() const { return attrs().size(); }
  bool empty() const { return attrs().empty(); }
  // Allocates memory for `size` attributes.
  void reserve(size_t size);

  const_iterator find(absl::string_view name) const;

  // Adds an attribute; does not replace an existing one. Returns its place, and whether it was
  // added.
  std::pair<const_iterator, bool> emplace(absl::string_view name, AttrValue value);
  std::pair<const_iterator, bool> insert(const value_type& attr);
  // Adds or replaces an attribute. operator[] adds an attribute without a value if there is none.
  void insert_or_assign(absl::string_view name, AttrValue value);
  AttrValue& operator[](absl::string_view name);

  friend bool operator==(const AttrMap& a, const AttrMap& b);

 private:
  using Attrs = std::vector<value_type>;
  static const Attrs& None();
  const Attrs& attrs() const { return attrs_ == nullptr ? None() : *attrs_; }
  Attrs& own();
  size_t LowerBound(absl::string_view name) const;

  std::shared_ptr<Attrs> attrs_;  // null while empty
};

// Returns true if one of the attributes is a tensor. Tensors may be large, so code that compares or
// caches many attributes skips them.
bool AnyIsTensor(AttrMap::const_iterator begin, AttrMap::const_iterator end);

// The declaration of one attribute in an op's signature, parsed from text such as
//   "T: {half, float, double} = DT_FLOAT"     "dtype: type"
//   "N: int >= 1"                             "padding: {'SAME', 'VALID'}"
//   "shape: shape = {unknown_rank: true}"     "strides: list(int) >= 4"
//   "transpose_a: bool = false"               "f: func"
//   "Tin: list({float, int32}) >= 1"          "T: {numbertype, quantizedtype}"
//   "T: realnumbertype"
// Defaults: numbers, true/false, 'text', DT_NAMES, lists in [], shapes as "[2,?]" or {unknown_rank:
// true} or {}, and integer tensors as "{ dtype: DT_UINT8 tensor_shape { dim { size: 1 } } int_val:
// 255 }" (only ImageSummary has one).
struct AttrSpec {
  // The kinds of values.
  enum class Kind { kString, kInt, kFloat, kBool, kType, kShape, kTensor, kFunction };
  std::string name;                          // "T"
  Kind kind = Kind::kType;                   // of the value, or of the elements of a list
  bool is_list = false;                      // declared as "list(...)"
  std::optional<int64_t> minimum;            // of the integer, or of the list's length
  DataTypes allowed_types;                   // empty: all types
  std::vector<std::string> allowed_strings;  // empty: all strings
  std::optional<AttrValue> default_value;    // unset: nodes must give a value

  // Parses a declaration as above. Returns INVALID_ARGUMENT, with the text, if it is malformed.
  static absl::StatusOr<AttrSpec> Parse(absl::string_view text);
  // The wire name of the attribute's type: "type", "list(int)", ...
  std::string TypeName() const;
  // Returns INVALID_ARGUMENT, with the attribute's name, if `value` is of another kind or is not
  // allowed.
  absl::Status Check(const AttrValue& value) const;
};

// Returns INVALID_ARGUMENT if `value` of attribute `name` is not an int32, as TensorFlow's ops
// require of numbers that they read into an int.
absl::Status CheckInt32Attr(absl::string_view name, int64_t value);

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_ATTR_H_
