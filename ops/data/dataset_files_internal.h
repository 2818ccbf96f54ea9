#ifndef WEIR_OPS_DATA_DATASET_FILES_INTERNAL_H_
#define WEIR_OPS_DATA_DATASET_FILES_INTERNAL_H_

#include "weir/core/graph/op.h"

namespace weir {

// Ops of datasets in files (dataset_files.cc).
void AddDatasetFileOps(OpRegistry* ops);

}  // namespace weir

#endif  // WEIR_OPS_DATA_DATASET_FILES_INTERNAL_H_
