#ifndef WEIR_KERNELS_SPANS_H_
#define WEIR_KERNELS_SPANS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/families.h"
#include "weir/core/kernel.h"
#include "weir/kernels/chain.h"

// Element-wise ops as functions over stretches of memory, with the types erased: what kernels call
// for whole tensors and what a fused chain calls tile by tile. A family of ops adds its spans to
// the table (AddMathSpans, AddNnSpans); the kernels follow from the table. See docs of
// kernels/elementwise-inl.h for how an op's mathematics is written.
namespace weir {

struct UnarySpan {
  // y[i] = f(x[i]) for i in [0, n). x and y are the same memory or do not overlap. `p` is the op's
  // parameter, if any.
  using Fn = void (*)(const UnarySpan& self, const void* x, void* y, int64_t n, double p);
  Fn run = nullptr;
  Link link = nullptr;                // null: the op is in no chain
  const UnarySpan* wide = nullptr;    // 16-bit floats: the span for float, which `run` goes through
  uint8_t in_size = 0, out_size = 0;  // bytes of an element
  float cost = 0.2f;                  // nanoseconds an element
  const char* param = nullptr;        // the float attribute that gives p
};

struct BinarySpan {
  // z[i] = f(x[i], y[i]). z is x's or y's memory, or does not overlap with either.
  using Fn = void (*)(const BinarySpan& self, const void* x, const void* y, void* z, int64_t n,
                      double p);
  // Refuses arguments the function is not defined for (a zero divisor), before anything is
  // computed.
  using Check = absl::Status (*)(const Tensor& x, const Tensor& y);
  Fn run = nullptr;
  // The same where x, or y, is a single number; null: it has to be repeated.
  Fn number_first = nullptr, number_second = nullptr;
  BinaryLinks links = {};  // null: the op is in no chain
  const BinarySpan* wide = nullptr;
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

// The spans by op and type. Filled once, then read by many threads. Entries stay where they are.
class SpanTable {
 public:
  UnarySpan& AddUnary(const char* op, DataType in, DataType out, UnarySpan::Fn run,
                      double cost = 0.2);
  BinarySpan& AddBinary(const char* op, DataType in, DataType out, BinarySpan::Fn run,
                        double cost = 0.2);
  // The op for a 16-bit float, computed in float by the entry that is there already.
  void WidenUnary(const char* op, DataType type);
  void WidenBinary(const char* op, DataType type);
  // Null if there is none.
  UnarySpan* FindUnary(absl::string_view op, DataType type) const;
  BinarySpan* FindBinary(absl::string_view op, DataType type) const;

  // Kernels for all entries, for the CPU.
  void AddKernels(KernelRegistry* r) const;
  // The ops that have entries, each once.
  std::vector<std::string> Ops() const;

 private:
  template <class Span>
  struct Entry {
    std::string op;
    DataType in;
    Span span;
  };
  std::vector<std::unique_ptr<Entry<UnarySpan>>> unary_;
  std::vector<std::unique_ptr<Entry<BinarySpan>>> binary_;
  absl::flat_hash_map<std::pair<std::string, int>, UnarySpan*> unary_index_;
  absl::flat_hash_map<std::pair<std::string, int>, BinarySpan*> binary_index_;
};

// The tables of all families. One is made when an op of it is first looked up.
class SpanTables {
 public:
  SpanTables();
  // Null if there is none.
  const UnarySpan* FindUnary(absl::string_view op, DataType type) const;
  const BinarySpan* FindBinary(absl::string_view op, DataType type) const;
  // Kernels for all entries of a family, by its position in SpanFamilies().
  void AddKernels(size_t family, KernelRegistry* r) const { tables_.Of(family).AddKernels(r); }

 private:
  const Families<SpanTable> tables_;
};
const SpanTables& Spans();

// Families.
void AddActivationSpans(SpanTable* table);      // activation_cpu.cc
void AddMathSpans(SpanTable* table);            // math_spans_cpu.cc: arithmetic
void AddTranscendentalSpans(SpanTable* table);  // transcendental_cpu.cc
void AddCompareSpans(SpanTable* table);         // compare_cpu.cc: results are bool, and bits
void AddMaskSpans(SpanTable* table);            // mask_spans_cpu.cc: comparisons in fused nodes
void AddSpecialSpans(SpanTable* table);  // special_cpu.cc: gamma functions and other slow ones

// The kernel of a span: one pass over memory, split over the pool. The output has the shape of the
// input, or of the broadcast of both (INVALID_ARGUMENT "Incompatible shapes" if there is none).
absl::Status RunUnary(KernelContext& c, const UnarySpan& span, double p);
absl::Status RunBinary(KernelContext& c, const BinarySpan& span, double p);
// The same on tensors: z is allocated, with the shape of the broadcast.
absl::Status RunBinary(ThreadPool& pool, const BinarySpan& span, double p, const Tensor& x,
                       const Tensor& y, Tensor* z);

}  // namespace weir

#endif  // WEIR_KERNELS_SPANS_H_
