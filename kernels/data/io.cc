#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/core/io/saved_slice.h"
#include "weir/kernels/data/remap.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Checkpoint and file ops. All run on the host.
namespace weir {
namespace {

// Returns a single string, of any rank.
absl::StatusOr<std::string> ScalarString(KernelContext& c, int i, absl::string_view what) {
  const Tensor& t = c.input(i);
  if (t.dtype() == DT_STRING && t.num_elements() == 1) return t.scalar<std::string>();
  return InvalidArgument(what, " must be a single string, not ", t.Description());
}

// Returns input i, which must have `count` strings.
absl::StatusOr<absl::Span<const std::string>> Strings(KernelContext& c, int i, int64_t count,
                                                      absl::string_view what) {
  const Tensor& t = c.input(i);
  if (t.dtype() == DT_STRING && t.rank() == 1 && t.num_elements() == count)
    return t.flat<std::string>();
  return InvalidArgument(what, " must be a vector of ", count,
                         " strings, one for each tensor, not ", t.Description());
}

// ---- saving

absl::Status Save(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string prefix, ScalarString(c, 0, "prefix"));
  const int count = c.num_inputs() - 3;
  WEIR_ASSIGN_OR_RETURN(const auto names, Strings(c, 1, count, "tensor_names"));
  WEIR_ASSIGN_OR_RETURN(const auto specs, Strings(c, 2, count, "shape_and_slices"));
  std::vector<Tensor> values;
  for (int i = 0; i < count; ++i) values.push_back(c.input(3 + i));
  return WriteSavedTensors(prefix, names, specs, std::move(values), DurabilityOf(c.node()),
                           &c.pool());
}

// V1. The inputs are a path, the tensors' names, for SaveSlices their slice specs, and the tensors.
template <bool kSlices>
absl::Status SaveV1(KernelContext& c) {
  constexpr int kFirst = kSlices ? 3 : 2;
  WEIR_ASSIGN_OR_RETURN(const std::string path, ReadString(c.input(0), "Input filename tensor"));
  const int count = c.num_inputs() - kFirst;
  WEIR_ASSIGN_OR_RETURN(const auto names, Strings(c, 1, count, "tensor_names"));
  const std::vector<std::string> whole(static_cast<size_t>(count));
  absl::Span<const std::string> specs = whole;
  if (kSlices) {
    WEIR_ASSIGN_OR_RETURN(specs, Strings(c, 2, count, "shapes_and_slices"));
  }
  std::vector<SavedSlice> slices(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    WEIR_ASSIGN_OR_RETURN(slices[i], ParseSavedSlice(names[i], specs[i], c.input(kFirst + i)));
  }
  return WriteCheckpointV1(path, slices, DurabilityOf(c.node()));
}

absl::StatusOr<Kernel> MakeMerge(const KernelInit& init) {
  const bool delete_old_dirs = init.attr<bool>("delete_old_dirs");
  const bool allow_missing = init.attr<bool>("allow_missing_files");
  return Kernel([=](KernelContext& c) -> absl::Status {
    const Tensor& prefixes = c.input(0);
    if (prefixes.dtype() != DT_STRING || prefixes.rank() != 1) {
      return InvalidArgument("checkpoint_prefixes must be a vector of strings, not ",
                             prefixes.Description());
    }
    WEIR_ASSIGN_OR_RETURN(const std::string destination, ScalarString(c, 1, "destination_prefix"));
    const auto merge = delete_old_dirs ? MergeSavedParts : MergeBundles;
    return merge(prefixes.flat<std::string>(), destination, allow_missing, DurabilityOf(c.node()));
  });
}

// ---- restoring

absl::StatusOr<Kernel> MakeRestore(const KernelInit& init) {
  const auto dtypes = init.attr<DataTypes>("dtypes");
  return Kernel([dtypes](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::string prefix, ScalarString(c, 0, "prefix"));
    const int count = c.num_outputs();
    WEIR_ASSIGN_OR_RETURN(const auto names, Strings(c, 1, count, "tensor_names"));
    WEIR_ASSIGN_OR_RETURN(const auto specs, Strings(c, 2, count, "shape_and_slices"));
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                          CheckpointReader::Open(prefix));
    std::vector<absl::StatusOr<Tensor>> read(static_cast<size_t>(count),
                                             absl::StatusOr<Tensor>(Tensor()));
    c.pool().ForEach(count, [&](int i) {
      read[i] = ReadFromCheckpoint(*reader, names[i], specs[i], dtypes[i]);
    });
    for (const absl::StatusOr<Tensor>& tensor : read) WEIR_RETURN_IF_ERROR(tensor.status());
    for (int i = 0; i < count; ++i) c.SetOutput(i, *std::move(read[i]));
    return absl::OkStatus();
  });
}

absl::StatusOr<Kernel> MakeRestoreOne(const KernelInit& init) {
  const auto dtype = init.attr<DataType>("dt");
  WEIR_ASSIGN_OR_RETURN(const int shard, NarrowAttr(init.node, "preferred_shard"));
  if (shard < -1)
    return InvalidArgument("Attribute 'preferred_shard' must be greater or equal to -1");
  return Kernel([dtype](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::string pattern, ScalarString(c, 0, "file_pattern"));
    WEIR_ASSIGN_OR_RETURN(const std::string name, ScalarString(c, 1, "tensor_name"));
    std::string spec;
    if (c.num_inputs() == 3) {
      WEIR_ASSIGN_OR_RETURN(spec, ScalarString(c, 2, "shape_and_slice"));
    }
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                          CheckpointReader::Open(pattern));
    WEIR_ASSIGN_OR_RETURN(Tensor tensor, ReadFromCheckpoint(*reader, name, spec, dtype));
    c.SetOutput(0, std::move(tensor));
    return absl::OkStatus();
  });
}

