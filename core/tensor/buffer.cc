#include "weir/core/tensor/buffer.h"

#include <cassert>
#include <memory>
#include <string>

#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/variant.h"

namespace weir {

namespace {

// Calls f.operator()<T>() if the elements of `dtype` are C++ objects of class T.
template <class F>
void DispatchObject(DataType dtype, F&& f) {
  DispatchType(dtype, List<std::string, ResourceHandle, Variant>{}, f);
}

}  // namespace

Buffer* Buffer::New(Allocator& allocator, DataType dtype, int64_t count) {
  assert(count >= 0 && ElementSize(dtype) > 0);
  assert(IsPlain(dtype) || allocator.host_accessible());
  size_t bytes;
  if (__builtin_mul_overflow(static_cast<size_t>(count), ElementSize(dtype), &bytes))
    return nullptr;
  auto* const buffer = new Buffer;  // may throw: before there is anything to lose
  void* const data = allocator.Allocate(bytes);
  if (data == nullptr) {
    delete buffer;
    return nullptr;
  }
  DispatchObject(dtype, [&]<class T>() {
    std::uninitialized_value_construct_n(static_cast<T*>(data), count);
  });
  buffer->dtype_ = dtype;
  buffer->data_ = data;
  buffer->bytes_ = bytes;
  buffer->count_ = count;
  buffer->allocator_ = &allocator;
  return buffer;
}

Buffer* Buffer::Wrap(void* data, size_t bytes, Allocator* allocator, void (*release)(void*),
                     void* arg, bool transient) {
  Buffer* buffer = new Buffer;
  buffer->data_ = data;
  buffer->bytes_ = bytes;
  buffer->allocator_ = allocator;
  buffer->release_ = release;
  buffer->release_arg_ = arg;
  buffer->transient_ = transient;
  return buffer;
}

void Buffer::Delete() {
  if (dtype_ != DT_INVALID) {  // not wrapped
    DispatchObject(dtype_, [this]<class T>() { std::destroy_n(static_cast<T*>(data_), count_); });
    allocator_->Deallocate(data_, bytes_);
  } else if (release_ != nullptr) {
    release_(release_arg_);
  }
  delete this;
}

}  // namespace weir
