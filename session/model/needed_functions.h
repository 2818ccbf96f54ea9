#ifndef WEIR_SESSION_MODEL_NEEDED_FUNCTIONS_H_
#define WEIR_SESSION_MODEL_NEEDED_FUNCTIONS_H_

#include <string>
#include <vector>

namespace weir::proto {
class GraphDef;
}

namespace weir {

// Removes from the library of a GraphDef the functions, and the declarations of gradients, that
// neither its nodes nor the functions in `also` need, directly or through other functions.
void RemoveUnneededFunctions(const std::vector<std::string>& also, proto::GraphDef* def);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_NEEDED_FUNCTIONS_H_