// ---- files

absl::Status SetString(KernelContext& c, std::string value) {
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<std::string>() = std::move(value);
  return absl::OkStatus();
}

absl::Status ShardedName(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string basename, ReadString(c.input(0), "basename"));
  WEIR_ASSIGN_OR_RETURN(const int64_t shard, ReadInt(c.input(1), "shard"));
  WEIR_ASSIGN_OR_RETURN(const int64_t num_shards, ReadInt(c.input(2), "num_shards"));
  return SetString(c, absl::StrFormat("%s-%05d-of-%05d", basename, shard, num_shards));
}

absl::Status ShardedSpec(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string basename, ReadString(c.input(0), "basename"));
  WEIR_ASSIGN_OR_RETURN(const int64_t num_shards, ReadInt(c.input(1), "num_shards"));
  return SetString(c, absl::StrFormat("%s-%s-of-%05d", basename, std::string(5, '?'), num_shards));
}

absl::Status Read(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string path, ReadString(c.input(0), "Input filename tensor"));
  WEIR_ASSIGN_OR_RETURN(std::string contents, ReadFile(path));
  return SetString(c, std::move(contents));
}

absl::Status Write(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string path, ReadString(c.input(0), "Input filename tensor"));
  WEIR_ASSIGN_OR_RETURN(const std::string contents, ReadString(c.input(1), "Contents tensor"));
  WEIR_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(path)));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, Files().Create(path));
  WEIR_RETURN_IF_ERROR(file->Append(contents));
  return file->Close();
}

absl::Status Match(KernelContext& c) {
  if (c.input(0).rank() > 1) {
    return InvalidArgument("Input patterns tensor must be scalar or vector, but had shape: ",
                           c.input(0).shape().ToString());
  }
  std::vector<std::string> found;  // a file once for each pattern that it matches, as in TensorFlow
  for (const std::string& pattern : c.input(0).flat<std::string>()) {
    WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> paths, MatchFiles(pattern));
    found.insert(found.end(), paths.begin(), paths.end());
  }
  std::sort(found.begin(), found.end());
  WEIR_ASSIGN_OR_RETURN(Tensor * out,
                        c.AllocateOutput(0, Shape({static_cast<int64_t>(found.size())})));
  std::copy(found.begin(), found.end(), out->data<std::string>());
  return absl::OkStatus();
}

// The file has the elements as they are in memory. It may be longer than the tensor.
absl::StatusOr<Kernel> MakeImmutableConst(const KernelInit& init) {
  const auto dtype = init.attr<DataType>("dtype");
  if (!IsPlain(dtype)) {
    return Unimplemented("Sorry, ", DataTypeName(dtype),
                         " is not currently supported for ImmutableConstOp.");
  }
  return Kernel(
      [dtype, shape = init.attr<Shape>("shape"),
       path = init.attr<std::string>("memory_region_name")](KernelContext& c) -> absl::Status {
        if (!shape.IsFullyDefined())
          return InvalidArgument("shape must be fully defined, not ", shape.ToString());
        WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, Files().Open(path));
        const auto size = static_cast<uint64_t>(ElementSize(dtype));
        if (file->size() / size < static_cast<uint64_t>(shape.num_elements())) {
          return InvalidArgument(path, " has only ", file->size(), " bytes, too few for a tensor ",
                                 DataTypeName(dtype), shape.ToString());
        }
        WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
        WEIR_RETURN_IF_ERROR(file->Read(0, out->num_bytes(), static_cast<char*>(out->raw())));
        // A byte other than 0 and 1 is not a valid C++ bool.
        if (dtype == DT_BOOL) {
          auto* const bytes = static_cast<uint8_t*>(out->raw());
          std::transform(bytes, bytes + out->num_bytes(), bytes, [](uint8_t b) { return b != 0; });
        }
        return absl::OkStatus();
      });
}

}  // namespace

void AddIoCpu(KernelRegistry* r) {
  AddRemapKernels(r);
  r->Add("SaveV2", kCpu, Save);
  r->Add("Save", kCpu, SaveV1<false>);
  r->Add("SaveSlices", kCpu, SaveV1<true>);
  r->Add("RestoreV2", kCpu, MakeRestore);
  r->Add("MergeV2Checkpoints", kCpu, MakeMerge);
  r->Add("Restore", kCpu, MakeRestoreOne);
  r->Add("RestoreSlice", kCpu, MakeRestoreOne);
  r->Add("ShardedFilename", kCpu, ShardedName);
  r->Add("ShardedFilespec", kCpu, ShardedSpec);
  r->Add("ReadFile", kCpu, Read);
  r->Add("WriteFile", kCpu, Write);
  r->Add("MatchingFiles", kCpu, Match);
  r->Add("ImmutableConst", kCpu, MakeImmutableConst);
}

}  // namespace weir
