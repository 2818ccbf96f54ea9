#ifndef WEIR_TOOLS_GRAPH_SIGNATURE_H_
#define WEIR_TOOLS_GRAPH_SIGNATURE_H_

#include <map>
#include <string>
#include <vector>

#include "weir/tools/graph/model.h"

// The signature that a command calls: one of the model's, or one made for a function of a model of
// TensorFlow 2 that has none.
namespace weir::tools {

struct ChosenSignature {
  std::string name;
  Signature signature;
};

// Returns the signature of this name, or else calls the function of this name: adds the call to the
// model's graph. Of a function that was traced several times, "f[1]" is the second trace, and "f"
// the first that accepts `feeds`, texts such as "x=[1, 2]". The name "" denotes serving_default, or
// the only signature, or in a model without signatures the only function. NOT_FOUND, with all
// names and the nearest first, for another name.
absl::StatusOr<ChosenSignature> ChooseSignature(Model& model, const std::string& name,
                                                const std::vector<std::string>& feeds);

// Returns "f(x: float[?,2]) -> y".
std::string Describe(const std::string& name, const Signature& signature, const Model& model);
std::string Describe(const SavedFunction& function);

// Returns the tensor that a name of the signature, or of the graph, stands for. `chosen` may be
// null. `side` is "input" or "output". NOT_FOUND, with the signature's names, for another name.
absl::StatusOr<Output> FindTensor(const Model& model, const ChosenSignature* chosen,
                                  const std::string& side, const std::string& name);
// Returns the error for inputs, with their tensors, that have no value: INVALID_ARGUMENT.
absl::Status MissingInputs(const ChosenSignature& chosen,
                           const std::map<std::string, std::string>& inputs, const Model& model);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_GRAPH_SIGNATURE_H_
