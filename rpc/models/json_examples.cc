#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "weir/proto/example.pb.h"
#include "weir/rpc/models/json_events.h"
#include "weir/rpc/models/json_request.h"

namespace weir::rpc {

namespace {

// As messages, features take some 200 bytes each; only one example is a message at a time.
constexpr int kMaxFeatures = 10'000;
constexpr size_t kSmallBytes = size_t{64} << 20, kMaxExpansion = 4;

const char* NameOf(proto::Feature::KindCase kind) {
  switch (kind) {
    case proto::Feature::kBytesList:
      return "bytes";
    case proto::Feature::kFloatList:
      return "float";
    case proto::Feature::kInt64List:
      return "int64";
    default:
      return "UNKNOWN";
  }
}

absl::Status AddValue(JsonScalar& value, const std::string& name, proto::Feature* feature) {
  using Kind = JsonScalar::Kind;
  if (value.kind == Kind::kNull)
    return InvalidArgument("Feature: ", name, " has element with unexpected JSON type: Null");
  const proto::Feature::KindCase kind = value.is_text()               ? proto::Feature::kBytesList
                                        : value.kind == Kind::kDouble ? proto::Feature::kFloatList
                                                                      : proto::Feature::kInt64List;
  if (feature->kind_case() != proto::Feature::KIND_NOT_SET && feature->kind_case() != kind) {
    return InvalidArgument("Unexpected element type in feature: ", name,
                           " expecting type: ", NameOf(feature->kind_case()));
  }
  if (kind == proto::Feature::kBytesList) {
    feature->mutable_bytes_list()->add_value(std::move(value.text));
    return absl::OkStatus();
  }
  if (kind == proto::Feature::kFloatList) {
    const auto stored = static_cast<float>(value.double_value);
    if (std::isinf(stored) && !std::isinf(value.double_value)) {
      return InvalidArgument("Cannot convert JSON value: ", value.ToString(),
                             " to float without loss of precision.");
    }
    feature->mutable_float_list()->add_value(stored);
    return absl::OkStatus();
  }
  if (value.kind == Kind::kUint && value.uint_value > std::numeric_limits<int64_t>::max()) {
    return InvalidArgument("Feature: ", name, " has uint64 element. Only int64 is supported.");
  }
  feature->mutable_int64_list()->add_value(value.kind == Kind::kBool   ? value.boolean
                                           : value.kind == Kind::kUint ? value.uint_value
                                                                       : value.int_value);
  return absl::OkStatus();
}

class ExamplesParser final : public JsonHandler {
 public:
  explicit ExamplesParser(size_t max_bytes) : max_bytes_(max_bytes) {}

  absl::StatusOr<JsonExamplesRequest> Finish() {
    if (keys_.count("examples") == 0)
      return InvalidArgument("Key 'examples' is expected and was not found");
    if (request_.examples.examples.empty())
      return InvalidArgument("'examples' value is an empty array");
    return std::move(request_);
  }

  absl::Status Scalar(JsonScalar& value) override {
    if (depth_ == 0) return InvalidArgument("JSON Value: ", value.ToString(), " Is not object");
    if (field_ == Field::kOther) return absl::OkStatus();
    if (field_ == Field::kSignature) {
      if (value.kind != JsonScalar::Kind::kString) return SignatureIsNoString();
      request_.signature = std::move(value.text);
      return absl::OkStatus();
    }
    if (!in_example_) return IsNoExample(value.ToString());
    WEIR_RETURN_IF_ERROR(CountBytes(sizeof(value.int_value) + value.text.size()));
    return AddValue(value, feature_name_, feature_);
  }

