#ifndef WEIR_SESSION_RUNTIME_LRU_CACHE_H_
#define WEIR_SESSION_RUNTIME_LRU_CACHE_H_

#include <list>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace weir {

// A least-recently-used cache of up to `capacity` values by key. Not thread-safe.
template <class K, class V>
class LruCache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  // Returns null if there is no such key. The pointer is valid until the next Insert.
  const V* Find(const K& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }
  // Inserts a value for a key that is not in the cache. Returns the evicted value, if any.
  std::optional<V> Insert(K key, V value) {
    entries_.emplace_front(key, std::move(value));
    index_.emplace(std::move(key), entries_.begin());
    if (entries_.size() <= capacity_) return std::nullopt;
    std::optional<V> evicted = std::move(entries_.back().second);
    index_.erase(entries_.back().first);
    entries_.pop_back();
    return evicted;
  }
  template <class F>
  void ForEach(F&& visit) const {
    for (const auto& [key, value] : entries_) visit(value);
  }

 private:
  const size_t capacity_;
  std::list<std::pair<K, V>> entries_;  // most recently used first
  absl::flat_hash_map<K, typename std::list<std::pair<K, V>>::iterator> index_;
};

}  // namespace weir

#endif  // WEIR_SESSION_RUNTIME_LRU_CACHE_H_
