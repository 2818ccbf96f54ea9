#ifndef WEIR_TOOLS_CKPT_KERAS_FILE_H_
#define WEIR_TOOLS_CKPT_KERAS_FILE_H_

#include <memory>
#include <string>

#include "weir/tools/ckpt/output.h"

// Whole models of Keras 3 and of tf_keras (.keras): zip archives with config.json (the layers and
// their configuration), metadata.json, model.weights.h5 (hdf5_file.h), and possibly assets. Each
// member has a checksum.
namespace weir::tools {

// Opens a model: its tensors are those of model.weights.h5, its metadata the texts of config.json
// and metadata.json, and the attributes of the weights. Verifies the checksums of all other members
// than the weights; that of the weights is verified before the first tensor is read. Errors are
// those of OpenHdf5 and OpenZipMember, NOT_FOUND if a member is missing, and UNIMPLEMENTED if the
// weights are compressed in the archive, or in shards.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenKeras(const std::string& path,
                                                            Metadata* metadata);

// Checks that the tensors of an output can replace those of the model output.like: the model has
// each of them, of the same shape, and none of the model's is missing but those of its optimizer
// and metrics. INVALID_ARGUMENT with the tensor otherwise.
absl::Status CheckKerasModel(const Output& output);

// See CheckpointFormat (formats.h). The output replaces the weights of the model output.like, whose
// other members are copied.
bool IsKeras(const ReadableFile& file);
absl::Status WriteKeras(const std::string& path, const Output& output, ProgressBar& progress);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_KERAS_FILE_H_
