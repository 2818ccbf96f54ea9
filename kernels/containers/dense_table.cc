#include <algorithm>
#include <cstring>
#include <mutex>
#include <shared_mutex>

#include "weir/kernels/containers/lookup_table.h"
#include "weir/kernels/lib/hash.h"
#include "weir/kernels/lib/strided_copy.h"

// An open-addressing hash table with quadratic probing (the k-th probe of a key is k(k+1)/2 buckets
// after its hash position, which reaches every bucket if their number is a power of two), after
// Google's sparsehash. Keys and values are two tensors with one row per bucket. A row with the
// empty key ends a search, a row with the deleted key does not. The table is exported and saved in
// this form; hashes and probes are bit-identical to TensorFlow's, so each can read what the other
// wrote.
namespace weir {

namespace {

uint64_t Hash(const std::string& text) { return MurmurHash64(text); }
uint64_t Hash(int64_t key) { return static_cast<uint64_t>(key); }

template <class Key>
class DenseTable final : public LookupTable {
 public:
  DenseTable(Spec spec, DenseTableOptions options)
      : LookupTable(std::move(spec)),
        options_(std::move(options)),
        key_size_(this->spec().key_shape.num_elements()) {}

  absl::Status Init() {
    if (options_.deleted_key.initialized() && IsMarker(options_.deleted_key.data<Key>(), true))
      return InvalidArgument("Empty and deleted keys cannot be equal");
    return AllocateBuckets(options_.initial_num_buckets);
  }

  void Clear() override {
    const std::lock_guard<std::shared_mutex> lock(mutex_);
    (void)AllocateBuckets(options_.initial_num_buckets);
  }

  absl::Status CheckImport(const Tensor& keys, const Tensor& values) const override {
    if (keys.dtype() != spec().key_type || values.dtype() != spec().value_type)
      return CheckPairs(keys, values);
    const int64_t buckets = keys.rank() == 2 ? keys.dim(0) : 0;
    if (buckets < 4 || (buckets & (buckets - 1)) != 0 || keys.dim(1) != key_size_) {
      return InvalidArgument("Input key shape ", keys.shape().ToString(), " must be [n,", key_size_,
                             "], n a power of two and at least 4");
    }
    const Shape expected({buckets, value_size()});
    if (values.shape() == expected) return absl::OkStatus();
    return InvalidArgument("Expected shape ", expected.ToString(), " for value, got ",
                           values.shape().ToString());
  }

  absl::Status Find(const Tensor& keys, const Tensor& fallback, Tensor* values) override {
    WEIR_RETURN_IF_ERROR(CheckBatch(keys));
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    for (int64_t i = 0; i < CountKeys(keys); ++i) {
      const Key* const key = keys.data<Key>() + i * key_size_;
      WEIR_RETURN_IF_ERROR(CheckKey(key));
      const ProbeResult probe = Probe(key);
      const void* const from =
          probe.is_found ? ElementAt(values_, probe.bucket * value_size()) : fallback.raw();
      CopyElements(values->dtype(), from, ElementAt(*values, i * value_size()), value_size());
    }
    return absl::OkStatus();
  }

  // Grows the table as if all keys were new.
  absl::Status Insert(const Tensor& keys, const Tensor& values) override {
    WEIR_RETURN_IF_ERROR(CheckBatch(keys));
    const std::lock_guard<std::shared_mutex> lock(mutex_);
    const int64_t count = CountKeys(keys);
    for (int64_t i = 0; i < count; ++i)
      WEIR_RETURN_IF_ERROR(CheckKey(keys.data<Key>() + i * key_size_));
    WEIR_RETURN_IF_ERROR(Reserve(size_ + count));
    for (int64_t i = 0; i < count; ++i)
      Put(keys.data<Key>() + i * key_size_, ElementAt(values, i * value_size()));
    return absl::OkStatus();
  }

