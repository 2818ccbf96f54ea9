#include "weir/core/tensor/heap.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

// The operator new of a server: the heap of its steps ends before its memory (heap.h).

#ifndef WEIR_SANITIZED  // sanitizers have their own

void* operator new(size_t bytes) {
  if (!weir::MayAllocate(bytes)) throw std::bad_alloc();
  for (;;) {
    if (void* const data = std::malloc(bytes > 0 ? bytes : 1); data != nullptr) {
      weir::NoteAllocated(malloc_usable_size(data));
      return data;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

// The size that the compiler knows is not that of the block, and it does not always know one.
void operator delete(void* data) noexcept {
  weir::NoteFreed(malloc_usable_size(data));
  std::free(data);
}
void operator delete(void* data, size_t) noexcept { operator delete(data); }

#endif
