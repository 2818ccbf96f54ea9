#ifndef WEIR_OPS_LIB_LITERAL_H_
#define WEIR_OPS_LIB_LITERAL_H_

#include <algorithm>
#include <bit>
#include <complex>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Literals in the arguments of builders.
namespace WEIR_API weir {

// A constant as written in source code, before its final dtype is known: a number, a string, a
// (nested) list of them, or a Tensor. On its own it takes the dtype that Const gives it: a number
// takes that of its C++ type (int32, int64_t{3} -> int64), except that double becomes float32. A
// list takes the dtype that TensorFlow gives the same text in Python: floating point -> float32,
// integers -> int32, or int64 if a value does not fit, bool -> bool, complex -> complex128, text ->
// string. A Tensor and a std::vector keep their dtype.
//
// If a dtype is requested, the values are converted if at most precision is lost: integers to the
// integer types that can represent them and to floating-point and complex types; floating-point
// numbers to floating-point and complex types only (2.0 does not convert to int32); bool and text
// to no other type.
class Literal {
 private:
  // The representation of numbers until Make.
  template <class T>
  using Widest = std::conditional_t<
      std::is_same_v<T, bool> || std::is_same_v<T, std::string>, T,
      std::conditional_t<
          std::is_floating_point_v<T>, double,
          std::conditional_t<std::is_unsigned_v<T> && sizeof(T) == 8, uint64_t, int64_t>>>;
  // The dtype of a single number.
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
  // A scalar. A Tensor, and a vector below, are typed.
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Literal(T value)
      : tensor_(Tensor::Scalar(static_cast<Widest<T>>(value))),
        untyped_(true),
        own_(OwnType<T>()) {}
  // Scalars.
  Literal(std::complex<double> value) : tensor_(Tensor::Scalar(value)), untyped_(true) {}
  Literal(std::complex<float> value) : Literal(std::complex<double>(value)) {}
  Literal(const char* text) : tensor_(Tensor::Scalar(text)), untyped_(true) {}
  Literal(std::string text) : tensor_(Tensor::Scalar(std::move(text))), untyped_(true) {}
  Literal(Tensor tensor) : tensor_(std::move(tensor)) {}
  // A list, or a list of lists. All items must have the same shape; otherwise Make returns an
  // error.
  Literal(std::initializer_list<Literal> items);
  template <class T,
            std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, std::string>, int> = 0>
  Literal(const std::vector<T>& items) : tensor_(Vector(items)) {}

  // Returns the tensor with dtype `wanted`, or its own dtype if `wanted` is DT_INVALID. Returns
  // INVALID_ARGUMENT naming both dtypes if the values cannot be converted.
  absl::StatusOr<Tensor> Make(DataType wanted = DT_INVALID) const;
  // Returns true for numbers and lists, which have no dtype of their own; false for typed values.
  bool untyped() const { return untyped_; }
  // The shape, which is known before the dtype is.
  const Shape& shape() const { return tensor_.shape(); }

 private:
  Tensor tensor_;  // numbers are double, int64, uint64 or complex128 until Make
  bool untyped_ = false;
  DataType own_ = DT_INVALID;  // of a number
  absl::Status status_;
};

// A tensor of the graph, or a literal that becomes a Const once its dtype is known. The argument
// type of functions that accept either.
class TensorArg {
 public:
  // A tensor of the graph, or a variable, which is read.
  template <class T,
            std::enable_if_t<std::is_convertible_v<const T&, Output> &&
                                 !std::is_same_v<T, std::nullptr_t> && !std::is_arithmetic_v<T>,
                             int> = 0>
  TensorArg(const T& tensor) : output_(tensor) {}
  // A literal.
  template <class T, std::enable_if_t<!std::is_convertible_v<const T&, Output> &&
                                          std::is_convertible_v<const T&, Literal>,
                                      int> = 0>
  TensorArg(const T& literal) : literal_(Literal(literal)) {}
  // A literal list.
  TensorArg(std::initializer_list<Literal> items) : literal_(Literal(items)) {}

  // Which of the two it is, and its value.
  bool is_literal() const { return literal_.has_value(); }
  const Literal& literal() const { return *literal_; }
  const Output& output() const { return output_; }
  // Returns the tensor itself, or a new Const named `name`, of dtype `wanted` (DT_INVALID: its
  // own). Fails the graph with INVALID_ARGUMENT naming both dtypes if the tensor has another dtype
  // or the literal cannot be converted.
  Output In(Graph& graph, DataType wanted = DT_INVALID, absl::string_view name = "Const") const;

 private:
  Output output_;
  std::optional<Literal> literal_;
};

}  // namespace weir

#endif  // WEIR_OPS_LIB_LITERAL_H_
