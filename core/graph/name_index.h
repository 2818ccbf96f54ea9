#ifndef WEIR_CORE_GRAPH_NAME_INDEX_H_
#define WEIR_CORE_GRAPH_NAME_INDEX_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "weir/core/tensor/api.h"

// Names in a graph, for its lookups and for names that are made unique.
namespace WEIR_API weir {

class Node;

// An index of the names in a graph: maps names to nodes, and records the names used by nodes and
// scopes. Nodes are found by their exact name, but a name is taken if it is used in any case, as in
// TensorFlow; so both "A" and "a" can exist only if they come from a file. Not thread-safe;
// concurrent calls of Find are allowed while nothing changes.
class NameIndex {
 public:
  // Returns null if there is no such node.
  Node* Find(absl::string_view name) const;

  // Adds a node whose name neither changes nor moves in memory until the node is removed. Does not
  // mark the name as taken.
  void Add(Node* node);
  // Removes a node that was added; its name stays taken.
  void Remove(Node* node);

  // Returns a free name: `asked`, `asked_1`, ... The result is valid for one call of AddUnique, for
  // a node that has this name by then; AddUnique marks the name as taken.
  class FreeName;
  // See FreeName.
  FreeName Unique(absl::string_view asked);
  void AddUnique(Node* node, const FreeName& name);
  // Marks a free name as taken, for a scope, and returns it.
  std::string TakeUnique(absl::string_view asked);
  // Marks the name as taken. Returns false if it already was.
  bool Take(absl::string_view name);
  // Frees `given` if it is the last name derived from `asked`. No node has this name.
  void Release(absl::string_view asked, absl::string_view given);

  // Allocates memory for that many names.
  void Reserve(size_t names) { entries_.reserve(names); }
  size_t size() const { return entries_.size(); }

 private:
  // A string owned by somebody else, with its case-insensitive hash. The hash is stored because the
  // strings are no longer in cache when the hash map grows.
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
    Node* node = nullptr;  // the first node with the name
    int next = 0;          // next number to try as a suffix of the name; 0 if the name is free
  };
  static uint32_t HashOf(absl::string_view name);
  static Key KeyOf(absl::string_view name);
  Entry* FindEntry(const Key& key);
  const Entry* FindEntry(absl::string_view name) const;
  Entry& AddEntry(Node* node, uint32_t hash);
  void AddOwned(absl::string_view name, uint32_t hash, const Entry& entry);
  void AdvanceCounter(const FreeName& name);

  absl::flat_hash_map<Key, Entry, Hash, Equal> entries_;
  uint64_t additions_ = 0;         // each may move the entries
  std::deque<std::string> owned_;  // strings of keys that are not names of nodes
  // Nodes whose name differs from an entry's node only in case.
  std::map<std::string, Node*, std::less<>> case_variants_;
};

// A name that nothing has, and where its counter is; see Unique.
class NameIndex::FreeName {
 public:
  const std::string& text() const { return text_; }  // the name

 private:
  friend class NameIndex;
  std::string text_;
  size_t asked_size_ = 0;  // length of the requested name, a prefix of text_
  uint32_t hash_ = 0;
  int next_ = 0;  // new value of the counter of the requested name; 0 if no number was appended
  Entry* asked_ = nullptr;  // entry with that counter; valid while additions_ is unchanged
  uint64_t additions_ = 0;
};

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_NAME_INDEX_H_
