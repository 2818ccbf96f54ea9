#include "weir/tools/data/record_json.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/escaping.h"
#include "weir/proto/example.pb.h"
#include "weir/tools/lib/element_text.h"

// Writing records as JSON (record_json_reader.cc reads them).
namespace weir::tools {

namespace {

constexpr uint32_t kUsualNan = 0x7fc00000;

// Appends values between brackets.
template <class Values, class F>
void AppendList(const Values& values, std::string* out, F append) {
  out->push_back('[');
  for (int i = 0; i < values.size(); ++i) {
    if (i > 0) out->append(", ");
    append(values[i]);
  }
  out->push_back(']');
}

// Appends a feature: a list, an object with an empty list, or null.
void AppendFeature(const proto::Feature& feature, std::string* out) {
  const FeatureKind kind = KindOf(feature);
  if (kind == FeatureKind::kNone) {
    out->append("null");
  } else if (NumValues(feature) == 0) {
    absl::StrAppend(out, "{\"", FeatureKindName(kind), "_list\": []}");
  } else {
    AppendValues(feature, out);
  }
}

void AppendFrames(const proto::FeatureList& list, std::string* out) {
  AppendList(list.feature(), out,
             [out](const proto::Feature& frame) { AppendFeature(frame, out); });
}

// Appends a map as an object, in the order of the names.
template <class Map, class F>
void AppendMap(const Map& map, std::string* out, F append) {
  std::vector<const typename Map::value_type*> entries;
  for (const auto& entry : map) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  out->push_back('{');
  for (const auto* entry : entries) {
    if (entry != entries.front()) out->append(", ");
    absl::StrAppend(out, nlohmann::json(entry->first).dump(), ": ");
    append(entry->second, out);
  }
  out->push_back('}');
}

bool HasUsualNans(const proto::Feature& feature) {
  const auto& values = feature.float_list().value();
  return std::all_of(values.begin(), values.end(), [](float value) {
    return !std::isnan(value) || std::bit_cast<uint32_t>(value) == kUsualNan;
  });
}

// Whether the name of a feature would make an object read as something else.
bool IsReserved(const std::string& name) {
  return name == "b64" || name == "bytes_list" || name == "float_list" || name == "int64_list";
}

}  // namespace

bool HasExactJson(const proto::SequenceExample& message, RecordKind kind) {
  if (kind == RecordKind::kOther) return false;
  const auto& context = message.context().feature();
  const auto& lists = message.feature_lists().feature_list();
  const bool is_sequence = kind == RecordKind::kSequenceExample;
  if (!is_sequence && message.has_context() && context.empty()) return false;
  for (const auto& [name, feature] : context) {
    if (!HasUsualNans(feature) || (is_sequence && IsReserved(name))) return false;
  }
  return std::all_of(lists.begin(), lists.end(), [](const auto& entry) {
    const auto& frames = entry.second.feature();
    return !IsReserved(entry.first) && std::all_of(frames.begin(), frames.end(), HasUsualNans);
  });
}

void AppendValues(const proto::Feature& feature, std::string* out) {
  switch (KindOf(feature)) {
    case FeatureKind::kFloat:
      return AppendList(feature.float_list().value(), out,
                        [out](float value) { AppendFloat(value, out); });
    case FeatureKind::kInt64:
      return AppendList(feature.int64_list().value(), out,
                        [out](int64_t value) { absl::StrAppend(out, value); });
    default:
      return AppendList(feature.bytes_list().value(), out,
                        [out](const std::string& value) { AppendString(value, out); });
  }
}

std::string JsonFromRecord(absl::string_view record) {
  proto::SequenceExample message;
  const RecordKind kind = ParseExampleRecord(record, &message);
  if (!HasExactJson(message, kind))
    return absl::StrCat(R"({"b64": ")", absl::Base64Escape(record), R"("})");
  std::string out;
  if (kind == RecordKind::kExample) {
    AppendMap(message.context().feature(), &out, AppendFeature);
    return out;
  }
  out.push_back('{');
  if (message.has_context()) {
    out.append("\"context\": ");
    AppendMap(message.context().feature(), &out, AppendFeature);
    out.append(", ");
  }
  out.append("\"feature_lists\": ");
  AppendMap(message.feature_lists().feature_list(), &out, AppendFrames);
  out.push_back('}');
  return out;
}

}  // namespace weir::tools
