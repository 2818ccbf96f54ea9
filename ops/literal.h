#ifndef WEIR_OPS_LITERAL_H_
#define WEIR_OPS_LITERAL_H_

#include <algorithm>
#include <bit>
#include <complex>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "weir/core/graph.h"

namespace weir {

// A constant as a programmer writes it, before it has got its final type: a number, a text, a
// (nested) list of them, or a Tensor. Alone it takes the type that Const gives it: a number that of
// its C++ type (int32, int64_t{3} -> int64), but double -> float32. A list takes the type that
// TensorFlow gives the same text in Python: floating -> float32, integers -> int32, or int64 when a
// value does not fit, bool -> bool, complex -> complex128, text -> string. A Tensor and a
// std::vector keep their type.
//
// Where a type is asked for, the values are converted if that loses no more than precision:
// integers to the integer types that hold them, and to floating and complex types; floating numbers
// to floating and complex types only (2.0 is no int32); bool and text to nothing else.
class Literal {
 private:
  // How numbers are held until Make.
  template <class T>
  using Widest = std::conditional_t<
      std::is_same_v<T, bool> || std::is_same_v<T, std::string>, T,
      std::conditional_t<
          std::is_floating_point_v<T>, double,
          std::conditional_t<std::is_unsigned_v<T> && sizeof(T) == 8, uint64_t, int64_t>>>;
  // The type of a number alone.
  template <class T>
  static constexpr DataType OwnType() {
    if (std::is_same_v<T, bool>) return DT_BOOL;
    if (std::is_floating_point_v<T>) return DT_FLOAT;
    constexpr DataType kSigned[] = {DT_INT8, DT_INT16, DT_INT32, DT_INT64};
    constexpr DataType kUnsigned[] = {DT_UINT8, DT_UINT16, DT_UINT32, DT_UINT64};
    return (std::is_signed_v<T> ? kSigned : kUnsigned)[std::bit_width(sizeof(T)) - 1];
  }
  template <class T>
  static Tensor Vector(const std::vector<T>& items) {
    Tensor out(DataTypeOf<T>::value, Shape({static_cast<int64_t>(items.size())}));
    std::copy(items.begin(), items.end(), out.template data<T>());
    return out;
  }

 public:
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Literal(T value)
      : tensor_(Tensor::Scalar(static_cast<Widest<T>>(value))),
        untyped_(true),
        own_(OwnType<T>()) {}
  Literal(std::complex<double> value) : tensor_(Tensor::Scalar(value)), untyped_(true) {}
  Literal(std::complex<float> value) : Literal(std::complex<double>(value)) {}
  Literal(const char* text) : tensor_(Tensor::Scalar(text)), untyped_(true) {}
  Literal(std::string text) : tensor_(Tensor::Scalar(std::move(text))), untyped_(true) {}
  Literal(Tensor tensor) : tensor_(std::move(tensor)) {}
  // A list, or a list of lists; all of one shape, else the error shows in Make.
  Literal(std::initializer_list<Literal> items);
  template <class T,
            std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, std::string>, int> = 0>
  Literal(const std::vector<T>& items) : tensor_(Vector(items)) {}

  // The tensor of its own type (`wanted` DT_INVALID) or of the type wanted. INVALID_ARGUMENT naming
  // both types if the values cannot be of that type.
  absl::StatusOr<Tensor> Make(DataType wanted = DT_INVALID) const;
  // True for numbers and lists, which have no type of their own; false for typed ones.
  bool untyped() const { return untyped_; }
  const Shape& shape() const { return tensor_.shape(); }

 private:
  Tensor tensor_;  // numbers as double, int64, uint64 or complex128 until Make
  bool untyped_ = false;
  DataType own_ = DT_INVALID;  // of a number
  absl::Status status_;
};

// A tensor of the graph, or a literal that becomes a Const when its type is known. What functions
// take that accept either.
class TensorArg {
 public:
  template <class T,
            std::enable_if_t<std::is_convertible_v<const T&, Output> &&
                                 !std::is_same_v<T, std::nullptr_t> && !std::is_arithmetic_v<T>,
                             int> = 0>
  TensorArg(const T& tensor) : output_(tensor) {}
  template <class T, std::enable_if_t<!std::is_convertible_v<const T&, Output> &&
                                          std::is_convertible_v<const T&, Literal>,
                                      int> = 0>
  TensorArg(const T& literal) : literal_(Literal(literal)) {}
  TensorArg(std::initializer_list<Literal> items) : literal_(Literal(items)) {}

  bool is_literal() const { return literal_.has_value(); }
  const Literal& literal() const { return *literal_; }
  const Output& output() const { return output_; }
  // The tensor: itself, or a new Const named `name`, of type `wanted` (DT_INVALID: its own). A
  // tensor of another type, or a literal that does not convert, fails the graph with
  // INVALID_ARGUMENT naming both types.
  Output In(Graph& graph, DataType wanted = DT_INVALID, absl::string_view name = "Const") const;

 private:
  Output output_;
  std::optional<Literal> literal_;
};

}  // namespace weir

#endif  // WEIR_OPS_LITERAL_H_
