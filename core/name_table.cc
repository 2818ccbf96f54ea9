#include "weir/core/name_table.h"

#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "weir/core/graph.h"

namespace weir {

bool NameTable::Equal::operator()(const Key& a, const Key& b) const {
  return a.hash == b.hash && (a.view() == b.view() || absl::EqualsIgnoreCase(a.view(), b.view()));
}

// Of all bits but those in which "A" differs from "a", eight letters at a time.
NameTable::Key NameTable::KeyOf(absl::string_view name) {
  constexpr uint64_t kCases = 0x2020202020202020;
  absl::InlinedVector<uint64_t, 16> letters(name.size() / sizeof(uint64_t) + 1);
  name.copy(reinterpret_cast<char*>(letters.data()), name.size());
  for (uint64_t& eight : letters) eight |= kCases;
  const size_t hash =
      absl::HashOf(absl::string_view(reinterpret_cast<const char*>(letters.data()), name.size()));
  return {name.data(), static_cast<uint32_t>(name.size()), static_cast<uint32_t>(hash)};
}

NameTable::Entry* NameTable::FindEntry(absl::string_view name) {
  const auto it = entries_.find(KeyOf(name));
  return it == entries_.end() ? nullptr : &it->second;
}
const NameTable::Entry* NameTable::FindEntry(absl::string_view name) const {
  return const_cast<NameTable*>(this)->FindEntry(name);
}

void NameTable::AddOwned(absl::string_view name, const Entry& entry) {
  entries_.emplace(KeyOf(owned_.emplace_back(name)), entry);
}

Node* NameTable::Find(absl::string_view name) const {
  const Entry* const entry = FindEntry(name);
  if (entry != nullptr && entry->node != nullptr && entry->node->name() == name) return entry->node;
  if (variants_.empty()) return nullptr;
  const auto variant = variants_.find(name);
  return variant == variants_.end() ? nullptr : variant->second;
}

NameTable::Entry& NameTable::AddEntry(Node* node) {
  Entry& entry = entries_.try_emplace(KeyOf(node->name())).first->second;
  if (entry.node == nullptr) {
    entry.node = node;
  } else if (entry.node != node) {
    variants_.emplace(node->name(), node);
  }
  return entry;
}

void NameTable::Remove(Node* node) {
  const auto it = entries_.find(KeyOf(node->name()));
  if (it == entries_.end() || it->second.node != node) {
    variants_.erase(node->name());
    return;
  }
  it->second.node = nullptr;
  const Entry left = it->second;
  if (left.next != 0 && it->first.text != node->name().data()) return;
  entries_.erase(it);
  if (left.next != 0) AddOwned(node->name(), left);
}

// The counter of a name remembers where to go on, so that a thousand nodes of one name take a
// thousand look-ups, not half a million.
std::string NameTable::Unique(absl::string_view name) const {
  const Entry* entry = FindEntry(name);
  if (entry == nullptr || entry->next == 0) return std::string(name);
  std::string made = absl::StrCat(name, "_");
  const size_t stem = made.size();
  int number = entry->next;
  do {
    made.resize(stem);
    absl::StrAppend(&made, number++);
    entry = FindEntry(made);
  } while (entry != nullptr && entry->next != 0);
  return made;
}

namespace {

// The counter of `asked` once Unique has made `given` of it.
int NextAfter(absl::string_view asked, absl::string_view given) {
  int number = 0;
  const bool is_numbered =
      given.size() > asked.size() && absl::SimpleAtoi(given.substr(asked.size() + 1), &number);
  return is_numbered ? number + 1 : 1;
}

}  // namespace

void NameTable::AddUnique(Node* node, absl::string_view asked) {
  const absl::string_view given = node->name();
  AddEntry(node).next = 1;
  if (given.size() > asked.size()) FindEntry(asked)->next = NextAfter(asked, given);
}

std::string NameTable::TakeUnique(absl::string_view asked) {
  std::string given = Unique(asked);
  if (given.size() > asked.size()) FindEntry(asked)->next = NextAfter(asked, given);
  Take(given);
  return given;
}

bool NameTable::Take(absl::string_view name) {
  Entry* const entry = FindEntry(name);
  if (entry == nullptr) {
    AddOwned(name, {.node = nullptr, .next = 1});
  } else if (entry->next == 0) {
    entry->next = 1;
  } else {
    return false;
  }
  return true;
}

void NameTable::Release(absl::string_view asked, absl::string_view given) {
  Entry* const entry = FindEntry(asked);
  const int next = NextAfter(asked, given);
  if (entry == nullptr || entry->next != next) return;
  if (given.size() > asked.size()) entry->next = next - 1;
  entries_.erase(KeyOf(given));
}

}  // namespace weir
