#ifndef WEIR_SESSION_MODEL_OBJECT_FUNCTIONS_H_
#define WEIR_SESSION_MODEL_OBJECT_FUNCTIONS_H_

#include <map>
#include <string>
#include <vector>

#include "weir/session/model/captured_objects.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/model/object_graph_builder.h"

namespace weir {

// A function of a model of objects.
struct ObjectFunction {
  std::string name;  // in the library; empty: there is none
  std::vector<TensorType> inputs, results;
  std::vector<Node*> captures;  // representatives of CapturedObjects, as the last arguments
};

// The functions of a model of objects.
struct ObjectFunctions {
  struct OfSignature {
    ObjectFunction method;   // takes the inputs in the order of their names
    ObjectFunction wrapper;  // calls the method, with inputs by keyword
  };
  struct OfTable {
    ObjectFunction create;      // returns the handle
    ObjectFunction initialize;  // fills the table, if the model does
    // Of a mutable table: returns its keys and values with their keys in the checkpoint, and
    // replaces its contents by keys and values.
    ObjectFunction save, restore;
  };
  std::map<std::string, OfSignature> signatures;
  std::vector<std::pair<Node*, OfTable>> tables;  // those that the functions use
};

// Makes the signatures of a graph functions, and what creates and initializes the tables that they
// use: the nodes that `init` needs, or the graph's table initializers if it is invalid. The
// functions are added to the library of `out`. Signatures for a loader
// (IsLoaderSignature) have no function.
//   INVALID_ARGUMENT  a signature has no output, or one that is an operation
//   UNIMPLEMENTED     a table is created from another object
// and the errors of ExtractFunction.
absl::StatusOr<ObjectFunctions> ExtractObjectFunctions(
    const Graph& graph, const CapturedObjects& objects,
    const std::map<std::string, Signature>& signatures, const Operation& init, Graph& out);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_OBJECT_FUNCTIONS_H_
