#include "weir/core/tensor/heap.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

// The operator new of a server: the heap of its steps ends before its memory (heap.h).

#ifndef WEIR_SANITIZED  // sanitizers have their own

void* operator new(size_t bytes) {
  if (!weir::MayAllocate(bytes)) throw std::bad_alloc();
  for (;;) {
    if (void* const data = std::malloc(bytes > 0 ? bytes : 1); data != nullptr) return data;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* data) noexcept {
  weir::NoteFreed(malloc_usable_size(data));
  std::free(data);
}
void operator delete(void* data, size_t bytes) noexcept {
  weir::NoteFreed(bytes);
  std::free(data);
}

#endif
