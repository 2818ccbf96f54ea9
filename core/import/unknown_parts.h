#ifndef WEIR_CORE_IMPORT_UNKNOWN_PARTS_H_
#define WEIR_CORE_IMPORT_UNKNOWN_PARTS_H_

#include <string>

#include "weir/core/graph/op.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"

namespace weir {

// Decides what happens to the ops and attributes of an import that this program does not know.
class UnknownPartsChecker {
 public:
  UnknownPartsChecker(const OpRegistry& ops, UnknownParts unknown) : ops_(ops), unknown_(unknown) {}

  // Checks the nodes of functions, which are not imported before they are called. `known` has all
  // functions that they may call.
  absl::Status CheckFunctions(const proto::FunctionDefLibrary& library,
                              const FunctionLibrary& known);
  // Returns NOT_FOUND for an unknown op that is rejected.
  absl::Status AddOp(const std::string& op) const;
  // Returns INVALID_ARGUMENT for an attribute, which `op` does not have, that is rejected.
  absl::Status AddAttr(const OpSpec& op, const std::string& name);
  // Prints the line about attributes that were kept, if there are any.
  void Log() const;

 private:
  const OpRegistry& ops_;
  const UnknownParts unknown_;
  int64_t num_attrs_ = 0;
  std::string first_attr_;  // "'x' of Y"
};

}  // namespace weir

#endif  // WEIR_CORE_IMPORT_UNKNOWN_PARTS_H_
