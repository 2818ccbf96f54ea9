#include "weir/core/tensor/variant.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "weir/core/tensor/mutex.h"

namespace weir {

namespace {

struct Codecs {
  Mutex mutex;
  absl::flat_hash_map<std::string, VariantCodec> by_type ABSL_GUARDED_BY(mutex);
};

// Never destroyed: other threads may read tensors while the process ends.
Codecs& AllCodecs() {
  static auto* const codecs = new Codecs;
  return *codecs;
}

// Returns null functions if the type has no codec.
VariantCodec CodecOf(const std::string& type_name) {
  Codecs& codecs = AllCodecs();
  const MutexLock lock(codecs.mutex);
  const auto it = codecs.by_type.find(type_name);
  return it == codecs.by_type.end() ? VariantCodec{} : it->second;
}

const std::vector<Tensor>* TensorsOf(const Variant& variant) {
  return std::any_cast<std::vector<Tensor>>(&variant.value);
}

}  // namespace

void RegisterVariantCodec(const std::string& type_name, VariantCodec codec) {
  Codecs& codecs = AllCodecs();
  const MutexLock lock(codecs.mutex);
  codecs.by_type[type_name] = codec;
}

absl::Status CheckHasParts(const Tensor& variants) {
  for (const Variant& each : variants.flat<Variant>()) {
    if (each.value.has_value() && TensorsOf(each) == nullptr &&
        CodecOf(each.type_name).split == nullptr) {
      return Unimplemented("A variant of type '", each.type_name,
                           "' exists only in its process: it cannot be sent or serialized");
    }
  }
  return absl::OkStatus();
}

VariantParts SplitVariant(const Variant& variant) {
  if (const std::vector<Tensor>* tensors = TensorsOf(variant))
    return {.metadata = variant.metadata, .tensors = *tensors};
  const VariantCodec codec = CodecOf(variant.type_name);
  if (codec.split != nullptr && variant.value.has_value()) return codec.split(variant.value);
  return {.metadata = variant.metadata, .tensors = {}};
}

absl::StatusOr<Variant> JoinVariant(std::string type_name, VariantParts parts) {
  Variant variant;
  const VariantCodec codec = CodecOf(type_name);
  if (codec.join != nullptr) {
    WEIR_ASSIGN_OR_RETURN(variant.value, codec.join(std::move(parts)));
  } else {
    variant.metadata = std::move(parts.metadata);
    variant.value = std::move(parts.tensors);
  }
  variant.type_name = std::move(type_name);
  return variant;
}

}  // namespace weir
