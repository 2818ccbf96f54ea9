#include "weir/core/graph/name_index.h"

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "weir/core/graph/graph.h"

namespace weir {

bool NameIndex::Equal::operator()(const Key& a, const Key& b) const {
  return a.hash == b.hash && (a.view() == b.view() || absl::EqualsIgnoreCase(a.view(), b.view()));
}

namespace {

uint64_t LoadEightBytes(const char* text) {
  uint64_t letters;
  std::memcpy(&letters, text, sizeof letters);
  return letters;
}

// Multiplies and folds the halves of the product by XOR: each bit of the result depends on all bits
// of both factors.
uint64_t Mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

// A case-insensitive hash of eight bytes at a time, in the style of wyhash (Wang Yi, 2019). It
// ignores the bits in which "A" and "a" differ. The seed is an address, so that names chosen by an
// adversary cannot collide on purpose.
uint32_t NameIndex::HashOf(absl::string_view name) {
  constexpr uint64_t kCases = 0x2020202020202020, kFactor = 0x9e3779b97f4a7c15;
  static const char seed = 0;
  const char* text = name.data();
  size_t left = name.size();
  uint64_t hash = reinterpret_cast<uintptr_t>(&seed) ^ (left * kFactor);
  for (; left > sizeof(uint64_t); text += sizeof(uint64_t), left -= sizeof(uint64_t))
    hash = Mix(hash ^ (LoadEightBytes(text) | kCases), kFactor);
  uint64_t rest = 0;
  if (name.size() >= sizeof rest) {
    rest = LoadEightBytes(text + left - sizeof rest);
  } else if (left > 0) {
    std::memcpy(&rest, text, left);
  }
  hash = Mix(hash ^ (rest | kCases), kFactor);
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

NameIndex::Key NameIndex::KeyOf(absl::string_view name) {
  return {name.data(), static_cast<uint32_t>(name.size()), HashOf(name)};
}

NameIndex::Entry* NameIndex::FindEntry(const Key& key) {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : &it->second;
}
const NameIndex::Entry* NameIndex::FindEntry(absl::string_view name) const {
  return const_cast<NameIndex*>(this)->FindEntry(KeyOf(name));
}

void NameIndex::AddOwned(absl::string_view name, uint32_t hash, const Entry& entry) {
  ++additions_;
  const std::string& text = owned_.emplace_back(name);
  entries_.emplace(Key{text.data(), static_cast<uint32_t>(text.size()), hash}, entry);
}

Node* NameIndex::Find(absl::string_view name) const {
  const Entry* const entry = FindEntry(name);
  if (entry != nullptr && entry->node != nullptr && entry->node->name() == name) return entry->node;
  if (case_variants_.empty()) return nullptr;
  const auto variant = case_variants_.find(name);
  return variant == case_variants_.end() ? nullptr : variant->second;
}

void NameIndex::Add(Node* node) { AddEntry(node, HashOf(node->name())); }

NameIndex::Entry& NameIndex::AddEntry(Node* node, uint32_t hash) {
  const std::string& name = node->name();
  const Key key = {name.data(), static_cast<uint32_t>(name.size()), hash};
  ++additions_;
  Entry& entry = entries_.try_emplace(key).first->second;
  if (entry.node == nullptr) {
    entry.node = node;
  } else if (entry.node != node) {
    case_variants_.emplace(node->name(), node);
  }
  return entry;
}

void NameIndex::Remove(Node* node) {
  const auto it = entries_.find(KeyOf(node->name()));
  if (it == entries_.end() || it->second.node != node) {
    case_variants_.erase(node->name());
    return;
  }
  it->second.node = nullptr;
  const Entry left = it->second;
  if (left.next != 0 && it->first.text != node->name().data()) return;
  entries_.erase(it);
  if (left.next != 0) AddOwned(node->name(), HashOf(node->name()), left);
}

// The counter of a name remembers where to continue, so that a thousand nodes with one name take a
// thousand lookups, not half a million.
NameIndex::FreeName NameIndex::Unique(absl::string_view asked) {
  FreeName made;
  made.asked_size_ = asked.size();
  made.additions_ = additions_;
  Key key = KeyOf(asked);
  Entry* taken = FindEntry(key);
  if (taken == nullptr || taken->next == 0) {
    made.text_ = std::string(asked);
  } else {
    made.asked_ = taken;
    made.next_ = taken->next;
    made.text_.reserve(asked.size() + 8);
    absl::StrAppend(&made.text_, asked, "_");
    const size_t stem = made.text_.size();
    do {
      made.text_.resize(stem);
      absl::StrAppend(&made.text_, made.next_++);
      key = KeyOf(made.text_);
      taken = FindEntry(key);
    } while (taken != nullptr && taken->next != 0);
  }
  made.hash_ = key.hash;
  return made;
}

namespace {

// Returns the value of the counter of `asked` after Unique has returned `given` for it.
int NextAfter(absl::string_view asked, absl::string_view given) {
  int number = 0;
  const bool is_numbered =
      given.size() > asked.size() && absl::SimpleAtoi(given.substr(asked.size() + 1), &number);
  return is_numbered ? number + 1 : 1;
}

}  // namespace

void NameIndex::AdvanceCounter(const FreeName& name) {
  if (name.next_ == 0) return;
  Entry* const asked =
      name.additions_ == additions_
          ? name.asked_
          : FindEntry(KeyOf(absl::string_view(name.text_).substr(0, name.asked_size_)));
  if (asked != nullptr) asked->next = name.next_;
}

void NameIndex::AddUnique(Node* node, const FreeName& name) {
  AdvanceCounter(name);
  AddEntry(node, name.hash_).next = 1;
}

std::string NameIndex::TakeUnique(absl::string_view asked) {
  FreeName name = Unique(asked);
  AdvanceCounter(name);
  Take(name.text_);
  return std::move(name.text_);
}

bool NameIndex::Take(absl::string_view name) {
  const Key key = KeyOf(name);
  Entry* const entry = FindEntry(key);
  if (entry == nullptr) {
    AddOwned(name, key.hash, {.node = nullptr, .next = 1});
  } else if (entry->next == 0) {
    entry->next = 1;
  } else {
    return false;
  }
  return true;
}

void NameIndex::Release(absl::string_view asked, absl::string_view given) {
  Entry* const entry = FindEntry(KeyOf(asked));
  const int next = NextAfter(asked, given);
  if (entry == nullptr || entry->next != next) return;
  if (given.size() > asked.size()) entry->next = next - 1;
  entries_.erase(KeyOf(given));
}

}  // namespace weir
