#include "weir/kernels/linalg/dnnl.h"

#include <dlfcn.h>

#include <cstdio>

namespace weir::dnnl {

namespace {

// The library's major version must match the header's: another one has different struct layouts.
#define WEIR_STRING_OF(x) #x
#define WEIR_AS_STRING(x) WEIR_STRING_OF(x)
constexpr char kLibrary[] = "libdnnl.so." WEIR_AS_STRING(DNNL_VERSION_MAJOR);

void* Library() {
  static void* const library = [] {
    void* const opened = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      std::fprintf(stderr, "weir: convolutions will be slow, since oneDNN is not there: %s\n",
                   dlerror());
    }
    return opened;
  }();
  return library;
}

}  // namespace

bool IsThere() { return Library() != nullptr; }

void* FindFunction(const char* name) { return IsThere() ? dlsym(Library(), name) : nullptr; }

}  // namespace weir::dnnl
