#ifndef WEIR_KERNELS_DATA_PARSING_H_
#define WEIR_KERNELS_DATA_PARSING_H_

#include "weir/core/runtime/kernel.h"

namespace weir {

// The parts of AddParsingKernels, each in its own source file.
void AddCsvKernels(KernelRegistry* r);           // csv.cc
void AddParseExampleKernels(KernelRegistry* r);  // parse_example.cc

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_PARSING_H_
