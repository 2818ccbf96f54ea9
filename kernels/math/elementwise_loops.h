#ifndef WEIR_KERNELS_MATH_ELEMENTWISE_LOOPS_H_
#define WEIR_KERNELS_MATH_ELEMENTWISE_LOOPS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/graph/families.h"
#include "weir/core/runtime/kernel.h"
#include "weir/kernels/math/register_fusion.h"

// Elementwise ops as type-erased functions over contiguous memory. Kernels call them for whole
// tensors, fused pipelines call them tile by tile. A family of ops adds its loops to the registry
// (AddArithmeticLoops and others below), from which the kernels are generated.
// kernels/math/elementwise.h describes how to define an op's math.
namespace weir {

struct UnaryLoop {
  // y[i] = f(x[i]) for i in [0, n). x and y are the same memory or do not overlap. `p` is the op's
  // parameter, if any.
  using Fn = void (*)(const UnaryLoop& self, const void* x, void* y, int64_t n, double p);
  Fn run = nullptr;
  StageFn stage = nullptr;            // null: not available for register fusion
  Fn wide = nullptr;                  // 16-bit floats: the function of floats that `run` calls
  uint8_t in_size = 0, out_size = 0;  // element sizes in bytes
  float cost = 0.2f;                  // nanoseconds per element
  const char* param = nullptr;        // the float attribute that holds p
};

struct BinaryLoop {
  // z[i] = f(x[i], y[i]). z is x's or y's memory, or overlaps neither.
  using Fn = void (*)(const BinaryLoop& self, const void* x, const void* y, void* z, int64_t n,
                      double p);
  // Rejects arguments outside the function's domain (a zero divisor) before anything is computed.
  using Check = absl::Status (*)(const Tensor& x, const Tensor& y);
  Fn run = nullptr;
  // The same with a scalar x, or y. Null: the scalar must be expanded.
  Fn scalar_first = nullptr, scalar_second = nullptr;
  BinaryStages stages = {};  // null: not available for register fusion
  Fn wide = nullptr;
  uint8_t in_size = 0, out_size = 0;
  bool broadcasts = true;   // false: shapes must be equal
  bool own_kernel = false;  // AddKernels skips the op: it is registered elsewhere
  float cost = 0.2f;
  const char* param = nullptr;
  Check check = nullptr;

  // Returns null unless one argument is a scalar and there is a variant for it.
  Fn ScalarVariantFor(bool first_is_scalar, bool second_is_scalar) const {
    if (first_is_scalar == second_is_scalar) return nullptr;
    return first_is_scalar ? scalar_first : scalar_second;
  }
};

// The loops by op and type. Immutable and thread-safe after it is filled. Entries do not move.
class LoopRegistry {
 public:
  UnaryLoop& AddUnary(const char* op, DataType in, DataType out, UnaryLoop::Fn run,
                      double cost = 0.2);
  BinaryLoop& AddBinary(const char* op, DataType in, DataType out, BinaryLoop::Fn run,
                        double cost = 0.2);
  // Adds the op for a 16-bit float, computed in float: by `wide`, or by the float's entry, which
  // exists already.
  void WidenUnary(const char* op, DataType type, UnaryLoop::Fn wide = nullptr);
  void WidenBinary(const char* op, DataType type, BinaryLoop::Fn wide = nullptr);
  // Returns null if there is none.
  UnaryLoop* FindUnary(absl::string_view op, DataType type) const;
  BinaryLoop* FindBinary(absl::string_view op, DataType type) const;

  // Registers CPU kernels for all entries.
  void AddKernels(KernelRegistry* r) const;
  // Returns the ops that have entries, without duplicates.
  std::vector<std::string> Ops() const;

 private:
  template <class Span>
  struct Entry {
    std::string op;
    DataType in;
    Span loop;
  };
  std::vector<std::unique_ptr<Entry<UnaryLoop>>> unary_;
  std::vector<std::unique_ptr<Entry<BinaryLoop>>> binary_;
  absl::flat_hash_map<std::pair<std::string, int>, UnaryLoop*> unary_index_;
  absl::flat_hash_map<std::pair<std::string, int>, BinaryLoop*> binary_index_;
};

// The registries of all families. Each is created when one of its ops is first looked up.
class LoopRegistries {
 public:
  LoopRegistries();
  // Returns null if there is none.
  const UnaryLoop* FindUnary(absl::string_view op, DataType type) const;
  const BinaryLoop* FindBinary(absl::string_view op, DataType type) const;
  // Registers kernels for all entries of a family, given by its position in LoopFamilies().
  void AddKernels(size_t family, KernelRegistry* r) const { tables_.Of(family).AddKernels(r); }

 private:
  const Families<LoopRegistry> tables_;
};
const LoopRegistries& ElementwiseLoops();

// Families.
void AddActivationLoops(LoopRegistry* table);      // activation_cpu.cc
void AddArithmeticLoops(LoopRegistry* table);      // arithmetic_cpu.cc
void AddTranscendentalLoops(LoopRegistry* table);  // transcendental_cpu.cc
void AddCompareLoops(LoopRegistry* table);         // compare_cpu.cc: bool results, and bitwise ops
void AddMaskLoops(LoopRegistry* table);            // mask_loops_cpu.cc: comparisons in fused nodes
void AddSpecialLoops(LoopRegistry* table);  // special_cpu.cc: gamma functions and other slow ones

// Runs a loop as a kernel: one pass over memory, parallelized over the pool. The output has the
// shape of the input, or the broadcast shape of both inputs (INVALID_ARGUMENT "Incompatible shapes"
// if there is none).
absl::Status RunUnary(KernelContext& c, const UnaryLoop& loop, double p);
absl::Status RunBinary(KernelContext& c, const BinaryLoop& loop, double p);
// The same on tensors; z is already allocated with the broadcast shape.
absl::Status RunBinary(ThreadPool& pool, const BinaryLoop& loop, double p, const Tensor& x,
                       const Tensor& y, Tensor* z);

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_ELEMENTWISE_LOOPS_H_
