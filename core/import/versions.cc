#include "weir/core/import/versions.h"

#include <algorithm>

#include "weir/proto/graph.pb.h"

namespace weir {

namespace {

// The newest GraphDef version that Weir understands: that of the newest TensorFlow release it is
// tested against.
constexpr int kConsumerVersion = 2474;

}  // namespace

absl::Status CheckVersions(const proto::VersionDef& versions) {
  if (versions.producer() < 0) {
    return InvalidArgument("GraphDef producer version ", versions.producer(),
                           " below min producer 0 supported by Weir");
  }
  if (versions.min_consumer() > kConsumerVersion) {
    return InvalidArgument("GraphDef min consumer version ", versions.min_consumer(),
                           " above current version ", kConsumerVersion,
                           " for Weir.  Please upgrade Weir.");
  }
  for (const int bad : versions.bad_consumers()) {
    if (bad == kConsumerVersion) {
      return InvalidArgument("GraphDef disallows consumer version ", bad,
                             ".  Please upgrade Weir: this version is likely buggy.");
    }
  }
  return absl::OkStatus();
}

void MergeVersions(const proto::VersionDef& imported, bool graph_is_empty,
                   GraphVersions* versions) {
  versions->producer =
      graph_is_empty ? imported.producer() : std::min(versions->producer, imported.producer());
  versions->min_consumer = std::max(versions->min_consumer, imported.min_consumer());
  for (const int bad : imported.bad_consumers()) {
    auto& list = versions->bad_consumers;
    if (std::find(list.begin(), list.end(), bad) == list.end()) list.push_back(bad);
  }
}

}  // namespace weir
