#include <cstdlib>
#include <cstring>

#include "google/protobuf/message_lite.h"
#include "weir/capi/objects.h"

namespace weir::capi {

namespace {

void FreeBytes(void* data, size_t) { std::free(data); }

}  // namespace

void SetBuffer(absl::string_view bytes, TF_Buffer* buffer) {
  if (buffer->data_deallocator != nullptr)
    buffer->data_deallocator(const_cast<void*>(buffer->data), buffer->length);
  *buffer = {nullptr, 0, nullptr};
  void* const copy = std::malloc(bytes.size() + 1);  // not null for no bytes
  if (copy == nullptr) return LogMisuse("TF_Buffer", "out of memory");
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  *buffer = {copy, bytes.size(), FreeBytes};
}

bool ParseMessage(absl::string_view bytes, google::protobuf::MessageLite* message) {
  return ParseMessage(bytes.data(), bytes.size(), message);
}

bool ParseMessage(const void* bytes, size_t size, google::protobuf::MessageLite* message) {
  return size <= INT32_MAX && message->ParseFromArray(bytes, static_cast<int>(size));
}

absl::string_view BytesOf(const TF_Buffer* buffer) {
  if (buffer == nullptr || buffer->data == nullptr) return {};
  return {static_cast<const char*>(buffer->data), buffer->length};
}

}  // namespace weir::capi

TF_Buffer* TF_NewBuffer() { return new TF_Buffer{nullptr, 0, nullptr}; }

TF_Buffer* TF_NewBufferFromString(const void* proto, size_t proto_len) {
  if (proto == nullptr && proto_len > 0) {
    weir::capi::LogMisuse("TF_NewBufferFromString", "the bytes are null");
    return nullptr;
  }
  TF_Buffer* const buffer = TF_NewBuffer();
  weir::capi::SetBuffer({static_cast<const char*>(proto), proto_len}, buffer);
  return buffer;
}

void TF_DeleteBuffer(TF_Buffer* buffer) {
  if (buffer == nullptr) return;
  if (buffer->data_deallocator != nullptr)
    buffer->data_deallocator(const_cast<void*>(buffer->data), buffer->length);
  delete buffer;
}

TF_Buffer TF_GetBuffer(TF_Buffer* buffer) {
  return buffer == nullptr ? TF_Buffer{nullptr, 0, nullptr} : *buffer;
}
