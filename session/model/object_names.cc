#include "weir/session/model/object_names.h"

#include "weir/proto/trackable_object_graph.pb.h"

namespace weir {

std::string EscapedObjectName(absl::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '.' || c == '/') out += '.';
    out += c == '/' ? 'S' : c;
  }
  return out;
}

absl::StatusOr<std::map<std::string, std::string>> FullNamesOf(CheckpointReader& reader) {
  std::map<std::string, std::string> names;
  const absl::StatusOr<Tensor> entry = reader.Read(kObjectGraphKey);
  if (absl::IsNotFound(entry.status())) return names;
  if (!entry.ok()) return entry.status();
  proto::TrackableObjectGraph objects;
  if (entry->dtype() != DT_STRING || entry->num_elements() != 1 ||
      !objects.ParseFromString(*entry->data<std::string>())) {
    return DataLoss("tensor ", kObjectGraphKey, " of the checkpoint, ", entry->Description(),
                    ", is not a graph of objects");
  }
  for (const auto& object : objects.nodes()) {
    for (const auto& attribute : object.attributes()) {
      if (!attribute.full_name().empty() && !attribute.checkpoint_key().empty())
        names[attribute.checkpoint_key()] = attribute.full_name();
    }
  }
  return names;
}

}  // namespace weir
