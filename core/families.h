#ifndef WEIR_CORE_FAMILIES_H_
#define WEIR_CORE_FAMILIES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weir {

// Which families of records (of ops, of kernels) an op has. Written when Weir is built, by a
// program that makes all families (core/family_index.h), so that a process need neither make them
// to know nor build a table when it starts.
struct FamilyIndex {
  // An op and the position of a family that has records of it.
  struct Entry {
    absl::string_view op;
    int32_t family;
  };
  static constexpr uint32_t kBuckets = 1024;
  // FNV-1a (Fowler, Noll and Vo).
  static uint32_t BucketOf(absl::string_view op) {
    uint32_t hash = 2166136261u;
    for (const char c : op) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
    return (hash ^ hash >> 16) % kBuckets;
  }

  // Of the ops in bucket b: entries[starts[b]] up to entries[starts[b + 1]]. Those of one op stand
  // in the order of the families.
  absl::Span<const Entry> entries;
  absl::Span<const uint16_t> starts;  // kBuckets + 1
};

// The records of a registry that are made when they are first asked for. They come in families, a
// function each. So a process that runs a small graph makes a dozen families of 150: its
// start would be little else otherwise, in time and in pages of code that are touched once.
//
// Thread-safe. A family must not look up ops of its own registry while it is made.
template <class Registry>
class Families {
 public:
  using Add = void (*)(Registry*);

  // What they point to outlives this.
  Families(absl::Span<const Add> families, const FamilyIndex& index)
      : families_(families), index_(index), made_(std::make_unique<Made[]>(families.size())) {}

  // Calls `visit(const Registry&)` for the families with records of the op, in their order, until
  // it returns true. For all families if the index is empty: who writes it has none.
  template <class Visit>
  void With(absl::string_view op, Visit visit) const {
    if (index_.entries.empty()) return WithAll(visit);
    const uint32_t bucket = FamilyIndex::BucketOf(op);
    for (uint16_t i = index_.starts[bucket]; i < index_.starts[bucket + 1]; ++i) {
      const FamilyIndex::Entry& entry = index_.entries[i];
      if (entry.op == op && visit(Of(entry.family))) return;
    }
  }

  // The family at this position.
  const Registry& Of(size_t family) const {
    Made& made = made_[family];
    if (const Registry* ready = made.ready.load(std::memory_order_acquire)) return *ready;
    std::call_once(made.once, [&] {
      made.registry = std::make_unique<Registry>();
      families_[family](made.registry.get());
      made.ready.store(made.registry.get(), std::memory_order_release);
    });
    return *made.registry;
  }
  // All families, made.
  std::vector<const Registry*> All() const {
    std::vector<const Registry*> all;
    for (size_t i = 0; i < families_.size(); ++i) all.push_back(&Of(i));
    return all;
  }

 private:
  struct Made {
    std::atomic<const Registry*> ready{nullptr};  // `once` takes longer to ask
    std::once_flag once;
    std::unique_ptr<Registry> registry;
  };

  template <class Visit>
  void WithAll(Visit visit) const {
    for (size_t i = 0; i < families_.size(); ++i) {
      if (visit(Of(i))) return;
    }
  }

  const absl::Span<const Add> families_;
  const FamilyIndex index_;
  const std::unique_ptr<Made[]> made_;
};

}  // namespace weir

#endif  // WEIR_CORE_FAMILIES_H_
