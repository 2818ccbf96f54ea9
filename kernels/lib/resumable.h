#ifndef WEIR_KERNELS_LIB_RESUMABLE_H_
#define WEIR_KERNELS_LIB_RESUMABLE_H_

#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/runtime/resource.h"
#include "weir/core/tensor/tensor.h"

// The state of a session, besides its variables, that a run needs in order to continue with the
// same bits in another process: the positions of random streams and of iterators, and the elements
// of queues. Each kind of resource says how its state is taken and put back.
namespace weir {

// The collection with the name of a function, in the graph of its body. Random streams of functions
// have it in their names, so that two functions have streams of their own.
inline constexpr char kFunctionNameCollection[] = "weir_function_name";

// The state of one resource, in a form that can be stored.
struct ResumableState {
  std::string kind;             // ResumableKind::name
  std::string container, name;  // of the resource
  bool is_own = false;          // the session does not share it: see ResourceName
  Tensors values = {};          // of numbers and strings
};

// A kind of resource.
struct ResumableKind {
  const char* name;  // in files and messages: "iterator"
  // Whether a node makes a resource of this kind.
  bool (*makes)(const Node& node);
  // Appends the states of all resources of this kind. Describes those whose state cannot be taken
  // whole in `lost`: "queue 'q': the elements of 2 calls that wait for it". No step may run.
  void (*take)(ResourceMap& resources, std::vector<ResumableState>* states,
               std::vector<std::string>* lost);
  // Puts a state back. DATA_LOSS for one that `take` did not return, INVALID_ARGUMENT for that of a
  // resource with another definition.
  absl::Status (*restore)(ResourceMap& resources, const ResumableState& state);
  // Whether the resource has the name of its node (RandomStream), rather than NameOfResource.
  bool is_named_as_node = false;
  // Whether the node must have run in the session before `restore`.
  bool needs_node = false;
};

// All kinds: random_stream.cc, iterator_state.cc and queue_contents.cc.
std::vector<ResumableKind> ResumableKinds();

// Returns the node of the graph that makes the resource, or the call of a function that has it;
// null if there is none.
const Node* FindMaker(const Graph& graph, const ResumableKind& kind, const ResumableState& state);

// Returns what a node holds that no kind above covers, such as "the elements of a barrier"; "" if
// it holds nothing.
absl::string_view UnsavedState(const Node& node);

ResumableKind RandomStreams();
ResumableKind Iterators();
ResumableKind Queues();

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_RESUMABLE_H_
