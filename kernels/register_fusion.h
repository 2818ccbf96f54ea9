#ifndef WEIR_KERNELS_REGISTER_FUSION_H_
#define WEIR_KERNELS_REGISTER_FUSION_H_

#include <cstdint>

#include "weir/core/dtype.h"

// Element-wise ops of which each takes what the one before it has made, as a pipeline of functions
// that hand eight vectors on to each other in registers: what lies between two ops is never stored.
// A stage computes its op for the vectors that it is given and ends by calling the next one, which
// compilers make a jump; the last one stores, and returns. So any pipeline of ops runs without code of
// its own, at some cycles an op for eight vectors, and without a load and a store for each of them.
//
//   load -> Mul by a number -> Add elements -> Sqrt -> store
namespace weir {

// Its type depends on the processor's vectors (register_fusion-inl.h) and is erased here.
using StageFn = void (*)();

struct FusedStage {
  StageFn stage;
  // What the stage takes beside the vectors, a number or elements, or where it stores them.
  const void* other;
};

// The stages of an op with two arguments, by what the other one is, and which of the two that is.
struct BinaryStages {
  StageFn number_first = nullptr, number_second = nullptr;
  StageFn elements_first = nullptr, elements_second = nullptr;
};

// What is at the ends of a pipeline, and between.
struct PipelineEnds {
  StageFn load = nullptr;    // the first
  StageFn keep = nullptr;    // stores what others take too, and hands it on
  StageFn store = nullptr;   // the last
  StageFn stream = nullptr;  // the last, past the caches (non_temporal.h), to where lines begin
  int64_t width = 0;      // elements that go through at once
  // A pipeline on elements [0, n), a multiple of width.
  void (*run)(const FusedStage* pipeline, int64_t n) = nullptr;
};

// Null for types without stages.
const PipelineEnds* FindPipelineEnds(DataType type);

}  // namespace weir

#endif  // WEIR_KERNELS_REGISTER_FUSION_H_
