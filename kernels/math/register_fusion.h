#ifndef WEIR_KERNELS_MATH_REGISTER_FUSION_H_
#define WEIR_KERNELS_MATH_REGISTER_FUSION_H_

#include <cstdint>

#include "weir/core/tensor/dtype.h"

// Register fusion: a sequence of elementwise ops, each of which reads the result of the previous
// one, as a pipeline of functions that pass eight vectors to each other in registers. Intermediate
// values are never stored. A stage computes its op for the vectors it receives and ends by calling
// the next stage, which compilers turn into a jump; the last stage stores the vectors and returns.
// So any pipeline of ops runs without code of its own, at a few cycles per op for eight vectors,
// and without a load and a store for each op.
//
//   load -> Mul by a scalar -> Add a tensor -> Sqrt -> store
namespace weir {

// The type depends on the processor's vectors (register_fusion-inl.h) and is erased here.
using StageFn = void (*)();

struct FusedStage {
  StageFn fn;
  // The stage's operand besides the vectors (a scalar or elements of a tensor), or its destination.
  const void* operand;
};

// The stages of a binary op, by which operand comes from memory and whether it is a scalar or a
// tensor.
struct BinaryStages {
  StageFn scalar_first = nullptr, scalar_second = nullptr;
  StageFn tensor_first = nullptr, tensor_second = nullptr;
};

// The loads and stores of a pipeline and the function that runs it, for one type.
struct PipelineBackend {
  StageFn load = nullptr;            // the first stage
  StageFn store_and_pass = nullptr;  // stores a value that has other readers and passes it on
  StageFn store = nullptr;           // the last stage
  // The last stage, if the destination is aligned to cache lines.
  StageFn store_non_temporal = nullptr;
  int64_t width = 0;  // elements of one pass through the pipeline
  // Runs a pipeline on elements [0, n); n is a multiple of width.
  void (*run)(const FusedStage* pipeline, int64_t n) = nullptr;
};

// Returns null for types without stages.
const PipelineBackend* FindPipelineBackend(DataType type);

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_REGISTER_FUSION_H_