  absl::Status Remove(const Tensor& keys) override {
    WEIR_RETURN_IF_ERROR(CheckBatch(keys));
    const std::lock_guard<std::shared_mutex> lock(mutex_);
    if (!options_.deleted_key.initialized())
      return InvalidArgument(Describe(), " has no deleted_key");
    for (int64_t i = 0; i < CountKeys(keys); ++i) {
      const Key* const key = keys.data<Key>() + i * key_size_;
      WEIR_RETURN_IF_ERROR(CheckKey(key));
      const ProbeResult probe = Probe(key);
      if (!probe.is_found) continue;
      CopyKey(options_.deleted_key.data<Key>(), KeyAt(probe.bucket));
      --size_;
    }
    return absl::OkStatus();
  }

  // Reinserts the keys: imported data need not be the export of a table.
  absl::Status Import(const Tensor& keys, const Tensor& values) override {
    const std::lock_guard<std::shared_mutex> lock(mutex_);
    const Tensor old_keys = keys_, old_values = values_;
    const int64_t old_size = size_;
    absl::Status status = AllocateBuckets(keys.dim(0));
    if (status.ok()) status = PutAll(keys, values);
    if (status.ok()) return status;
    keys_ = old_keys;
    values_ = old_values;
    size_ = old_size;
    return status;
  }

  absl::StatusOr<std::pair<Tensor, Tensor>> Export() override {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    return std::make_pair(keys_.DeepCopy(), values_.DeepCopy());
  }

  int64_t size() override {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    return size_;
  }

 private:
  struct ProbeResult {
    int64_t bucket;
    bool is_found;
  };

  Key* KeyAt(int64_t bucket) { return keys_.data<Key>() + bucket * key_size_; }
  const Key* KeyAt(int64_t bucket) const { return keys_.data<Key>() + bucket * key_size_; }
  int64_t num_buckets() const { return keys_.dim(0); }
  bool AreEqual(const Key* a, const Key* b) const { return std::equal(a, a + key_size_, b); }
  void CopyKey(const Key* from, Key* to) const { std::copy(from, from + key_size_, to); }
  bool IsMarker(const Key* key, bool empty) const {
    const Tensor& marker = empty ? options_.empty_key : options_.deleted_key;
    return marker.initialized() && AreEqual(key, marker.data<Key>());
  }

  // TensorFlow's rule: a single key, or one per index of the first dimension.
  absl::Status CheckBatch(const Tensor& keys) const {
    const int64_t count = keys.rank() == 0 ? 1 : keys.dim(0);
    if (CountKeys(keys) == count) return absl::OkStatus();
    return InvalidArgument("Expected key shape ",
                           Shape({count}).Concatenate(spec().key_shape).ToString(), " got ",
                           keys.shape().ToString());
  }

  absl::Status CheckKey(const Key* key) const {
    for (const bool empty : {true, false}) {
      if (IsMarker(key, empty)) {
        return InvalidArgument("Using the ", empty ? "empty" : "deleted",
                               "_key as a table key is not allowed");
      }
    }
    return absl::OkStatus();
  }

  uint64_t HashOf(const Key* key) const {
    if (key_size_ == 1) return Hash(key[0]);
    uint64_t h = 0;
    for (int64_t i = 0; i < key_size_; ++i)
      h ^= Hash(key[i]) + 0x9e3779b97f4a7800 + (h << 10) + (h >> 4);
    return h;
  }

  // Returns the key's bucket, or else the first bucket that ends the search or is reusable. Finds a
  // key behind a deleted one too.
  ProbeResult Probe(const Key* key) const {
    const int64_t mask = num_buckets() - 1;
    int64_t bucket = static_cast<int64_t>(HashOf(key)) & mask, free = -1;
    for (int64_t probes = 1; probes <= num_buckets(); ++probes) {
      if (AreEqual(KeyAt(bucket), key)) return {bucket, true};
      const bool is_empty = IsMarker(KeyAt(bucket), true);
      if (free < 0 && (is_empty || IsMarker(KeyAt(bucket), false))) free = bucket;
      if (is_empty) break;
      bucket = (bucket + probes) & mask;
    }
    return {free, false};
  }

