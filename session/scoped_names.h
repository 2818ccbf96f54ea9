#ifndef WEIR_SESSION_SCOPED_NAMES_H_
#define WEIR_SESSION_SCOPED_NAMES_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace weir::proto {
class NodeDef;
class QueueRunnerDef;
}  // namespace weir::proto

// Names in the messages of a meta graph, when it leaves a name scope or comes under one. A scope is
// given as a prefix that ends in '/', or is empty.
namespace weir {

// What an input from outside the scope is called in a meta graph of a part of a graph; its importer
// says what to take for it.
inline constexpr char kUnboundPrefix[] = "$unbound_inputs_";
inline constexpr char kUnboundInputs[] = "unbound_inputs";

// "a/", for "a" and "a/".
std::string ScopePrefix(absl::string_view scope);
// Whether "a/b", "a/b:0", "^a/b" or "loc:@a/b" lies in the scope.
bool InScope(absl::string_view name, absl::string_view prefix);
// The name without the scope, if it lies there; "^" and "loc:@" stay in front.
std::string StripScope(absl::string_view name, absl::string_view prefix);
std::string AddScope(absl::string_view name, absl::string_view prefix);

// Takes the scope from all names of a node in it. Inputs from elsewhere get kUnboundPrefix, and
// `unbound` is called with their new names; marks of places elsewhere go.
void StripScope(absl::string_view prefix, const std::function<void(const std::string&)>& unbound,
                proto::NodeDef* node);

// Calls `fn` with each name in it.
void ForEachName(proto::QueueRunnerDef* def, const std::function<void(std::string*)>& fn);

// True for the collections that hold contexts of control flow.
bool HoldsContexts(absl::string_view collection);
// An element of such a collection with other names; empty if it is none.
std::string RenameContext(absl::string_view collection, const std::string& bytes,
                          const std::function<std::string(const std::string&)>& rename);
// The name that such an element has; empty if it is none.
std::string NameOfContext(absl::string_view collection, const std::string& bytes);

}  // namespace weir

#endif  // WEIR_SESSION_SCOPED_NAMES_H_
