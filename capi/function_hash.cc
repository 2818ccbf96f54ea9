#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "weir/capi/function_def.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/function.pb.h"

// The hash that TensorFlow appends to the names of functions: MurmurHash64A over the parts of a
// FunctionDef, in an order that does not depend on that of its maps.
namespace weir::capi {

namespace {

constexpr uint64_t kSeed = 0xDECAFCAFFE;

uint64_t Hash(absl::string_view bytes, uint64_t seed = kSeed) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  constexpr int kShift = 47;
  const auto word = [](absl::string_view part) {
    uint64_t value = 0;
    for (size_t i = 0; i < part.size(); ++i)
      value |= uint64_t{static_cast<uint8_t>(part[i])} << 8 * i;
    return value;
  };
  uint64_t hash = seed ^ (bytes.size() * kFactor);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t k = word(bytes.substr(0, 8)) * kFactor;
    k ^= k >> kShift;
    hash = (hash ^ (k * kFactor)) * kFactor;
  }
  if (!bytes.empty()) hash = (hash ^ word(bytes)) * kFactor;
  hash = (hash ^ (hash >> kShift)) * kFactor;
  return hash ^ (hash >> kShift);
}

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
  if (value.has_tensor()) return Hash(DeterministicBytes(WithContent(value.tensor())));
  if (!value.has_func()) return Hash(DeterministicBytes(value));
  uint64_t hash = Hash(value.func().name());
  for (const auto& [name, attr] : Sorted(value.func().attr()))
    hash = Combine(Hash(name, hash), HashOf(*attr));
  return hash;
}

uint64_t HashOf(const proto::OpDef::AttrDef& attr) {
  uint64_t hash = Hash(attr.type(), Hash(attr.name()));
  hash = Combine(hash, HashOf(attr.default_value()));
  hash = Hash(attr.description(), hash);
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
  uint64_t hash = kSeed;
  for (const proto::OpDef::AttrDef* attr : SortedByName(signature.attr()))
    hash = Combine(Hash(attr->name(), hash), HashOf(*attr));
  const std::set<std::string> controls(signature.control_output().begin(),
                                       signature.control_output().end());
  for (const std::string& control : controls) hash = Combine(Hash(control), hash);
  proto::OpDef rest = signature;
  rest.clear_attr();
  rest.clear_control_output();
  return Hash(DeterministicBytes(rest), hash);
}

uint64_t HashOf(const proto::NodeDef& node) {
  uint64_t hash = Hash(node.device(), Hash(node.op(), Hash(node.name())));
  std::set<absl::string_view> controls;
  for (const std::string& input : node.input()) {
    if (absl::StartsWith(input, "^")) {
      controls.insert(input);
    } else {
      hash = Hash(input, hash);
    }
  }
  for (const absl::string_view control : controls) hash = Hash(control, hash);
  for (const auto& [name, attr] : Sorted(node.attr())) {
    if (!absl::StartsWith(name, "_")) hash = Combine(Hash(name, hash), HashOf(*attr));
  }
  return hash;
}

uint64_t HashOf(const google::protobuf::RepeatedPtrField<proto::NodeDef>& nodes) {
  uint64_t hash = kSeed;
  for (const proto::NodeDef* node : SortedByName(nodes))
    hash = Combine(Hash(node->name(), hash), HashOf(*node));
  return hash;
}

}  // namespace

uint64_t FunctionDefHash(const proto::FunctionDef& def) {
  uint64_t hash = HashOf(def.signature());
  for (const auto& [name, attr] : Sorted(def.attr())) {
    if (attr->value_case() != proto::AttrValue::VALUE_NOT_SET)
      hash = Combine(Hash(name, hash), HashOf(*attr));
  }
  hash = Combine(hash, HashOf(def.node_def()));
  for (const auto& [name, tensor] : Sorted(def.ret())) hash = Hash(*tensor, Hash(name, hash));
  for (const auto& [name, node] : Sorted(def.control_ret())) hash = Hash(*node, Hash(name, hash));
  return hash;
}

}  // namespace weir::capi