  // There is room.
  void Put(const Key* key, const void* value) {
    const ProbeResult probe = Probe(key);
    if (!probe.is_found) {
      CopyKey(key, KeyAt(probe.bucket));
      ++size_;
    }
    CopyElements(values_.dtype(), value, ElementAt(values_, probe.bucket * value_size()),
                 value_size());
  }

  absl::Status PutAll(const Tensor& keys, const Tensor& values) {
    for (int64_t i = 0; i < keys.dim(0); ++i) {
      const Key* const key = keys.data<Key>() + i * key_size_;
      if (CheckKey(key).ok()) Put(key, ElementAt(values, i * value_size()));
    }
    return absl::OkStatus();
  }

  absl::Status Reserve(int64_t count) {
    int64_t buckets = num_buckets();
    while (static_cast<float>(count) > static_cast<float>(buckets) * options_.max_load_factor)
      buckets *= 2;
    if (buckets == num_buckets()) return absl::OkStatus();
    const Tensor keys = keys_, values = values_;
    WEIR_RETURN_IF_ERROR(AllocateBuckets(buckets));
    return PutAll(keys, values);
  }

  absl::Status AllocateBuckets(int64_t count) {
    if (count < 4 || (count & (count - 1)) != 0) {
      return InvalidArgument("Number of buckets must be at least 4 and a power of 2, got: ", count);
    }
    WEIR_ASSIGN_OR_RETURN(
        Tensor keys, Tensor::Allocate(HostAllocator(), spec().key_type, Shape({count, key_size_})));
    WEIR_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(HostAllocator(), spec().value_type,
                                                          Shape({count, value_size()})));
    if (IsPlain(values.dtype()) && values.num_bytes() > 0)
      std::memset(values.raw(), 0, values.num_bytes());
    keys_ = std::move(keys);
    values_ = std::move(values);
    size_ = 0;
    for (int64_t i = 0; i < count; ++i) CopyKey(options_.empty_key.data<Key>(), KeyAt(i));
    return absl::OkStatus();
  }

  const DenseTableOptions options_;
  const int64_t key_size_;
  std::shared_mutex mutex_;
  Tensor keys_, values_;  // [buckets, key_size], [buckets, value_size]
  int64_t size_ = 0;
};

template <class Key>
absl::StatusOr<std::shared_ptr<LookupTable>> Make(LookupTable::Spec spec,
                                                  DenseTableOptions options) {
  auto table = std::make_shared<DenseTable<Key>>(std::move(spec), std::move(options));
  WEIR_RETURN_IF_ERROR(table->Init());
  return table;
}

}  // namespace

absl::StatusOr<std::shared_ptr<LookupTable>> NewDenseTable(LookupTable::Spec spec,
                                                           DenseTableOptions options) {
  if (!(options.max_load_factor > 0 && options.max_load_factor < 1)) {
    return InvalidArgument("max_load_factor must be between 0 and 1, got: ",
                           options.max_load_factor);
  }
  if (spec.key_shape.rank() > 1 || spec.key_shape.num_elements() == 0) {
    return InvalidArgument("Empty key must be a scalar or a vector, got shape ",
                           spec.key_shape.ToString());
  }
  if (options.deleted_key.initialized() && options.deleted_key.shape() != spec.key_shape) {
    return InvalidArgument(
        "Empty and deleted keys must have same shape, got shapes: ", spec.key_shape.ToString(),
        " and ", options.deleted_key.shape().ToString());
  }
  switch (spec.key_type) {
    case DT_INT32:
      return Make<int32_t>(std::move(spec), std::move(options));
    case DT_INT64:
      return Make<int64_t>(std::move(spec), std::move(options));
    case DT_STRING:
      return Make<std::string>(std::move(spec), std::move(options));
    default:
      return InvalidArgument("tables do not support keys of type ", DataTypeName(spec.key_type));
  }
}

}  // namespace weir
