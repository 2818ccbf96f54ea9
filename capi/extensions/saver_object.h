#ifndef WEIR_CAPI_EXTENSIONS_SAVER_OBJECT_H_
#define WEIR_CAPI_EXTENSIONS_SAVER_OBJECT_H_

#include <utility>

#include "weir/c_api.h"
#include "weir/core/tensor/mutex.h"
#include "weir/session/model/saver.h"

// A saver, which one thread at a time uses. Its lock is taken before that of a graph.
struct weir_saver {
  explicit weir_saver(weir::Saver made) : saver(std::move(made)) {}

  weir::Mutex mutex;
  weir::Saver saver ABSL_GUARDED_BY(mutex);
};

#endif  // WEIR_CAPI_EXTENSIONS_SAVER_OBJECT_H_
