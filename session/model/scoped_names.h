#ifndef WEIR_SESSION_MODEL_SCOPED_NAMES_H_
#define WEIR_SESSION_MODEL_SCOPED_NAMES_H_

#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace weir::proto {
class NodeDef;
class QueueRunnerDef;
}  // namespace weir::proto

// Rewrites the names in the messages of a meta graph when it is exported from a name scope or
// imported into one. A scope is a prefix that ends in '/', or is empty.
namespace weir {

// The name prefix of an input from outside the scope in a partial meta graph; the importer supplies
// a tensor for it.
inline constexpr char kUnboundPrefix[] = "$unbound_inputs_";
inline constexpr char kUnboundInputs[] = "unbound_inputs";

// Returns "a/" for "a" and for "a/".
std::string ScopePrefix(absl::string_view scope);
// Returns whether "a/b", "a/b:0", "^a/b" or "loc:@a/b" is in the scope.
bool InScope(absl::string_view name, absl::string_view prefix);
// Returns the name without the scope, if it is in the scope; "^" and "loc:@" stay in front.
std::string StripScope(absl::string_view name, absl::string_view prefix);
std::string AddScope(absl::string_view name, absl::string_view prefix);

// Returns the text as the name of a node: other signs than letters, digits, "_", ".", "/" and "-"
// become "_".
std::string AsNodeName(absl::string_view text);

// Returns `base`, or "base_1", "base_2", ..., whichever is not taken.
std::string UnusedName(const std::string& base,
                       absl::FunctionRef<bool(const std::string&)> is_taken);

// Strips the scope from all names of a node. Inputs from outside get kUnboundPrefix, and `unbound`
// is called with their new names; colocations with nodes outside are removed.
void StripScope(absl::string_view prefix, const std::function<void(const std::string&)>& unbound,
                proto::NodeDef* node);

// Calls `fn` with each name in the message.
void ForEachName(proto::QueueRunnerDef* def, const std::function<void(std::string*)>& fn);

// Returns true for the collections of control-flow contexts.
bool IsContextCollection(absl::string_view collection);
// Returns an element of such a collection with renamed nodes; empty if it does not parse.
std::string RenameContext(absl::string_view collection, const std::string& bytes,
                          const std::function<std::string(const std::string&)>& rename);
// Returns the name of such an element; empty if it does not parse.
std::string ContextName(absl::string_view collection, const std::string& bytes);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_SCOPED_NAMES_H_
