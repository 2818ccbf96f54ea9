#include "weir/kernels/lib/hash_index.h"

#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace weir {
namespace {

// Keys with few distinct hashes, so that probe sequences collide, added and removed at random.
TEST(HashIndex, MatchesAMap) {
  std::minstd_rand random(7);
  std::vector<int> keys;
  std::map<int, int64_t> expected;
  HashIndex table;
  const auto hash = [](int key) { return static_cast<size_t>(key % 61) * 5; };
  const auto is = [&](int key) { return [&keys, key](int64_t p) { return keys[p] == key; }; };
  for (int step = 0; step < 20000; ++step) {
    const int key = static_cast<int>(random() % 400);
    const auto it = expected.find(key);
    ASSERT_EQ(table.Find(hash(key), is(key)), it == expected.end() ? -1 : it->second);
    if (it == expected.end()) {
      const int64_t next = static_cast<int64_t>(keys.size());
      keys.push_back(key);
      ASSERT_EQ(table.FindOrAdd(hash(key), next, is(key)), next);
      expected[key] = next;
    } else if (random() % 2 == 0) {
      ASSERT_EQ(table.FindOrAdd(hash(key), -7, is(key)), it->second);
    } else {
      // The last key replaces the removed one.
      const int64_t hole = it->second, last = static_cast<int64_t>(keys.size()) - 1;
      table.Remove(hash(key), hole);
      expected.erase(it);
      if (hole != last) {
        table.Move(hash(keys[last]), last, hole);
        expected[keys[last]] = hole;
        keys[hole] = keys[last];
      }
      keys.pop_back();
    }
  }
  EXPECT_GT(expected.size(), 100u);
  table.Clear();
  EXPECT_EQ(table.Find(hash(1), is(1)), -1);
}

}  // namespace
}  // namespace weir
