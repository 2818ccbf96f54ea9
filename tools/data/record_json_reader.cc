#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "weir/kernels/data/json_example.h"
#include "weir/proto/example.pb.h"
#include "weir/rpc/models/json_events.h"
#include "weir/tools/data/record_json.h"

// Reading records from JSON: a handler of the events of a line, with a stack of where it is.
namespace weir::tools {

namespace {

using rpc::JsonScalar;

constexpr int kMaxFeatures = 100'000;

// The kind of a list that an object names, "float_list", or kNone.
FeatureKind NamedKind(absl::string_view name) {
  for (const FeatureKind kind : {FeatureKind::kBytes, FeatureKind::kFloat, FeatureKind::kInt64})
    if (name == absl::StrCat(FeatureKindName(kind), "_list")) return kind;
  return FeatureKind::kNone;
}

FeatureKind KindOfScalar(const JsonScalar& value) {
  if (value.is_text()) return FeatureKind::kBytes;
  if (value.kind == JsonScalar::Kind::kDouble && !value.is_integer) return FeatureKind::kFloat;
  return FeatureKind::kInt64;
}

// Makes an empty list of this kind the list of a feature.
void SetKind(FeatureKind kind, proto::Feature* feature) {
  if (kind == FeatureKind::kBytes) feature->mutable_bytes_list();
  if (kind == FeatureKind::kFloat) feature->mutable_float_list();
  if (kind == FeatureKind::kInt64) feature->mutable_int64_list();
}

absl::Status AddFloat(const JsonScalar& value, proto::Feature* feature) {
  const double real = value.kind == JsonScalar::Kind::kBool ? value.boolean : value.AsDouble();
  const auto rounded = static_cast<float>(real);
  if (std::isinf(rounded) && !std::isinf(real))
    return InvalidArgument(value.ToString(), " is out of the range of a float");
  // A long double holds every integer of 64 bits.
  const bool is_exact = value.kind == JsonScalar::Kind::kInt
                            ? static_cast<long double>(value.int_value) == rounded
                        : value.kind == JsonScalar::Kind::kUint
                            ? static_cast<long double>(value.uint_value) == rounded
                            : true;
  if (!is_exact) {
    return InvalidArgument("the integer ", value.ToString(),
                           " is not a float; write it with a point to have it rounded");
  }
  feature->mutable_float_list()->add_value(rounded);
  return absl::OkStatus();
}

absl::Status AddInt64(const JsonScalar& value, proto::Feature* feature) {
  const bool is_large = value.kind == JsonScalar::Kind::kUint &&
                        value.uint_value > std::numeric_limits<int64_t>::max();
  if (is_large || value.kind == JsonScalar::Kind::kDouble)
    return InvalidArgument(value.ToString(), " is out of the range of an int64");
  feature->mutable_int64_list()->add_value(value.kind == JsonScalar::Kind::kBool ? value.boolean
                                           : value.kind == JsonScalar::Kind::kUint
                                               ? static_cast<int64_t>(value.uint_value)
                                               : value.int_value);
  return absl::OkStatus();
}

// Makes a list of integers one of floats, because a float follows them.
absl::Status FloatsFromIntegers(proto::Feature* feature) {
  const proto::Int64List integers = feature->int64_list();
  SetKind(FeatureKind::kFloat, feature);
  for (const int64_t integer : integers.value()) {
    const JsonScalar value{.kind = JsonScalar::Kind::kInt, .int_value = integer};
    WEIR_RETURN_IF_ERROR(AddFloat(value, feature));
  }
  return absl::OkStatus();
}

// `kind` is kNone if the values tell it.
absl::Status AddValue(JsonScalar& value, FeatureKind kind, proto::Feature* feature) {
  if (value.kind == JsonScalar::Kind::kNull) return InvalidArgument("null in a list of values");
  const FeatureKind own = KindOfScalar(value);
  FeatureKind to = kind != FeatureKind::kNone ? kind : KindOf(*feature);
  if (to == FeatureKind::kNone) to = own;
  const bool widens = kind == FeatureKind::kNone && to == FeatureKind::kInt64;
  if (widens && own == FeatureKind::kFloat) {
    WEIR_RETURN_IF_ERROR(FloatsFromIntegers(feature));
    to = own;
  }
  if (own != to && !(own == FeatureKind::kInt64 && to == FeatureKind::kFloat)) {
    return InvalidArgument(value.ToString(), " is of kind ", FeatureKindName(own),
                           " in a list of kind ", FeatureKindName(to));
  }
  if (to == FeatureKind::kFloat) return AddFloat(value, feature);
  if (to == FeatureKind::kInt64) return AddInt64(value, feature);
  feature->mutable_bytes_list()->add_value(std::move(value.text));
  return absl::OkStatus();
}

class RecordHandler final : public rpc::JsonHandler {
 public:
  explicit RecordHandler(const FeatureKinds& kinds) : kinds_(kinds) {}

