#ifndef WEIR_KERNELS_MATH_SCALAR_PROGRAM_H_
#define WEIR_KERNELS_MATH_SCALAR_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weir/core/runtime/kernel.h"

namespace weir {

// The limits of the op _ScalarLoop.
inline constexpr int kMaxScalars = 256;  // arguments and ops

// An op that may be part of a scalar program: it is defined for all values. Scalars have the types
// float, double, int32, int64 and bool.
struct ScalarOp {
  const char* param = nullptr;  // the name of its float attribute, if any
};
// Returns nullopt for other ops, and for a Cast that truncates.
std::optional<ScalarOp> FindScalarOp(const Node& node);
bool IsScalarType(DataType type);

void AddScalarLoopKernels(KernelRegistry* r);  // scalar_loop.cc

// A sequence of ops on scalars. As a node of the graph, each op would cost twenty times its
// arithmetic: the executor calls a kernel, which checks its inputs' shapes and allocates its
// output. Here an op is a call of the loop (kernels/math/elementwise_loops.h) that the op's own
// kernel calls, for one element, so that each result is the same, bit for bit. Immutable.
class ScalarProgram {
 public:
  // A scalar of any of the types, in the first bytes.
  using Cell = uint64_t;

  // Creates a program of `ops` on arguments of these types, from the node's attributes `operands`,
  // `params` and `types`. Returns INVALID_ARGUMENT or UNIMPLEMENTED for an invalid program.
  static absl::StatusOr<ScalarProgram> Create(const Node& node, absl::Span<const std::string> ops,
                                              absl::Span<const DataType> arguments);

  int num_arguments() const { return num_arguments_; }
  int num_ops() const { return static_cast<int>(ops_.size()); }
  int num_values() const { return static_cast<int>(types_.size()); }
  // Returns the type of a value: an argument or, after the arguments, the result of an op.
  DataType type(int value) const { return types_[value]; }

  // Runs ops [begin, end) on cells, which hold the values in order.
  void Run(int begin, int end, Cell* values) const {
    for (const Op *s = ops_.data() + begin, *last = ops_.data() + end; s < last; ++s) {
      s->run(*s, values + s->a, values + s->b, values + s->result);
    }
  }

 private:
  struct Op {
    void (*run)(const Op&, const Cell* a, const Cell* b, Cell* result) = nullptr;
    const void* fn = nullptr;  // a BinaryLoop or UnaryLoop
    void (*convert)(const void* from, void* to, int64_t n) = nullptr;
    double p = 0;
    int a = 0, b = 0, result = 0;
  };
  template <class T>
  struct Direct;
  static decltype(Op::run) BinaryOpFn(absl::string_view op, DataType type);
  static absl::Status Resolve(absl::string_view op, DataType a, DataType b, bool is_binary,
                              DataType result, Op* out);

  int num_arguments_ = 0;
  std::vector<Op> ops_;
  std::vector<DataType> types_;  // by value
};

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_SCALAR_PROGRAM_H_
