#ifndef WEIR_CORE_IMPORT_DEFINITIONS_H_
#define WEIR_CORE_IMPORT_DEFINITIONS_H_

#include <memory>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weir/core/graph/graph.h"

namespace weir::proto {
class OpList;
}

namespace weir {

// An op's definition, with the default values of its attributes.
struct OpDefinition {
  OpSpec spec;
  AttrMap defaults = {};
};

// The definitions of ops that the graph's registry lacks: Python functions (ClientOps), and those
// that come with the GraphDef.
class OpDefinitions {
 public:
  // `op_list`: a serialized OpList, which outlives this object. It is parsed on first use; one that
  // cannot be parsed is empty.
  explicit OpDefinitions(absl::string_view op_list);
  ~OpDefinitions();

  // Returns nothing if there is no such definition, or a malformed one. `budget` is that of
  // AttrFromProto.
  std::optional<OpDefinition> Find(absl::string_view name, int64_t* budget);

 private:
  const absl::string_view bytes_;
  std::unique_ptr<proto::OpList> list_;
};

// The types of a node's inputs and outputs.
struct SignatureTypes {
  NodeTypes inputs, outputs;
};
// Returns the types that the definition gives to a node with these attributes. Returns nothing if
// the node does not match: if an attribute is missing or invalid, if it has another number of
// inputs or one of another type, or if it has more than `max_outputs` outputs.
std::optional<SignatureTypes> TypesByDefinition(const OpDefinition& definition,
                                                const AttrMap& attrs,
                                                absl::Span<const Output> inputs,
                                                int64_t max_outputs);

}  // namespace weir

#endif  // WEIR_CORE_IMPORT_DEFINITIONS_H_
