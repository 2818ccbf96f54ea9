#ifndef WEIR_CORE_IMPORT_VERSIONS_H_
#define WEIR_CORE_IMPORT_VERSIONS_H_

#include "weir/core/graph/graph.h"

namespace weir::proto {
class VersionDef;
}

namespace weir {

// Returns INVALID_ARGUMENT if this version of Weir must not read a GraphDef with these versions.
absl::Status CheckVersions(const proto::VersionDef& versions);

// Adds the versions of an imported GraphDef to those of the graph. The GraphDef's producer replaces
// that of an empty graph; otherwise the older producer counts.
void MergeVersions(const proto::VersionDef& imported, bool graph_is_empty, GraphVersions* versions);

}  // namespace weir

#endif  // WEIR_CORE_IMPORT_VERSIONS_H_
