#ifndef WEIR_OPS_DATA_DATASET_FILES_INTERNAL_H_
#define WEIR_OPS_DATA_DATASET_FILES_INTERNAL_H_

#include "weir/core/graph/op.h"

namespace weir {

// The part of AddDatasetOps in dataset_files.cc.
void AddDatasetFileOps(OpRegistry* ops);

}  // namespace weir

#endif  // WEIR_OPS_DATA_DATASET_FILES_INTERNAL_H_
