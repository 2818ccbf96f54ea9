#include "weir/kernels/lib/string_handle.h"

#include <mutex>
#include <unordered_map>

namespace weir {

namespace {

struct Named {
  std::string text[2];
  std::shared_ptr<Resource> resource;
};

// All handles, by the address of their strings.
struct Handles {
  std::mutex mutex;
  std::unordered_map<const void*, Named*> by_text;
};

Handles& AllHandles() {
  static Handles* const handles = new Handles;
  return *handles;
}

void Release(void* named) {
  const std::unique_ptr<Named> ending(static_cast<Named*>(named));
  const std::lock_guard<std::mutex> lock(AllHandles().mutex);
  AllHandles().by_text.erase(ending->text);
}

}  // namespace

Tensor StringHandle(const std::string& container, const std::string& name,
                    std::shared_ptr<Resource> resource) {
  auto owned = std::make_unique<Named>(Named{{container, name}, std::move(resource)});
  {
    const std::lock_guard<std::mutex> lock(AllHandles().mutex);
    AllHandles().by_text[owned->text] = owned.get();
  }
  Named* const named = owned.release();
  BufferPtr buffer(Buffer::Wrap(named->text, sizeof(named->text), nullptr, Release, named));
  return Tensor(DT_STRING, Shape({2}), std::move(buffer), named->text);
}

bool SharesStringHandle(const Tensor& value) {
  if (value.dtype() != DT_STRING || !value.buffer()) return false;
  const std::lock_guard<std::mutex> lock(AllHandles().mutex);
  return AllHandles().by_text.contains(value.buffer()->data());
}

std::shared_ptr<Resource> FindByStringHandle(const Tensor& handle) {
  if (handle.dtype() != DT_STRING || handle.num_elements() != 2) return nullptr;
  const std::lock_guard<std::mutex> lock(AllHandles().mutex);
  const auto found = AllHandles().by_text.find(handle.raw());
  return found == AllHandles().by_text.end() ? nullptr : found->second->resource;
}

}  // namespace weir
