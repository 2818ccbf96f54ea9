#include "weir/kernels/lib/resumable.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "weir/kernels/lib/waiter_queue.h"

namespace weir {

std::vector<ResumableKind> ResumableKinds() { return {RandomStreams(), Iterators(), Queues()}; }

namespace {

// A node of a function that was inlined has the name of the call before its own.
const Node* FindByName(const Graph& graph, absl::string_view name) {
  for (;;) {
    if (const Node* node = graph.FindNode(name)) return node;
    const size_t slash = name.rfind('/');
    if (slash == absl::string_view::npos) return nullptr;
    name = name.substr(0, slash);
  }
}

}  // namespace

const Node* FindMaker(const Graph& graph, const ResumableKind& kind, const ResumableState& state) {
  if (kind.is_named_as_node) return FindByName(graph, state.name);
  for (const auto& node : graph.nodes()) {
    if (!kind.makes(*node)) continue;
    const absl::StatusOr<ResourceName> name = NameOfResource(*node);
    if (name.ok() && name->name == state.name && name->container == state.container)
      return node.get();
  }
  return nullptr;
}

absl::string_view UnsavedState(const Node& node) {
  constexpr std::pair<absl::string_view, absl::string_view> kStates[] = {
      {"AnonymousIterator", "the position of the iterator"},
      {"AnonymousIteratorV2", "the position of the iterator"},
      {"AnonymousIteratorV3", "the position of the iterator"},
      {"AnonymousMultiDeviceIterator", "the position of the iterator"},
      {"AnonymousMultiDeviceIteratorV3", "the position of the iterator"},
      {"Barrier", "the elements of the barrier"},
      {"ConditionalAccumulator", "the gradients of the accumulator"},
      {"FixedLengthRecordReader", "the position of the reader"},
      {"FixedLengthRecordReaderV2", "the position of the reader"},
      {"IdentityReader", "the counts of the reader"},
      {"IdentityReaderV2", "the counts of the reader"},
      {"LMDBReader", "the position of the reader"},
      {"LearnedUnigramCandidateSampler", "the counts of the classes"},
      {"MapStage", "the elements of the staging area"},
      {"MultiDeviceIterator", "the position of the iterator"},
      {"MutableDenseHashTable", "the entries of the table"},
      {"MutableDenseHashTableV2", "the entries of the table"},
      {"MutableHashTable", "the entries of the table"},
      {"MutableHashTableOfTensors", "the entries of the table"},
      {"MutableHashTableOfTensorsV2", "the entries of the table"},
      {"MutableHashTableV2", "the entries of the table"},
      {"OrderedMapStage", "the elements of the staging area"},
      {"RecordInput", "the position of the reader"},
      {"ResourceConditionalAccumulator", "the gradients of the accumulator"},
      {"Skipgram", "the position in the text"},
      {"SparseConditionalAccumulator", "the gradients of the accumulator"},
      {"Stage", "the elements of the staging area"},
      {"TFRecordReader", "the position of the reader"},
      {"TFRecordReaderV2", "the position of the reader"},
      {"TextLineReader", "the position of the reader"},
      {"TextLineReaderV2", "the position of the reader"},
      {"WholeFileReader", "the counts of the reader"},
      {"WholeFileReaderV2", "the counts of the reader"},
  };
  const auto* const found =
      std::find_if(std::begin(kStates), std::end(kStates),
                   [&](const auto& state) { return state.first == node.op_name(); });
  return found == std::end(kStates) ? absl::string_view() : found->second;
}

}  // namespace weir
