#ifndef WEIR_TOOLS_CKPT_HDF5_ATTRIBUTES_H_
#define WEIR_TOOLS_CKPT_HDF5_ATTRIBUTES_H_

#include <string>

#include "weir/tools/ckpt/hdf5_types.h"
#include "weir/tools/ckpt/output.h"

// Attributes of HDF5 objects as metadata: those that are texts or lists of texts. The key of an
// attribute of the root is its name, that of another object's is PATH@NAME. A group that has
// nothing, which tf_keras expects for a layer without weights, is an entry without a name: PATH@.
namespace weir::tools {

// Appends the attributes of an object, which has the path `path`; empty for the root. Others than
// texts are left out. Sets `*is_bfloat16` to whether the attribute "dtype" is "bfloat16": so Keras
// marks datasets of that type, and the attribute is not appended. DATA_LOSS for damaged ones.
absl::Status ReadHdf5Attributes(hid_t object, const std::string& path, Metadata* metadata,
                                bool* is_bfloat16);

// Returns the entry of a group that has nothing.
MetadataEntry EmptyHdf5Group(const std::string& path);

// Writes metadata as attributes of an open file. Groups that have some are created; entries of
// objects that are datasets are written to these. Metadata of other formats go to the root.
absl::Status WriteHdf5Attributes(hid_t file, const Metadata& metadata);
// Marks a dataset as Keras does.
absl::Status MarkBfloat16(hid_t dataset);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_HDF5_ATTRIBUTES_H_
