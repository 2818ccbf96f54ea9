#ifndef WEIR_TOOLS_DATA_RECORD_STATISTICS_H_
#define WEIR_TOOLS_DATA_RECORD_STATISTICS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "weir/tools/data/example_record.h"

// What the records of files have in common, in bounded memory.
namespace weir::tools {

// The least and the greatest of some numbers; least > greatest if there are none.
template <class T>
struct ValueRange {
  T least = std::numeric_limits<T>::max(), greatest = std::numeric_limits<T>::lowest();

  void Add(T value) {
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  bool empty() const { return least > greatest; }
};

// Distinct strings, each with how often it occurs, up to a number of them.
class DistinctStrings {
 public:
  explicit DistinctStrings(size_t limit = 0) : limit_(limit) {}
  void Add(const std::string& value);
  // The number of distinct strings; if `is_complete` is false there are more.
  size_t size() const { return counts_.size() + long_.size(); }
  bool is_complete() const { return is_complete_; }
  // Those of at most 64 bytes; longer ones are only counted.
  const absl::flat_hash_map<std::string, int64_t>& counts() const { return counts_; }

 private:
  size_t limit_;
  bool is_complete_ = true;
  absl::flat_hash_map<std::string, int64_t> counts_;
  absl::flat_hash_set<uint64_t> long_;  // their hashes
};

struct FeatureStatistics {
  int64_t records = 0;  // that have the feature
  // The lists of each kind: one for each record, or for each frame of a sequence.
  std::array<int64_t, kNumFeatureKinds> lists = {};
  ValueRange<int64_t> length;  // of lists
  ValueRange<int64_t> frames;  // sequences only

  // Of the values, unless only the schema is wanted.
  std::array<int64_t, kNumFeatureKinds> values = {};
  ValueRange<int64_t> integers;
  absl::int128 integer_sum = 0;
  ValueRange<float> floats;  // without NaNs
  double float_sum = 0;      // of the finite ones
  int64_t finite = 0, nans = 0, infinities = 0;
  ValueRange<int64_t> bytes;  // the sizes of strings
  int64_t byte_sum = 0;
  DistinctStrings strings;

  // The only kind of its lists, or that of most.
  FeatureKind kind() const;
  // The number of values of that kind.
  int64_t num_values() const { return values[static_cast<size_t>(kind())]; }
};

class RecordStatistics {
 public:
  // Reads the values too, and remembers so many distinct strings of each feature, if that is not 0.
  explicit RecordStatistics(size_t distinct_strings = 0) : distinct_strings_(distinct_strings) {}

  // RESOURCE_EXHAUSTED if there are more than 65,536 features, or 16 MiB of their names.
  absl::Status Add(absl::string_view record);

  int64_t records() const { return records_[0] + records_[1] + records_[2]; }
  int64_t records(RecordKind kind) const { return records_[static_cast<size_t>(kind)]; }
  int64_t bytes() const { return bytes_; }  // of the records
  // By names; sequences (of feature_lists) after the others.
  using Key = std::pair<bool, std::string>;  // is_sequence, name
  const std::map<Key, FeatureStatistics>& features() const { return features_; }

 private:
  absl::StatusOr<FeatureStatistics*> Find(bool is_sequence, const std::string& name);
  void AddList(const proto::Feature& feature, FeatureStatistics* statistics);

  const size_t distinct_strings_;
  std::array<int64_t, 3> records_ = {};
  int64_t bytes_ = 0;
  size_t name_bytes_ = 0;
  std::map<Key, FeatureStatistics> features_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_DATA_RECORD_STATISTICS_H_
