#include "weir/kernels/data/json_example.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include "weir/proto/example.pb.h"

namespace weir {

absl::StatusOr<std::string> ExampleFromJson(const std::string& json) {
  namespace protobuf = google::protobuf;
  constexpr char kPrefix[] = "type.googleapis.com";
  static protobuf::util::TypeResolver* const resolver =
      protobuf::util::NewTypeResolverForDescriptorPool(kPrefix,
                                                       protobuf::DescriptorPool::generated_pool());
  const std::string type = absl::StrCat(kPrefix, "/", proto::Example::descriptor()->full_name());
  std::string binary;
  const auto status = protobuf::util::JsonToBinaryString(resolver, type, json, &binary);
  if (status.ok()) return binary;
  return InvalidArgument("Error while parsing JSON: ", status.message().as_string());
}

}  // namespace weir
