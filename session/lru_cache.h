#ifndef WEIR_SESSION_LRU_CACHE_H_
#define WEIR_SESSION_LRU_CACHE_H_

#include <list>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace weir {

// Up to `capacity` values by key; the one that was asked for longest ago goes first. For one thread
// at a time.
template <class K, class V>
class LruCache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  // Null if there is none. Good until the next Insert.
  const V* Find(const K& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }
  // Of a key that is not there. Returns the value that had to go, if any.
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
  std::list<std::pair<K, V>> entries_;  // the latest first
  absl::flat_hash_map<K, typename std::list<std::pair<K, V>>::iterator> index_;
};

}  // namespace weir

#endif  // WEIR_SESSION_LRU_CACHE_H_