  absl::Status BeginList() override {
    if (++depth_ == 1) return InvalidArgument("JSON Value is a list, and not object");
    if (field_ == Field::kOther) return absl::OkStatus();
    if (field_ == Field::kSignature) return SignatureIsNoString();
    if (in_example_) return depth_ == ExampleDepth() + 1 ? absl::OkStatus() : NestedFeature();
    const bool is_examples = field_ == Field::kExamples && depth_ == 2;
    return is_examples ? absl::OkStatus() : IsNoExample("a list");
  }
  absl::Status EndList() override {
    --depth_;
    return absl::OkStatus();
  }

  absl::Status BeginObject() override {
    if (++depth_ == 1 || field_ == Field::kOther) return absl::OkStatus();
    if (field_ == Field::kSignature) return SignatureIsNoString();
    if (in_example_) return NestedFeature();
    if (depth_ != ExampleDepth())
      return InvalidArgument("Expecting 'examples' value to be an list/array");
    in_example_ = true;
    example_.Clear();
    return absl::OkStatus();
  }

  absl::Status Key(const std::string& name) override {
    if (depth_ == 1) return BeginField(name);
    if (field_ == Field::kOther) return absl::OkStatus();
    auto& features = *example_.mutable_features()->mutable_feature();
    if (features.size() >= kMaxFeatures) {
      return absl::ResourceExhaustedError(
          absl::StrCat("An example has more than ", kMaxFeatures, " features"));
    }
    if (features.contains(name))
      return InvalidArgument("Feature: ", name, " occurs twice in an example");
    feature_name_ = name;
    feature_ = &features[name];
    return absl::OkStatus();
  }

  absl::Status EndObject() override {
    if (--depth_ == 0 || field_ == Field::kOther) return absl::OkStatus();
    in_example_ = false;
    std::string bytes = example_.SerializeAsString();
    WEIR_RETURN_IF_ERROR(CountBytes(bytes.size() + sizeof(std::string)));
    if (field_ == Field::kContext) {
      request_.examples.context = std::move(bytes);
    } else {
      request_.examples.examples.push_back(std::move(bytes));
    }
    return absl::OkStatus();
  }

 private:
  enum class Field { kOther, kSignature, kContext, kExamples };

  absl::Status CountBytes(size_t more) {
    bytes_ += more;
    if (bytes_ <= max_bytes_) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat("The examples of a request have more than ",
                                                     max_bytes_, " bytes: send fewer at once"));
  }

  int ExampleDepth() const { return field_ == Field::kContext ? 2 : 3; }

  absl::Status BeginField(const std::string& name) {
    field_ = name == "signature_name" ? Field::kSignature
             : name == "context"      ? Field::kContext
             : name == "examples"     ? Field::kExamples
                                      : Field::kOther;
    if (field_ == Field::kOther || keys_.insert(name).second) return absl::OkStatus();
    return InvalidArgument("Key '", name, "' occurs twice");
  }

  absl::Status IsNoExample(const std::string& value) const {
    if (field_ == Field::kExamples && depth_ == 1)
      return InvalidArgument("Expecting 'examples' value to be an list/array");
    return InvalidArgument("Example must be JSON object but got JSON ", value);
  }
  absl::Status NestedFeature() const {
    return InvalidArgument("Feature: ", feature_name_,
                           " has element with unexpected JSON type: a list or an object");
  }
  static absl::Status SignatureIsNoString() {
    return InvalidArgument("'signature_name' key must be a string value.");
  }

  const size_t max_bytes_;
  size_t bytes_ = 0;
  Field field_ = Field::kOther;
  std::set<std::string> keys_;
  int depth_ = 0;  // of lists and objects
  bool in_example_ = false;
  proto::Example example_;
  std::string feature_name_;
  proto::Feature* feature_ = nullptr;
  JsonExamplesRequest request_;
};

}  // namespace

absl::StatusOr<JsonExamplesRequest> ParseExamplesRequest(absl::string_view json) {
  ExamplesParser parser(std::max(kSmallBytes, kMaxExpansion * json.size()));
  WEIR_RETURN_IF_ERROR(ParseJson(json, parser));
  return parser.Finish();
}

}  // namespace weir::rpc
