#ifndef WEIR_TOOLS_CASE_CASE_COLLECTIONS_H_
#define WEIR_TOOLS_CASE_CASE_COLLECTIONS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"

namespace weir::proto {
class MetaGraphDef;
}

namespace weir::tools {

// Compares a MetaGraphDef, and the graph it was imported into, with the members `variable_defs` and
// `collections` of a case. Returns the mismatches.
std::vector<std::string> CheckCollections(const proto::MetaGraphDef& meta, const Graph& graph,
                                          const nlohmann::json& spec);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CASE_CASE_COLLECTIONS_H_
