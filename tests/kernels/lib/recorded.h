#ifndef WEIR_TESTS_KERNELS_LIB_RECORDED_H_
#define WEIR_TESTS_KERNELS_LIB_RECORDED_H_

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/core/graph/op.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/op_case.h"

// Rows for ops that are tested with examples: given inputs, and TensorFlow 2.21's results for them.
namespace weir::recorded {

inline Tensor Strings(std::initializer_list<std::string> values) {
  return Tensor::Vector<std::string>(values);
}
inline Tensor Strings(const Shape& shape, std::initializer_list<std::string> values) {
  return Tensor::Of<std::string>(shape, values);
}
// Bytes that may include zeros.
template <size_t n>
std::string Raw(const char (&text)[n]) {
  return std::string(text, n - 1);
}
inline Tensor Longs(std::initializer_list<int64_t> values) {
  return Tensor::Vector<int64_t>(values);
}
inline Tensor Pairs(std::initializer_list<int64_t> values) {
  return Tensor::Of<int64_t>({static_cast<int64_t>(values.size()) / 2, 2}, values);
}

// The types of a row: if an input has the type "T", that of the given value.
inline std::vector<DataType> TypesOf(absl::string_view op, const Tensors& inputs) {
  const OpSpec* spec = BuiltinOps().Find(op);
  if (spec == nullptr || spec->FindAttr("T") == nullptr) return {};
  for (size_t i = 0; i < std::min(inputs.size(), spec->inputs().size()); ++i) {
    if (spec->inputs()[i].type_attr == "T") return {inputs[i].dtype()};
  }
  return {DT_INVALID};
}

// `list`: the inputs of a list argument, which follow the others.
inline OpCase Row(absl::string_view op, absl::string_view label, const Tensors& inputs,
                  const Tensors& outputs, const Attrs& attrs = {}, const Tensors& list = {}) {
  OpCase row(op);
  row.Label(label).ShapesDependOnValues().Reference(
      [outputs](const Node&, const Tensors&) { return outputs; });
  row.Types(TypesOf(op, inputs));
  for (const Tensor& input : inputs) row.Input(input);
  if (!list.empty()) row.GivenList(list);
  for (const auto& [name, value] : attrs) row.Attr(name, value);
  return row;
}

// Inputs that only the kernel can reject, and a part of the message.
struct Rejection {
  const char* op;
  Tensors inputs;
  Attrs attrs;
  const char* message;
  size_t list = 0;  // the number of leading inputs that form a list argument
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

inline void ExpectRejections(const std::vector<Rejection>& refusals) {
  for (const Rejection& r : refusals) {
    const absl::StatusOr<Tensors> out = RunFed(r.op, r.inputs, r.attrs, r.list);
    EXPECT_EQ(out.status().code(), r.code) << r.op << ": " << r.message << "\n" << out.status();
    EXPECT_NE(out.status().message().find(r.message), std::string::npos)
        << r.op << ": " << out.status();
  }
}

}  // namespace weir::recorded

#endif  // WEIR_TESTS_KERNELS_LIB_RECORDED_H_
