#include "weir/core/io/file.h"
#include "weir/tests/fuzz/targets.h"
#include "weir/tests/io/test_files.h"
#include "weir/tools/ckpt/gguf_file.h"
#include "weir/tools/ckpt/hdf5_file.h"
#include "weir/tools/ckpt/keras_file.h"
#include "weir/tools/ckpt/npz_file.h"
#include "weir/tools/ckpt/safetensors_file.h"

// The files of other programs that `weir ckpt` reads: what opens can be listed, and every tensor
// can be read in pieces, or is an error; both ways of reading agree.
namespace weir::fuzz {

namespace {

using Open = absl::StatusOr<std::unique_ptr<CheckpointReader>> (*)(const std::string&,
                                                                   tools::Metadata*);

// A tensor of more bytes is only checked.
constexpr int64_t kMaxReadBytes = int64_t{1} << 24;

void ReadAll(absl::string_view bytes, Open open) {
  testing::MemoryFileSystem files;
  const ScopedFileSystem scope(&files);
  Require((*files.Create("/f"))->Append(bytes).ok(), "a file is written");
  tools::Metadata metadata;
  const auto reader = open("/f", &metadata);
  if (!reader.ok()) return;
  const auto tensors = (*reader)->List();
  Require(tensors.ok(), "what was opened is listed");
  for (const CheckpointTensor& tensor : *tensors) {
    Require((*reader)->Find(tensor.name).ok(), "what is listed is found");
    const bool is_sound = (*reader)->Check(tensor.name).ok();
    if (tools::BytesOf(tensor.dtype, tensor.shape) > kMaxReadBytes) continue;
    const auto whole = (*reader)->Read(tensor.name);
    Require(whole.ok() == is_sound, "what was checked is read");
    Require(!whole.ok() || (whole->dtype() == tensor.dtype && whole->shape() == tensor.shape),
            "a tensor is as listed");
  }
}

}  // namespace

void NpzCheckpoint(absl::string_view bytes) { ReadAll(bytes, tools::OpenNpz); }
void Safetensors(absl::string_view bytes) { ReadAll(bytes, tools::OpenSafetensors); }
void Gguf(absl::string_view bytes) { ReadAll(bytes, tools::OpenGguf); }
void Hdf5(absl::string_view bytes) { ReadAll(bytes, tools::OpenHdf5); }
void Keras(absl::string_view bytes) { ReadAll(bytes, tools::OpenKeras); }

std::vector<Row> Rows() {
  return {{"gguf", Gguf, 2000},
          {"hdf5", Hdf5, 1000},
          {"keras", Keras, 1000},
          {"npz_checkpoint", NpzCheckpoint, 2000},
          {"safetensors", Safetensors, 2000}};
}

}  // namespace weir::fuzz
