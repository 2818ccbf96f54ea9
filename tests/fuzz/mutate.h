#ifndef WEIR_TESTS_FUZZ_MUTATE_H_
#define WEIR_TESTS_FUZZ_MUTATE_H_

#include <cstdint>

namespace weir::proto {
class GraphDef;
}

namespace weir::fuzz {

// Makes one to four changes to a graph, as a hostile or careless writer might: to attributes,
// constants, inputs, ops, nodes and functions; or adds nodes of any op, with constants of the types
// of its inputs. The same seed makes the same changes.
void Mutate(uint64_t seed, proto::GraphDef* graph);

// Marks describe the steps of a graph, so that an input of the fuzzer is a single GraphDef. They
// are attributes of nodes. Step numbers start at 0; a graph without marks has one step that runs
// every node except placeholders.
//   _feed.STEP.OUTPUT    the tensor to feed
//   _fetch.STEP.OUTPUT   true
//   _target.STEP         true
inline constexpr char kFeedMark[] = "_feed.";
inline constexpr char kFetchMark[] = "_fetch.";
inline constexpr char kTargetMark[] = "_target.";
inline constexpr int kMaxSteps = 8;

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_MUTATE_H_
