#include "weir/kernels/train/update_rows.h"

#include <algorithm>
#include <functional>

#include "weir/core/tensor/cancellation.h"

namespace weir {

namespace {

using Update = absl::FunctionRef<void(const UpdateLoopArgs&)>;

// Updates rows [first, last) of the list, which has no row twice, through buffers: one call of the
// loop then serves many narrow rows.
template <class U>
void UpdateGathered(const std::vector<int64_t>& rows, int64_t first, int64_t last, int64_t width,
                    const UpdateLoopArgs& all, Update update) {
  constexpr int64_t kBuffer = 512;
  U buffers[4][kBuffer];
  void* const variables[] = {all.var, all.slots[0], all.slots[1], all.slots[2]};
  const auto each = [&](int64_t begin, int64_t end, const auto& copy) {
    for (int v = 0; v < 4 && variables[v] != nullptr; ++v) {
      U* buffer = buffers[v];
      for (int64_t i = begin; i < end; ++i) {
        U* const row = static_cast<U*>(variables[v]) + rows[i] * width;
        for (int64_t j = 0; j < width; ++j) copy(row[j], *buffer++);
      }
    }
  };
  for (int64_t begin = first; begin < last; begin += kBuffer / width) {
    ThrowIfCancelled();
    const int64_t end = std::min(last, begin + kBuffer / width);
    each(begin, end, [](const U& element, U& buffered) { buffered = element; });
    update({buffers[0],
            {buffers[1], buffers[2], buffers[3]},
            static_cast<const U*>(all.grad) + begin * width,
            (end - begin) * width});
    each(begin, end, [](U& element, const U& buffered) { element = buffered; });
  }
}

// Each thread takes a part of the rows, which must be in increasing order.
template <class U>
void UpdateNarrowRows(ThreadPool& pool, const std::vector<int64_t>& rows, int64_t width,
                      const UpdateLoopArgs& all, Update update) {
  pool.ParallelFor(
      static_cast<int64_t>(rows.size()), 6.0 * static_cast<double>(width),
      [&](int64_t begin, int64_t end) { UpdateGathered<U>(rows, begin, end, width, all, update); });
}

// As the gradients of embeddings have them, whose rows were ranked.
bool IsIncreasing(const std::vector<int64_t>& rows) {
  return std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end();
}

}  // namespace

void UpdateRows(ThreadPool& pool, const std::vector<int64_t>& rows, int64_t width, size_t size,
                const UpdateLoopArgs& all, Update update) {
  constexpr int64_t kNarrow = 8, kWorthThreads = 1 << 14;  // elements
  const auto update_row = [&](size_t i) {
    update(all.At(rows[i] * width, static_cast<int64_t>(i) * width, width, size));
  };
  const bool is_narrow = width > 0 && width < kNarrow;
  if (is_narrow && IsIncreasing(rows)) {
    if (size == 2) return UpdateNarrowRows<uint16_t>(pool, rows, width, all, update);
    if (size == 4) return UpdateNarrowRows<uint32_t>(pool, rows, width, all, update);
    return UpdateNarrowRows<uint64_t>(pool, rows, width, all, update);
  }
  const int threads = pool.num_threads();
  if (is_narrow || threads <= 1 || static_cast<int64_t>(rows.size()) * width < kWorthThreads) {
    for (size_t i = 0; i < rows.size(); ++i) update_row(i);
    return;
  }
  // As in CombineRows, each thread owns some rows of the variable, so repeated indices are applied
  // in order.
  pool.ForEach(threads, [&](int t) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] % threads == t) update_row(i);
    }
  });
}

}  // namespace weir
