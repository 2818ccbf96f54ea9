#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <vector>

#include "absl/hash/hash.h"
#include "weir/kernels/containers/lookup_table.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/hash_index.h"
#include "weir/kernels/lib/strided_copy.h"

namespace weir {

namespace {

// Memory of the host allocator for a standard container, so that the keys of a table count for
// whoever inserts them, as its values do. The first bytes of a block say where it is from.
template <class T>
struct HostMemory {
  using value_type = T;

  HostMemory() = default;
  template <class U>
  explicit HostMemory(const HostMemory<U>&) {}

  T* allocate(size_t count) {
    Allocator& host = HostAllocator();
    void* const block = count > kMaxCount ? nullptr : host.Allocate(kHeader + count * sizeof(T));
    if (block == nullptr) throw std::bad_alloc();
    *static_cast<Allocator**>(block) = &host;
    return reinterpret_cast<T*>(static_cast<uint8_t*>(block) + kHeader);
  }
  void deallocate(T* data, size_t count) {
    void* const block = reinterpret_cast<uint8_t*>(data) - kHeader;
    (*static_cast<Allocator**>(block))->Deallocate(block, kHeader + count * sizeof(T));
  }
  bool operator==(const HostMemory&) const { return true; }

 private:
  static constexpr size_t kHeader = Allocator::kAlignment;
  static constexpr size_t kMaxCount = (size_t{1} << 47) / sizeof(T);
};

// Values are rows of a growing tensor, in order of insertion; an index maps keys to their rows. A
// removed row is replaced by the last one.
template <class Key>
class HashTable final : public LookupTable {
 public:
  HashTable(Spec spec, bool is_static)
      : LookupTable(std::move(spec)), is_static_(is_static), filled_(!is_static) {}

  void Clear() override {
    const std::lock_guard<std::shared_mutex> lock(mutex_);
    Empty();
  }

  absl::Status Find(const Tensor& keys, const Tensor& fallback, Tensor* values) override {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    if (!filled_) return FailedPrecondition("Table not initialized.");
    const bool one_each = !is_static_ && fallback.num_elements() == values->num_elements();
    const Key* const key = keys.data<Key>();
    for (const auto [begin, end] : CancellableBlocks(keys.num_elements())) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t place = PlaceOf(key[i]);
        const void* const from = place >= 0 ? ElementAt(values_, place * value_size())
                                            : ElementAt(fallback, one_each ? i * value_size() : 0);
        CopyElements(values->dtype(), from, ElementAt(*values, i * value_size()), value_size());
      }
    }
    return absl::OkStatus();
  }

  absl::Status Insert(const Tensor& keys, const Tensor& values) override {
    if (is_static_) return Unsupported("Insert");
    const std::lock_guard<std::shared_mutex> lock(mutex_);
    return InsertLocked(keys, values);
  }

  absl::Status Remove(const Tensor& keys) override {
    if (is_static_) return Unsupported("Remove");
    const std::lock_guard<std::shared_mutex> lock(mutex_);
    for (const Key& key : keys.flat<Key>()) RemoveLocked(key);
    return absl::OkStatus();
  }

  absl::Status Import(const Tensor& keys, const Tensor& values) override {
    const std::lock_guard<std::shared_mutex> lock(mutex_);
    if (is_static_ && keys.num_elements() == 0)
      return InvalidArgument("keys and values cannot be empty tensors.");
    if (is_static_ && filled_) {
      const auto size = static_cast<int64_t>(keys_.size());
      return keys.num_elements() == size
                 ? absl::OkStatus()
                 : FailedPrecondition("Table was already initialized with different data.");
    }
    Empty();
    const absl::Status status = InsertLocked(keys, values);
    if (!status.ok()) Empty();
    filled_ = filled_ || status.ok();
    return status;
  }

  absl::StatusOr<std::pair<Tensor, Tensor>> Export() override {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    if (!filled_) return absl::AbortedError("HashTable is not initialized.");
    const auto count = static_cast<int64_t>(keys_.size());
    WEIR_ASSIGN_OR_RETURN(Tensor keys,
                          Tensor::Allocate(HostAllocator(), spec().key_type, Shape({count})));
    std::copy(keys_.begin(), keys_.end(), keys.data<Key>());
    WEIR_ASSIGN_OR_RETURN(Tensor values,
                          Tensor::Allocate(HostAllocator(), spec().value_type,
                                           Shape({count}).Concatenate(spec().value_shape)));
    CopyElements(values.dtype(), values_.raw(), values.raw(), values.num_elements());
    return std::make_pair(std::move(keys), std::move(values));
  }

  int64_t size() override {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    return static_cast<int64_t>(keys_.size());
  }
  bool is_initializable() const override { return is_static_; }
  bool is_initialized() override {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    return filled_;
  }

 private:
  static absl::Status Unsupported(const char* what) {
    return Unimplemented(what, " not supported by InitializableLookupTable implementations");
  }

  void Empty() {
    places_.Clear();
    keys_ = {};
    values_ = Tensor();
    filled_ = !is_static_;
  }

  static size_t HashOf(const Key& key) { return absl::Hash<Key>()(key); }
  auto Is(const Key& key) const {
    return [this, &key](int64_t place) { return keys_[static_cast<size_t>(place)] == key; };
  }
  // Returns -1 if the key is missing.
  int64_t PlaceOf(const Key& key) const { return places_.Find(HashOf(key), Is(key)); }

  void* Value(int64_t place) { return ElementAt(values_, place * value_size()); }

