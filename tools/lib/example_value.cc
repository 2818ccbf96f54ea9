#include "weir/tools/lib/example_value.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "weir/kernels/data/json_example.h"
#include "weir/proto/example.pb.h"

namespace weir::tools {

namespace {

using Json = nlohmann::json;

// Whether an object is a tf.Example as protobuf writes it.
bool IsMessage(const Json& object) {
  const auto features = object.find("features");
  return object.size() == 1 && features != object.end() && features->is_object() &&
         features->contains("feature");
}

absl::Status AddBytes(const Json& value, proto::Feature* feature) {
  std::string* const out = feature->mutable_bytes_list()->add_value();
  if (value.is_string()) {
    *out = value.get_ref<const std::string&>();
    return absl::OkStatus();
  }
  if (!IsBase64(value)) return InvalidArgument("it has both strings and numbers");
  return DecodeBase64(value, out) ? absl::OkStatus() : InvalidArgument("its base64 is malformed");
}

absl::Status AddInt64(const Json& value, proto::Feature* feature) {
  if (!value.is_number_integer() && !value.is_boolean())
    return InvalidArgument("it has both strings and numbers");
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return InvalidArgument(value.dump(), " is out of the range of int64");
  }
  feature->mutable_int64_list()->add_value(value.is_boolean() ? int64_t{value.get<bool>()}
                                                              : value.get<int64_t>());
  return absl::OkStatus();
}

absl::Status AddFloat(const Json& value, proto::Feature* feature) {
  if (!value.is_number()) return InvalidArgument("it has both strings and numbers");
  const auto number = static_cast<float>(value.get<double>());
  if (std::isinf(number)) return InvalidArgument(value.dump(), " is out of the range of float");
  feature->mutable_float_list()->add_value(number);
  return absl::OkStatus();
}

absl::Status FillFeature(const Json& values, proto::Feature* feature) {
  bool has_strings = false, has_fractions = false;
  for (const Json& value : values) {
    if (value.is_null() || value.is_array() || (value.is_object() && !IsBase64(value))) {
      return InvalidArgument("expected a number, a string or a list of these, not ",
                             value.type_name());
    }
    has_strings |= value.is_string() || value.is_object();
    has_fractions |= value.is_number_float();
  }
  const auto add = has_strings ? AddBytes : has_fractions ? AddFloat : AddInt64;
  for (const Json& value : values) WEIR_RETURN_IF_ERROR(add(value, feature));
  return absl::OkStatus();
}

}  // namespace

bool IsBase64(const Json& value) {
  return value.is_object() && value.size() == 1 && value.contains("b64") &&
         value["b64"].is_string();
}

bool DecodeBase64(const Json& value, std::string* out) {
  return absl::Base64Unescape(value["b64"].get_ref<const std::string&>(), out);
}

absl::StatusOr<std::string> SerializeExample(const Json& object) {
  if (!object.is_object())
    return InvalidArgument("expected an object of features, not ", object.type_name());
  if (IsMessage(object)) return ExampleFromJson(object.dump());
  proto::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  for (const auto& [name, value] : object.items()) {
    proto::Feature& feature = features[name];
    const absl::Status status = value.is_array() ? FillFeature(value, &feature)
                                                 : FillFeature(Json::array({value}), &feature);
    if (!status.ok()) return Annotate(status, absl::StrCat("feature '", name, "'"));
  }
  return example.SerializeAsString();
}

}  // namespace weir::tools
