#ifndef WEIR_CORE_NAME_INDEX_H_
#define WEIR_CORE_NAME_INDEX_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace weir {

class Node;

// The names of a graph: which node has which, and which are taken, by nodes and by scopes. A node
// is found by its exact name; a name is taken whatever its case, as in TensorFlow, so that "A" and
// "a" can only be both there if a file has them. For one thread at a time; Find from many while
// nothing changes.
class NameIndex {
 public:
  // Null if there is none.
  Node* Find(absl::string_view name) const;

  // A node of which the name, until it is removed, neither changes nor moves. That takes no name.
  void Add(Node* node);
  void Remove(Node* node);

  // A name that is free: `asked`, `asked_1`, ... It is good for one AddUnique, of the node that has
  // it by then, which takes it.
  class FreeName;
  FreeName Unique(absl::string_view asked);
  void AddUnique(Node* node, const FreeName& name);
  // A name that is free is taken, for a scope.
  std::string TakeUnique(absl::string_view asked);
  // False if it was taken.
  bool Take(absl::string_view name);
  // `given` is free again, if it is the last name that was made of `asked`. No node has it.
  void Release(absl::string_view asked, absl::string_view given);

  void Reserve(size_t names) { entries_.reserve(names); }
  size_t size() const { return entries_.size(); }

 private:
  // A text that somebody else owns, and its hash, which is the same in any case: strings are in no
  // cache by the time the table grows.
  struct Key {
    const char* text;
    uint32_t size, hash;
    absl::string_view view() const { return {text, size}; }
  };
  struct Hash {
    size_t operator()(const Key& key) const { return key.hash; }
  };
  struct Equal {
    bool operator()(const Key& a, const Key& b) const;
  };
  struct Entry {
    Node* node = nullptr;  // the first one that has the name
    int next = 0;          // the number after those tried behind the name; 0 if it is free
  };
  static uint32_t HashOf(absl::string_view name);
  static Key KeyOf(absl::string_view name);
  Entry* FindEntry(const Key& key);
  const Entry* FindEntry(absl::string_view name) const;
  Entry& AddEntry(Node* node, uint32_t hash);
  void AddOwned(absl::string_view name, uint32_t hash, const Entry& entry);
  void AdvanceCounter(const FreeName& name);

  absl::flat_hash_map<Key, Entry, Hash, Equal> entries_;
  uint64_t additions_ = 0;                                   // each may move the entries
  std::deque<std::string> owned_;                            // texts of keys that are no node's
  std::map<std::string, Node*, std::less<>> case_variants_;  // nodes that are in no entry
};

class NameIndex::FreeName {
 public:
  const std::string& text() const { return text_; }

 private:
  friend class NameIndex;
  std::string text_;
  size_t asked_size_ = 0;  // the name begins with what was asked for
  uint32_t hash_ = 0;
  int next_ = 0;  // what the counter of `asked` counts from then on; 0 if it gave no number
  Entry* asked_ = nullptr;  // that counter, unless there have been additions since
  uint64_t additions_ = 0;
};

}  // namespace weir

#endif  // WEIR_CORE_NAME_INDEX_H_
