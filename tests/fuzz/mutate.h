#ifndef WEIR_TESTS_FUZZ_MUTATE_H_
#define WEIR_TESTS_FUZZ_MUTATE_H_

#include <cstdint>

namespace weir::proto {
class GraphDef;
}

namespace weir::fuzz {

// Makes one to four changes to a graph that a hostile or careless writer might make: of attributes,
// constants, inputs, ops, nodes and functions; or adds nodes of any op with constants of the types
// that it takes. The same seed changes the same graph in the same way.
void Mutate(uint64_t seed, proto::GraphDef* graph);

// How a graph says what is to be done with it, so that an input of the fuzzer is one GraphDef:
// marks are attributes of nodes. Step numbers begin with 0; a graph without marks has one step that
// runs every node but placeholders.
//   _feed.STEP.OUTPUT    the tensor to feed
//   _fetch.STEP.OUTPUT   true
//   _target.STEP         true
inline constexpr char kFeedMark[] = "_feed.";
inline constexpr char kFetchMark[] = "_fetch.";
inline constexpr char kTargetMark[] = "_target.";
inline constexpr int kMaxSteps = 8;

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_MUTATE_H_
