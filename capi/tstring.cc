#include <cstdlib>
#include <cstring>

#include "weir/capi/objects.h"

// The forms of strings: see tf_tstring.h.

static_assert(sizeof(TF_TString) == 24, "the size is part of the ABI");

namespace {

constexpr size_t kSmallCapacity = sizeof(TF_TString) - 2;  // without the size and a zero
constexpr int kTypeBits = 2;
constexpr size_t kGranule = 16;  // of allocated memory

size_t Tagged(size_t size, TF_TString_Type type) { return size << kTypeBits | type; }

}  // namespace

TF_TString_Type TF_StringGetType(const TF_TString* str) {
  if (str == nullptr) return TF_TSTR_SMALL;
  return static_cast<TF_TString_Type>(str->u.raw.raw[0] & ((1 << kTypeBits) - 1));
}

void TF_StringInit(TF_TString* t) {
  if (t != nullptr) *t = TF_TString{};
}

void TF_StringDealloc(TF_TString* tstr) {
  if (tstr == nullptr) return;
  if (TF_StringGetType(tstr) == TF_TSTR_LARGE) std::free(tstr->u.large.ptr);
  TF_StringInit(tstr);
}

void TF_StringCopy(TF_TString* dst, const char* src, size_t size) {
  if (!weir::capi::HaveAll("TF_StringCopy", {dst})) return;
  if (src == nullptr) size = 0;
  TF_TString copy = {};
  if (size <= kSmallCapacity) {
    copy.u.smll.size = static_cast<uint8_t>(Tagged(size, TF_TSTR_SMALL));
    if (size > 0) std::memcpy(copy.u.smll.str, src, size);
  } else {
    const size_t bytes = (size + kGranule) & ~(kGranule - 1);
    auto* const memory =
        size < SIZE_MAX >> kTypeBits ? static_cast<char*>(std::malloc(bytes)) : nullptr;
    if (memory == nullptr) {
      weir::capi::LogMisuse("TF_StringCopy", "out of memory");
    } else {
      std::memcpy(memory, src, size);
      memory[size] = '\0';
      copy.u.large = {Tagged(size, TF_TSTR_LARGE), bytes - 1, memory};
    }
  }
  TF_StringDealloc(dst);  // `src` may be part of it
  *dst = copy;
}

void TF_StringAssignView(TF_TString* dst, const char* src, size_t size) {
  if (!weir::capi::HaveAll("TF_StringAssignView", {dst})) return;
  TF_StringDealloc(dst);
  dst->u.view = {Tagged(src == nullptr ? 0 : size, TF_TSTR_VIEW), src};
}

const char* TF_StringGetDataPointer(const TF_TString* tstr) {
  if (tstr == nullptr) return nullptr;
  switch (TF_StringGetType(tstr)) {
    case TF_TSTR_SMALL:
      return tstr->u.smll.str;
    case TF_TSTR_LARGE:
      return tstr->u.large.ptr;
    case TF_TSTR_OFFSET:
      return reinterpret_cast<const char*>(tstr) + tstr->u.offset.offset;
    case TF_TSTR_VIEW:
      return tstr->u.view.ptr;
  }
  return nullptr;
}

size_t TF_StringGetSize(const TF_TString* tstr) {
  if (tstr == nullptr) return 0;
  switch (TF_StringGetType(tstr)) {
    case TF_TSTR_SMALL:
      return tstr->u.smll.size >> kTypeBits;
    case TF_TSTR_OFFSET:
      return tstr->u.offset.size >> kTypeBits;
    default:
      return tstr->u.large.size >> kTypeBits;
  }
}

size_t TF_StringGetCapacity(const TF_TString* str) {
  switch (TF_StringGetType(str)) {
    case TF_TSTR_SMALL:
      return str == nullptr ? 0 : kSmallCapacity;
    case TF_TSTR_LARGE:
      return str->u.large.cap;
    default:
      return 0;
  }
}