  absl::Status Reserve(int64_t count) {
    places_.Reserve(static_cast<size_t>(count));
    const int64_t capacity = values_.initialized() ? values_.dim(0) : 0;
    if (count <= capacity) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(Tensor larger,
                          Tensor::Allocate(HostAllocator(), spec().value_type,
                                           Shape({std::max(count, 2 * capacity), value_size()})));
    CopyElements(larger.dtype(), values_.raw(), larger.raw(),
                 static_cast<int64_t>(keys_.size()) * value_size());
    values_ = std::move(larger);
    return absl::OkStatus();
  }

  absl::Status InsertLocked(const Tensor& keys, const Tensor& values) {
    WEIR_RETURN_IF_ERROR(Reserve(static_cast<int64_t>(keys_.size()) + keys.num_elements()));
    const Key* const key = keys.data<Key>();
    for (int64_t i = 0; i < keys.num_elements(); ++i) {
      int64_t place = PlaceOf(key[i]);
      if (place < 0) {
        place = static_cast<int64_t>(keys_.size());
        keys_.push_back(key[i]);
        places_.Add(HashOf(key[i]), place);
      } else if (is_static_) {
        WEIR_RETURN_IF_ERROR(CheckEqual(key[i], place, values, i));
        continue;
      }
      CopyElements(values.dtype(), ElementAt(values, i * value_size()), Value(place), value_size());
    }
    return absl::OkStatus();
  }

  // For static tables, whose values are scalars.
  absl::Status CheckEqual(const Key& key, int64_t place, const Tensor& values, int64_t i) const {
    const Tensor has = values_.Slice(place, place + 1).Reshaped(Shape());
    const Tensor added = values.Reshaped(Shape({values.num_elements()})).Row(i);
    if (IdenticalTensors(has, added)) return absl::OkStatus();
    return FailedPrecondition("HashTable has different value for same key. Key ", key, " has ",
                              has.ToString(), " and trying to add value ", added.ToString());
  }

  void RemoveLocked(const Key& key) {
    const int64_t hole = PlaceOf(key);
    if (hole < 0) return;
    const int64_t last = static_cast<int64_t>(keys_.size()) - 1;
    places_.Remove(HashOf(key), hole);
    if (hole != last) {
      CopyElements(spec().value_type, Value(last), Value(hole), value_size());
      places_.Move(HashOf(keys_[last]), last, hole);
      keys_[hole] = std::move(keys_[last]);
    }
    keys_.pop_back();
  }

  const bool is_static_;
  std::shared_mutex mutex_;
  bool filled_;
  HashIndex places_;
  std::vector<Key, HostMemory<Key>> keys_;
  Tensor values_;  // [capacity, value_size]
};

}  // namespace

int64_t LookupTable::CountKeys(const Tensor& keys) const {
  const int64_t size = spec_.key_shape.num_elements();
  return size == 0 ? 0 : keys.num_elements() / size;
}

Shape LookupTable::ShapeOfValues(const Tensor& keys) const {
  return keys.shape().Sub(0, keys.rank() - spec_.key_shape.rank()).Concatenate(spec_.value_shape);
}

absl::Status LookupTable::CheckKeys(const Tensor& keys) const {
  if (keys.dtype() != spec_.key_type) {
    return InvalidArgument("Key must be type ", DataTypeName(spec_.key_type), " but got ",
                           DataTypeName(keys.dtype()));
  }
  const int prefix = keys.rank() - spec_.key_shape.rank();
  if (prefix >= 0 && keys.shape().Sub(prefix) == spec_.key_shape) return absl::OkStatus();
  return InvalidArgument("Input key shape ", keys.shape().ToString(),
                         " must end with the table's key shape ", spec_.key_shape.ToString());
}

absl::Status LookupTable::CheckPairs(const Tensor& keys, const Tensor& values) const {
  WEIR_RETURN_IF_ERROR(CheckKeys(keys));
  if (values.dtype() != spec_.value_type) {
    return InvalidArgument("Value must be type ", DataTypeName(spec_.value_type), " but got ",
                           DataTypeName(values.dtype()));
  }
  const Shape expected = ShapeOfValues(keys);
  if (values.shape() == expected) return absl::OkStatus();
  return InvalidArgument("Expected shape ", expected.ToString(), " for value, got ",
                         values.shape().ToString());
}

absl::Status LookupTable::CheckFallback(const Tensor& keys, const Tensor& fallback) const {
  WEIR_RETURN_IF_ERROR(CheckKeys(keys));
  if (fallback.dtype() == spec_.value_type && fallback.shape() == spec_.value_shape)
    return absl::OkStatus();
  const absl::Status one_each = CheckPairs(keys, fallback);
  if (one_each.ok() || fallback.dtype() != spec_.value_type) return one_each;
  return InvalidArgument("Expected shape ", spec_.value_shape.ToString(), " or ",
                         ShapeOfValues(keys).ToString(), " for default value, got ",
                         fallback.shape().ToString());
}

absl::StatusOr<std::shared_ptr<LookupTable>> NewHashTable(LookupTable::Spec spec, bool is_static) {
  switch (spec.key_type) {
    case DT_INT32:
      return std::make_shared<HashTable<int32_t>>(std::move(spec), is_static);
    case DT_INT64:
      return std::make_shared<HashTable<int64_t>>(std::move(spec), is_static);
    case DT_STRING:
      return std::make_shared<HashTable<std::string>>(std::move(spec), is_static);
    default:
      return InvalidArgument("tables do not support keys of type ", DataTypeName(spec.key_type));
  }
}

}  // namespace weir
