#ifndef WEIR_KERNELS_CHAIN_H_
#define WEIR_KERNELS_CHAIN_H_

#include <cstdint>

#include "weir/core/dtype.h"

// Element-wise ops of which each takes what the one before it has made, as a chain of functions
// that hand eight vectors on to each other in registers: what lies between two ops is never stored.
// A link computes its op for the vectors that it is given and ends by calling the next one, which
// compilers make a jump; the last one stores, and returns. So any chain of ops runs without code of
// its own, at some cycles an op for eight vectors, and without a load and a store for each of them.
//
//   load -> Mul by a number -> Add elements -> Sqrt -> store
namespace weir {

// Its type depends on the processor's vectors (chain-inl.h) and is erased here.
using Link = void (*)();

struct ChainStep {
  Link link;
  // What the link takes beside the vectors, a number or elements, or where it stores them.
  const void* other;
};

// The links of an op with two arguments, by what the other one is, and which of the two that is.
struct BinaryLinks {
  Link number_first = nullptr, number_second = nullptr;
  Link elements_first = nullptr, elements_second = nullptr;
};

// What is at the ends of a chain, and between.
struct ChainEnds {
  Link load = nullptr;    // the first
  Link keep = nullptr;    // stores what others take too, and hands it on
  Link store = nullptr;   // the last
  Link stream = nullptr;  // the last, past the caches (streamed.h), to where lines begin
  int64_t width = 0;      // elements that go through at once
  // A chain on elements [0, n), a multiple of width.
  void (*run)(const ChainStep* chain, int64_t n) = nullptr;
};

// Null for types without links.
const ChainEnds* FindChainEnds(DataType type);

}  // namespace weir

#endif  // WEIR_KERNELS_CHAIN_H_
