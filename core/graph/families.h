#ifndef WEIR_CORE_GRAPH_FAMILIES_H_
#define WEIR_CORE_GRAPH_FAMILIES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weir {

// An index from ops to the record families (of ops or of kernels) that contain them. It is
// generated when Weir is built, by a program that constructs all families
// (core/graph/family_index.h), so a process neither constructs families to search them nor builds a
// map at startup.
struct FamilyIndex {
  // An op, and the position of a family that has records of it.
  struct Entry {
    absl::string_view op;
    int32_t family;
  };
  static constexpr uint32_t kBuckets = 1024;
  // The FNV-1a hash (Fowler, Noll and Vo).
  static uint32_t BucketOf(absl::string_view op) {
    uint32_t hash = 2166136261u;
    for (const char c : op) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
    return (hash ^ hash >> 16) % kBuckets;
  }

  // The ops of bucket b are entries[starts[b]] to entries[starts[b + 1]]. The entries of one op are
  // in family order.
  absl::Span<const Entry> entries;
  absl::Span<const uint16_t> starts;  // kBuckets + 1 elements
};

// The lazily constructed records of a registry. Records are grouped in families, each of which is
// constructed by one function on first use. So a process that runs a small graph constructs a dozen
// families out of 150; otherwise they would account for most of its startup time, and of the code
// pages that it touches only once.
//
// Thread-safe. The function of a family must not look up ops in its own registry.
template <class Registry>
class Families {
 public:
  using Add = void (*)(Registry*);

  // `families` and the arrays of `index` outlive this object.
  Families(absl::Span<const Add> families, const FamilyIndex& index)
      : families_(families),
        index_(index),
        registries_(std::make_unique<LazyRegistry[]>(families.size())) {}

  // Calls `visit(const Registry&)` for each family with records of the op, in order, until it
  // returns true. Visits all families if the index is empty, as in the program that generates the
  // index.
  template <class Visit>
  void ForEachWith(absl::string_view op, Visit visit) const {
    if (index_.entries.empty()) return ForEach(visit);
    const uint32_t bucket = FamilyIndex::BucketOf(op);
    for (uint16_t i = index_.starts[bucket]; i < index_.starts[bucket + 1]; ++i) {
      const FamilyIndex::Entry& entry = index_.entries[i];
      if (entry.op == op && visit(Of(entry.family))) return;
    }
  }

  // Returns the family at this position; constructs it on first use.
  const Registry& Of(size_t family) const {
    LazyRegistry& lazy = registries_[family];
    if (const Registry* ready = lazy.ready.load(std::memory_order_acquire)) return *ready;
    std::call_once(lazy.once, [&] {
      lazy.registry = std::make_unique<Registry>();
      families_[family](lazy.registry.get());
      lazy.ready.store(lazy.registry.get(), std::memory_order_release);
    });
    return *lazy.registry;
  }
  // Constructs and returns all families.
  std::vector<const Registry*> All() const {
    std::vector<const Registry*> all;
    for (size_t i = 0; i < families_.size(); ++i) all.push_back(&Of(i));
    return all;
  }

 private:
  struct LazyRegistry {
    std::atomic<const Registry*> ready{nullptr};  // faster to check than `once`
    std::once_flag once;
    std::unique_ptr<Registry> registry;
  };

  template <class Visit>
  void ForEach(Visit visit) const {
    for (size_t i = 0; i < families_.size(); ++i) {
      if (visit(Of(i))) return;
    }
  }

  const absl::Span<const Add> families_;
  const FamilyIndex index_;
  const std::unique_ptr<LazyRegistry[]> registries_;
};

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_FAMILIES_H_