  // Expects the values of the feature "" instead of a record.
  void ExpectValues(FeatureKind kind) {
    stack_ = {Place::kContext};
    expected_ = kind;
  }
  const proto::Feature& values() { return (*message_.mutable_context()->mutable_feature())[""]; }

  // Whether the line is an Example in protobuf's form; the parsing ended there.
  bool is_proto_json() const { return is_proto_json_; }
  const std::string& name() const { return name_; }

  absl::StatusOr<std::string> Finish() {
    if (is_raw_) return std::move(raw_);
    if (has_features_ && is_sequence_) {
      return InvalidArgument(
          "'context' and 'feature_lists' of a SequenceExample are beside features of an Example");
    }
    return SerializeExampleRecord(message_);
  }

  absl::Status Scalar(JsonScalar& value) override {
    if (stack_.empty()) return RawRecord(value);
    const bool is_null = value.kind == JsonScalar::Kind::kNull;
    switch (stack_.back()) {
      case Place::kRecord:
      case Place::kContext:
        WEIR_RETURN_IF_ERROR(AddFeature());
        return is_null ? absl::OkStatus() : AddValue(value, name_kind_, feature_);
      case Place::kFrames:
        feature_ = list_->add_feature();
        return is_null ? absl::OkStatus() : InvalidArgument("a frame is not a list");
      case Place::kValues:
        return AddValue(value, list_kind_, feature_);
      default:
        return InvalidArgument(value.ToString(), " instead of a list");
    }
  }

  absl::Status BeginList() override {
    if (stack_.empty()) return InvalidArgument("a list instead of an object");
    switch (stack_.back()) {
      case Place::kRecord:
      case Place::kContext:
        WEIR_RETURN_IF_ERROR(AddFeature());
        return BeginValues();
      case Place::kLists:
        WEIR_RETURN_IF_ERROR(CountFeature());
        if (message_.feature_lists().feature_list().contains(name_)) return OccursTwice();
        list_ = &(*message_.mutable_feature_lists()->mutable_feature_list())[name_];
        stack_.push_back(Place::kFrames);
        return absl::OkStatus();
      case Place::kFrames:
        feature_ = list_->add_feature();
        return BeginValues();
      case Place::kNamedList:
        stack_.push_back(Place::kValues);
        return absl::OkStatus();
      default:
        return InvalidArgument("a list in a list of values");
    }
  }

  absl::Status EndList() override {
    const bool is_empty =
        stack_.back() == Place::kValues && KindOf(*feature_) == FeatureKind::kNone;
    stack_.pop_back();
    if (!is_empty) return absl::OkStatus();
    return InvalidArgument("an empty list of unknown kind; write {\"int64_list\": []} or the like");
  }

  absl::Status BeginObject() override {
    const Place place = stack_.empty()                    ? Place::kRecord
                        : stack_.back() == Place::kRecord ? Place::kObject
                                                          : Place::kNamedList;
    if (place == Place::kNamedList) {
      if (stack_.back() == Place::kContext) {
        WEIR_RETURN_IF_ERROR(AddFeature());
      } else if (stack_.back() == Place::kFrames) {
        feature_ = list_->add_feature();
      } else {
        return InvalidArgument("an object in place of a list or a value");
      }
      has_list_ = false;
    }
    stack_.push_back(place);
    return absl::OkStatus();
  }

  absl::Status Key(const std::string& name) override {
    if (stack_.back() == Place::kObject) WEIR_RETURN_IF_ERROR(EnterObject(name));
    if (stack_.back() != Place::kNamedList) {
      name_ = name;
      return absl::OkStatus();
    }
    const FeatureKind kind = NamedKind(name);
    if (kind == FeatureKind::kNone || std::exchange(has_list_, true)) {
      return InvalidArgument("an object with '", name,
                             "' in place of one of bytes_list, float_list and int64_list");
    }
    list_kind_ = kind;
    SetKind(kind, feature_);
    return absl::OkStatus();
  }

