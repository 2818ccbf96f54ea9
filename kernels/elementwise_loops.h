#ifndef WEIR_KERNELS_ELEMENTWISE_LOOPS_H_
#define WEIR_KERNELS_ELEMENTWISE_LOOPS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/families.h"
#include "weir/core/kernel.h"
#include "weir/kernels/register_fusion.h"

// Element-wise ops as functions over stretches of memory, with the types erased: what kernels call
// for whole tensors and what a fused pipeline calls tile by tile. A family of ops adds its loops to
// the table (AddMathLoops, AddNnLoops); the kernels follow from the table. See docs of
// kernels/elementwise-inl.h for how an op's mathematics is written.
namespace weir {

struct UnaryLoop {
  // y[i] = f(x[i]) for i in [0, n). x and y are the same memory or do not overlap. `p` is the op's
  // parameter, if any.
  using Fn = void (*)(const UnaryLoop& self, const void* x, void* y, int64_t n, double p);
  Fn run = nullptr;
  StageFn stage = nullptr;                // null: the op is in no pipeline
  const UnaryLoop* wide = nullptr;    // 16-bit floats: the loop for float, which `run` goes through
  uint8_t in_size = 0, out_size = 0;  // bytes of an element
  float cost = 0.2f;                  // nanoseconds an element
  const char* param = nullptr;        // the float attribute that gives p
};

struct BinaryLoop {
  // z[i] = f(x[i], y[i]). z is x's or y's memory, or does not overlap with either.
  using Fn = void (*)(const BinaryLoop& self, const void* x, const void* y, void* z, int64_t n,
                      double p);
  // Refuses arguments the function is not defined for (a zero divisor), before anything is
  // computed.
  using Check = absl::Status (*)(const Tensor& x, const Tensor& y);
  Fn run = nullptr;
  // The same where x, or y, is a single number; null: it has to be repeated.
  Fn number_first = nullptr, number_second = nullptr;
  BinaryStages stages = {};  // null: the op is in no pipeline
  const BinaryLoop* wide = nullptr;
  uint8_t in_size = 0, out_size = 0;
  bool broadcasts = true;   // false: the shapes must be equal
  bool own_kernel = false;  // AddKernels leaves the op to others
  float cost = 0.2f;
  const char* param = nullptr;
  Check check = nullptr;

  // Null unless one of the arguments is a number, and there is a form for that.
  Fn FormFor(bool first_is_number, bool second_is_number) const {
    if (first_is_number == second_is_number) return nullptr;
    return first_is_number ? number_first : number_second;
  }
};

// The loops by op and type. Filled once, then read by many threads. Entries stay where they are.
class LoopRegistry {
 public:
  UnaryLoop& AddUnary(const char* op, DataType in, DataType out, UnaryLoop::Fn run,
                      double cost = 0.2);
  BinaryLoop& AddBinary(const char* op, DataType in, DataType out, BinaryLoop::Fn run,
                        double cost = 0.2);
  // The op for a 16-bit float, computed in float by the entry that is there already.
  void WidenUnary(const char* op, DataType type);
  void WidenBinary(const char* op, DataType type);
  // Null if there is none.
  UnaryLoop* FindUnary(absl::string_view op, DataType type) const;
  BinaryLoop* FindBinary(absl::string_view op, DataType type) const;

  // Kernels for all entries, for the CPU.
  void AddKernels(KernelRegistry* r) const;
  // The ops that have entries, each once.
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

// The tables of all families. One is made when an op of it is first looked up.
class LoopRegistries {
 public:
  LoopRegistries();
  // Null if there is none.
  const UnaryLoop* FindUnary(absl::string_view op, DataType type) const;
  const BinaryLoop* FindBinary(absl::string_view op, DataType type) const;
  // Kernels for all entries of a family, by its position in LoopFamilies().
  void AddKernels(size_t family, KernelRegistry* r) const { tables_.Of(family).AddKernels(r); }

 private:
  const Families<LoopRegistry> tables_;
};
const LoopRegistries& ElementwiseLoops();

// Families.
void AddActivationLoops(LoopRegistry* table);      // activation_cpu.cc
void AddMathLoops(LoopRegistry* table);            // math_loops_cpu.cc: arithmetic
void AddTranscendentalLoops(LoopRegistry* table);  // transcendental_cpu.cc
void AddCompareLoops(LoopRegistry* table);         // compare_cpu.cc: results are bool, and bits
void AddMaskLoops(LoopRegistry* table);            // mask_loops_cpu.cc: comparisons in fused nodes
void AddSpecialLoops(LoopRegistry* table);  // special_cpu.cc: gamma functions and other slow ones

// The kernel of a loop: one pass over memory, split over the pool. The output has the shape of the
// input, or of the broadcast of both (INVALID_ARGUMENT "Incompatible shapes" if there is none).
absl::Status RunUnary(KernelContext& c, const UnaryLoop& loop, double p);
absl::Status RunBinary(KernelContext& c, const BinaryLoop& loop, double p);
// The same on tensors: z is allocated, with the shape of the broadcast.
absl::Status RunBinary(ThreadPool& pool, const BinaryLoop& loop, double p, const Tensor& x,
                       const Tensor& y, Tensor* z);

}  // namespace weir

#endif  // WEIR_KERNELS_ELEMENTWISE_LOOPS_H_
