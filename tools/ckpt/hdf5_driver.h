#ifndef WEIR_TOOLS_CKPT_HDF5_DRIVER_H_
#define WEIR_TOOLS_CKPT_HDF5_DRIVER_H_

#include "weir/tools/ckpt/hdf5_reader.h"

namespace weir::tools {

// Opens a part of a file for reading, through a driver of HDF5's library: so an HDF5 file may be in
// a zip archive, or in memory. Sets `*end` to the end of the HDF5 file as its superblock has it.
// The handle is not ok() after an error. The part's file outlives the handle.
Hdf5Handle OpenFilePart(const FilePart& part, uint64_t* end);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_HDF5_DRIVER_H_