  absl::Status EndObject() override {
    if (stack_.back() == Place::kObject) WEIR_RETURN_IF_ERROR(EnterObject(""));
    const bool is_empty = stack_.back() == Place::kNamedList && !has_list_;
    stack_.pop_back();
    return is_empty ? InvalidArgument("an empty object in place of a list") : absl::OkStatus();
  }

 private:
  enum class Place {
    kRecord,     // the object of a line: features, or context and feature_lists
    kObject,     // an object in it, whose first key tells what it is
    kContext,    // the object "context"
    kLists,      // the object "feature_lists"
    kFrames,     // a list in it
    kNamedList,  // an object that names the kind of its list
    kValues      // a list of values
  };

  absl::Status RawRecord(JsonScalar& value) {
    if (value.kind != JsonScalar::Kind::kBytes)
      return InvalidArgument(value.ToString(), " instead of an object");
    is_raw_ = true;
    raw_ = std::move(value.text);
    return absl::OkStatus();
  }

  // Decides what an object in the record's object is, whose first key is `key`.
  absl::Status EnterObject(const std::string& key) {
    if (NamedKind(key) != FeatureKind::kNone) {
      stack_.back() = Place::kNamedList;
      has_list_ = false;
      return AddFeature();
    }
    is_proto_json_ = name_ == "features" && key == "feature";
    const bool is_context = name_ == "context", is_lists = name_ == "feature_lists";
    if (!is_context && !is_lists) return InvalidArgument("an object in place of a list");
    if (is_context ? std::exchange(has_context_, true) : std::exchange(has_lists_, true))
      return OccursTwice();
    is_sequence_ = true;
    stack_.back() = is_context ? Place::kContext : Place::kLists;
    if (is_context) message_.mutable_context();
    if (is_lists) message_.mutable_feature_lists();
    return absl::OkStatus();
  }

  absl::Status BeginValues() {
    list_kind_ = name_kind_;
    SetKind(list_kind_, feature_);
    stack_.push_back(Place::kValues);
    return absl::OkStatus();
  }

  absl::Status CountFeature() {
    const auto known = kinds_.find(name_);
    name_kind_ = known == kinds_.end() ? expected_ : known->second;
    if (++num_features_ <= kMaxFeatures) return absl::OkStatus();
    return InvalidArgument("a record has more than ", kMaxFeatures, " features");
  }

  absl::Status AddFeature() {
    has_features_ |= stack_.back() != Place::kContext;
    WEIR_RETURN_IF_ERROR(CountFeature());
    auto& features = *message_.mutable_context()->mutable_feature();
    if (features.contains(name_)) return OccursTwice();
    feature_ = &features[name_];
    return absl::OkStatus();
  }

  absl::Status OccursTwice() const { return InvalidArgument("the name occurs twice"); }

  const FeatureKinds& kinds_;
  std::vector<Place> stack_;
  proto::SequenceExample message_;
  std::string name_, raw_;
  int num_features_ = 0;
  bool is_raw_ = false, is_proto_json_ = false;
  bool has_features_ = false, is_sequence_ = false, has_context_ = false, has_lists_ = false;
  bool has_list_ = false;                       // the object that names a kind has its list
  FeatureKind expected_ = FeatureKind::kNone;   // of features without a kind in kinds_
  FeatureKind name_kind_ = FeatureKind::kNone;  // of the feature: kNone if its values tell it
  FeatureKind list_kind_ = FeatureKind::kNone;  // of the list of values
  proto::Feature* feature_ = nullptr;
  proto::FeatureList* list_ = nullptr;
};

}  // namespace

absl::StatusOr<std::string> RecordFromJson(absl::string_view line, const FeatureKinds& kinds) {
  RecordHandler handler(kinds);
  absl::Status status = rpc::ParseJson(line, handler);
  if (handler.is_proto_json()) return ExampleFromJson(std::string(line));
  if (!status.ok()) {
    return handler.name().empty()
               ? status
               : Annotate(status, absl::StrCat("feature '", handler.name(), "'"));
  }
  return handler.Finish();
}

absl::Status ValuesFromJson(absl::string_view text, FeatureKind kind, proto::Feature* feature) {
  const FeatureKinds none;
  RecordHandler handler(none);
  handler.ExpectValues(kind);
  WEIR_RETURN_IF_ERROR(rpc::ParseJson(text, handler));
  *feature = handler.values();
  return absl::OkStatus();
}

}  // namespace weir::tools
