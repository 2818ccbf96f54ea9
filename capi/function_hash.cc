#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "weir/capi/function_def.h"
#include "weir/core/io/proto_values.h"
#include "weir/kernels/lib/hash.h"
#include "weir/proto/function.pb.h"

// The hash that TensorFlow appends to the names of functions: MurmurHash64A over the parts of a
// FunctionDef, in an order that does not depend on that of its maps.
namespace weir::capi {

namespace {

uint64_t Combine(uint64_t hash, uint64_t next) {
  return next ^ (hash + 0x9e3779b97f4a7800 + (next << 10) + (next >> 4));
}

// Returns the entries of a map of messages, sorted by key.
template <class Map>
auto Sorted(const Map& map) {
  std::map<absl::string_view, const typename Map::mapped_type*> sorted;
  for (const auto& [key, value] : map) sorted.emplace(key, &value);
  return sorted;
}

// Returns the message in the one form that equal tensors share; other messages unchanged.
proto::TensorProto WithContent(const proto::TensorProto& tensor) {
  const absl::StatusOr<Tensor> value = TensorFromProto(tensor);
  if (!value.ok()) return tensor;
  proto::TensorProto content;
  TensorToProtoContent(*value, &content);
  return content;
}

uint64_t HashOf(const proto::AttrValue& value) {
  if (value.has_tensor()) return MurmurHash64(DeterministicBytes(WithContent(value.tensor())));
  if (!value.has_func()) return MurmurHash64(DeterministicBytes(value));
  uint64_t hash = MurmurHash64(value.func().name());
  for (const auto& [name, attr] : Sorted(value.func().attr()))
    hash = Combine(SeededMurmurHash64(name, hash), HashOf(*attr));
  return hash;
}

uint64_t HashOf(const proto::OpDef::AttrDef& attr) {
  uint64_t hash = SeededMurmurHash64(attr.type(), MurmurHash64(attr.name()));
  hash = Combine(hash, HashOf(attr.default_value()));
  hash = SeededMurmurHash64(attr.description(), hash);
  hash = Combine(hash, attr.has_minimum() ? 1 : 0);
  hash = Combine(hash, static_cast<uint64_t>(attr.minimum()));
  return Combine(hash, HashOf(attr.allowed_values()));
}

template <class Message>
std::vector<const Message*> SortedByName(
    const google::protobuf::RepeatedPtrField<Message>& messages) {
  std::vector<const Message*> sorted;
  for (const Message& message : messages) sorted.push_back(&message);
  std::sort(sorted.begin(), sorted.end(),
            [](const Message* a, const Message* b) { return a->name() < b->name(); });
  return sorted;
}

uint64_t HashOf(const proto::OpDef& signature) {
  uint64_t hash = kMurmurSeed;
  for (const proto::OpDef::AttrDef* attr : SortedByName(signature.attr()))
    hash = Combine(SeededMurmurHash64(attr->name(), hash), HashOf(*attr));
  const std::set<std::string> controls(signature.control_output().begin(),
                                       signature.control_output().end());
  for (const std::string& control : controls) hash = Combine(MurmurHash64(control), hash);
  proto::OpDef rest = signature;
  rest.clear_attr();
  rest.clear_control_output();
  return SeededMurmurHash64(DeterministicBytes(rest), hash);
}

uint64_t HashOf(const proto::NodeDef& node) {
  uint64_t hash =
      SeededMurmurHash64(node.device(), SeededMurmurHash64(node.op(), MurmurHash64(node.name())));
  std::set<absl::string_view> controls;
  for (const std::string& input : node.input()) {
    if (absl::StartsWith(input, "^")) {
      controls.insert(input);
    } else {
      hash = SeededMurmurHash64(input, hash);
    }
  }
  for (const absl::string_view control : controls) hash = SeededMurmurHash64(control, hash);
  for (const auto& [name, attr] : Sorted(node.attr())) {
    if (!absl::StartsWith(name, "_")) hash = Combine(SeededMurmurHash64(name, hash), HashOf(*attr));
  }
  return hash;
}

uint64_t HashOf(const google::protobuf::RepeatedPtrField<proto::NodeDef>& nodes) {
  uint64_t hash = kMurmurSeed;
  for (const proto::NodeDef* node : SortedByName(nodes))
    hash = Combine(SeededMurmurHash64(node->name(), hash), HashOf(*node));
  return hash;
}

}  // namespace

uint64_t FunctionDefHash(const proto::FunctionDef& def) {
  uint64_t hash = HashOf(def.signature());
  for (const auto& [name, attr] : Sorted(def.attr())) {
    if (attr->value_case() != proto::AttrValue::VALUE_NOT_SET)
      hash = Combine(SeededMurmurHash64(name, hash), HashOf(*attr));
  }
  hash = Combine(hash, HashOf(def.node_def()));
  for (const auto& [name, tensor] : Sorted(def.ret()))
    hash = SeededMurmurHash64(*tensor, SeededMurmurHash64(name, hash));
  for (const auto& [name, node] : Sorted(def.control_ret()))
    hash = SeededMurmurHash64(*node, SeededMurmurHash64(name, hash));
  return hash;
}

}  // namespace weir::capi
