#ifndef WEIR_TESTS_KERNELS_LIB_OP_CASE_H_
#define WEIR_TESTS_KERNELS_LIB_OP_CASE_H_

#include <complex>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weir/core/graph/graph.h"
#include "weir/core/tensor/tensor.h"

// The sweep tests ops one by one. A family's file, tests/kernels/<family>_cases.cc, lists them:
//
//   std::vector<OpCase> NnCases() {
//     return {
//         OpCase("Softplus", +[](double x) { return std::log1p(std::exp(x)); }, {-20, 20}),
//         OpCase("SoftplusGrad", +[](double d, double x) { return d / (1 + std::exp(-x)); },
//                {-20, 20}),
//         OpCase("BiasAdd").Input({2, 3, 4}).Input({4}).Reference(BiasAddReference).Gradient(2),
//         OpCase("Concat").Label("axis1").Input(Tensor::Scalar<int32_t>(1)).List({Shape{2, 3},
//                                                                                Shape{2, 1}})...
//     };
//   }
//   INSTANTIATE_TEST_SUITE_P(Nn, OpSweepTest, testing::ValuesIn(NnCases()), OpCaseName);
//
// and the BUILD file makes a test <family>_sweep_test of it. Each row runs for every type and every
// shape it has, and checks the values against the reference, the inferred shapes and types of all
// outputs, and the gradient against central differences in double. Random values come from a seed
// that depends on the row's name and is printed with a failure.
namespace weir {

// The distribution of the random elements of one input: uniform in [low, high]. Integer types use
// the integers in the range that the type can represent; complex types draw both parts. Strings and
// bools ignore it.
struct Range {
  double low = -2;
  double high = 2;
  bool nonzero = false;   // never 0 (after rounding to the type)
  bool distinct = false;  // no two elements are equal or close to each other, so that the positions
                          // of maxima are stable
};

// Computes the expected outputs. The inputs are widened: those of the swept type are DT_DOUBLE
// (complex ones DT_COMPLEX128), whatever the type was; every other input is as the op gets it.
// Outputs may have any types; they are compared by value with the op's results.
using OpReference = std::function<Tensors(const Node& node, const Tensors& inputs)>;

using complex128 = std::complex<double>;

class OpCase {
 public:
  // A row for an op whose inputs are added one by one below.
  explicit OpCase(absl::string_view op) : op_(op) {}
  // A row for an elementwise op of one input or of two that broadcast. The shapes are those of
  // UnaryShapes and BinaryShapes, and special values (zeros, infinities, NaN, huge ones) are tested
  // as well, unless NoSpecials().
  OpCase(absl::string_view op, double (*f)(double), Range x = {});
  OpCase(absl::string_view op, double (*f)(double, double), Range x = {}) : OpCase(op, f, x, x) {}
  OpCase(absl::string_view op, double (*f)(double, double), Range x, Range y);

  // Distinguishes the row from other rows of the op: letters, digits and underscores.
  OpCase& Label(absl::string_view label);
  OpCase& Attr(absl::string_view name, AttrValue value);
  // Adds an input: of the swept type, random; of another type, random (integers in the range); or a
  // given value, which is a constant in the graph.
  OpCase& Input(Shape shape, Range range = {});
  OpCase& Input(DataType type, Shape shape, Range range = {});
  OpCase& Input(Tensor value);
  // Adds a list argument of the swept type: one random tensor per shape.
  OpCase& List(std::vector<Shape> shapes, Range range = {});
  // Adds a list argument of given values, which are constants in the graph.
  OpCase& GivenList(Tensors values);
  // Sets the type attribute to sweep; default "T", or the op's only type attribute.
  OpCase& TypeAttr(absl::string_view name);
  // Sets the types to sweep. Default: those that the signature allows and for which the CPU has
  // kernels; at least one.
  OpCase& Types(std::vector<DataType> types);
  // Removes types from the default.
  OpCase& NotTypes(std::vector<DataType> types);
  OpCase& Reference(OpReference reference);
  // Sets the reference of an elementwise row for complex types. Without it they are not swept.
  OpCase& Complex(complex128 (*f)(complex128));
  OpCase& Complex(complex128 (*f)(complex128, complex128));
  // Sets the relative error allowed for one type, or a factor on every type's default: 1e-5 for
  // float, 1e-11 for double, 4e-3 for half, 3e-2 for bfloat16, none for integers. Errors are
  // relative to max(1, |expected|).
  OpCase& Tolerance(DataType type, double relative);
  OpCase& ToleranceFactor(double factor);
  // Sets the order to which the gradient is checked. Default: 2 if the op has a gradient and double
  // is swept, else 0.
  OpCase& Gradient(int order);
  // Checks the gradient only with respect to these inputs (indices). Default: all of the swept
  // type.
  OpCase& GradientInputs(std::vector<int> inputs);
  // Scales the tolerance of the gradient check, 1e-5.
  OpCase& GradientTolerance(double relative);
  // Declares that shape inference cannot know the outputs' shapes: it must only not contradict
  // them.
  OpCase& ShapesDependOnValues();
  OpCase& NoSpecials();

  const std::string& op() const { return op_; }
  // "Softplus", or "Concat_axis1".
  std::string name() const { return label_.empty() ? op_ : op_ + "_" + label_; }
  // Returns the order to which Run checks the gradient.
  int gradient_order() const;
  // Runs the row; failures are reported through gtest.
  void Run() const;

 private:
  friend class OpCaseRunner;
  struct InputSpec {
    std::optional<DataType> type;  // absent: the swept type
    std::vector<Shape> shapes;     // one shape, or those of the list
    bool is_list = false;
    Range range;
    Tensor value;    // if given
    Tensors values;  // of a list, if given
  };

  std::string op_, label_, type_attr_;
  std::vector<std::pair<std::string, AttrValue>> attrs_;
  std::vector<InputSpec> inputs_;
  double (*unary_)(double) = nullptr;
  double (*binary_)(double, double) = nullptr;
  complex128 (*complex_unary_)(complex128) = nullptr;
  complex128 (*complex_binary_)(complex128, complex128) = nullptr;
  std::vector<DataType> types_, not_types_;
  OpReference reference_;
  std::map<DataType, double> tolerance_;
  double tolerance_factor_ = 1;
  int gradient_order_ = -1;
  std::vector<int> gradient_inputs_;
  double gradient_tolerance_ = 1e-5;
  bool shapes_depend_on_values_ = false;
  bool specials_ = true;
};

void PrintTo(const OpCase& c, std::ostream* out);

// Empty, scalar and odd shapes, and one that is large enough for vectors, tail loops and several
// threads.
const std::vector<Shape>& UnaryShapes();
// The same for two inputs, and every broadcasting pattern.
const std::vector<std::pair<Shape, Shape>>& BinaryShapes();

// ---- helpers for writing references

// Returns the elements of a double, integer or bool tensor as doubles.
std::vector<double> ToDoubles(const Tensor& t);
// Returns a DT_DOUBLE tensor.
Tensor Doubles(const Shape& shape, const std::vector<double>& values);
// Calls fn(flat index, index of each dimension) for every element of a shape, in order.
void ForEachIndex(const Shape& shape,
                  const std::function<void(int64_t, const std::vector<int64_t>&)>& fn);

// A value-parameterized test; each family instantiates it with its rows.
class OpSweepTest : public testing::TestWithParam<OpCase> {};
std::string OpCaseName(const testing::TestParamInfo<OpCase>& info);

}  // namespace weir

#endif  // WEIR_TESTS_KERNELS_LIB_OP_CASE_H_
