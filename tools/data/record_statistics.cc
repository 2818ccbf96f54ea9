#include "weir/tools/data/record_statistics.h"

#include <algorithm>
#include <cmath>

#include "absl/hash/hash.h"
#include "weir/proto/example.pb.h"

namespace weir::tools {

namespace {

constexpr size_t kMaxFeatures = 65'536, kMaxNameBytes = size_t{16} << 20;
constexpr size_t kLongString = 64;  // a longer one is a hash of 64 bits

}  // namespace

void DistinctStrings::Add(const std::string& value) {
  const bool is_long = value.size() > kLongString;
  const uint64_t hash = is_long ? absl::Hash<std::string>()(value) : 0;
  if (is_long ? long_.contains(hash) : counts_.contains(value)) {
    if (!is_long) ++counts_[value];
  } else if (size() == limit_) {
    is_complete_ = false;
  } else if (is_long) {
    long_.insert(hash);
  } else {
    counts_[value] = 1;
  }
}

FeatureKind FeatureStatistics::kind() const {
  const auto most = std::max_element(lists.begin() + 1, lists.end());
  return *most == 0 ? FeatureKind::kNone : static_cast<FeatureKind>(most - lists.begin());
}

absl::StatusOr<FeatureStatistics*> RecordStatistics::Find(bool is_sequence,
                                                          const std::string& name) {
  const auto [it, is_new] = features_.try_emplace({is_sequence, name});
  if (is_new) {
    it->second.strings = DistinctStrings(distinct_strings_);
    name_bytes_ += name.size();
    if (features_.size() > kMaxFeatures || name_bytes_ > kMaxNameBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the records have more than ", kMaxFeatures, " features, or more than ",
                       kMaxNameBytes >> 20, " MiB of their names; they are hardly names"));
    }
  }
  return &it->second;
}

void RecordStatistics::AddList(const proto::Feature& feature, FeatureStatistics* s) {
  ++s->lists[static_cast<size_t>(KindOf(feature))];
  s->length.Add(NumValues(feature));
  if (distinct_strings_ == 0) return;
  s->values[static_cast<size_t>(KindOf(feature))] += NumValues(feature);
  for (const int64_t value : feature.int64_list().value()) {
    s->integers.Add(value);
    s->integer_sum += value;
  }
  for (const float value : feature.float_list().value()) {
    if (!std::isnan(value)) s->floats.Add(value);
    if (std::isfinite(value)) s->float_sum += value;
    s->finite += std::isfinite(value);
    s->nans += std::isnan(value);
    s->infinities += std::isinf(value);
  }
  for (const std::string& value : feature.bytes_list().value()) {
    s->bytes.Add(static_cast<int64_t>(value.size()));
    s->byte_sum += static_cast<int64_t>(value.size());
    s->strings.Add(value);
  }
}

absl::Status RecordStatistics::Add(absl::string_view record) {
  proto::SequenceExample message;
  const RecordKind kind = ParseExampleRecord(record, &message);
  ++records_[static_cast<size_t>(kind)];
  bytes_ += static_cast<int64_t>(record.size());
  if (kind == RecordKind::kOther) return absl::OkStatus();
  for (const auto& [name, feature] : message.context().feature()) {
    WEIR_ASSIGN_OR_RETURN(FeatureStatistics * s, Find(/*is_sequence=*/false, name));
    ++s->records;
    AddList(feature, s);
  }
  for (const auto& [name, list] : message.feature_lists().feature_list()) {
    WEIR_ASSIGN_OR_RETURN(FeatureStatistics * s, Find(/*is_sequence=*/true, name));
    ++s->records;
    s->frames.Add(list.feature_size());
    for (const proto::Feature& frame : list.feature()) AddList(frame, s);
  }
  return absl::OkStatus();
}

}  // namespace weir::tools
