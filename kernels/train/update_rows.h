#ifndef WEIR_KERNELS_TRAIN_UPDATE_ROWS_H_
#define WEIR_KERNELS_TRAIN_UPDATE_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/runtime/thread_pool.h"

namespace weir {

// A range of elements to update: of a variable, of its up to three slots (the others are null), and
// of the gradient.
struct UpdateLoopArgs {
  void* var;
  void* slots[3];
  const void* grad;
  int64_t count;

  // `n` elements from these offsets on; elements have `size` bytes.
  UpdateLoopArgs At(int64_t var_offset, int64_t grad_offset, int64_t n, size_t size) const {
    const auto move = [size](const void* p, int64_t by) {
      return p == nullptr
                 ? nullptr
                 : static_cast<char*>(const_cast<void*>(p)) + static_cast<size_t>(by) * size;
    };
    return {move(var, var_offset),
            {move(slots[0], var_offset), move(slots[1], var_offset), move(slots[2], var_offset)},
            move(grad, grad_offset),
            n};
  }
};

// Calls `update` for the rows of a variable: row i of the gradient belongs to row rows[i] of the
// variable and of its slots. Rows have `width` elements of `size` bytes: 2, 4 or 8. A repeated row
// is updated repeatedly, in order. The results must not depend on how elements are grouped.
void UpdateRows(ThreadPool& pool, const std::vector<int64_t>& rows, int64_t width, size_t size,
                const UpdateLoopArgs& all, absl::FunctionRef<void(const UpdateLoopArgs&)> update);

}  // namespace weir

#endif  // WEIR_KERNELS_TRAIN_UPDATE_ROWS_H_
