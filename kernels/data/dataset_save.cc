#include <optional>
#include <utility>

#include "weir/kernels/data/dataset_files.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/data/element_files.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// The ops that write a dataset to files and read it back.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

// ---- TFRecord files

// The file appears when it is complete.
absl::Status DatasetToTFRecord(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string path, ReadString(c.input(1), "filename"));
  WEIR_ASSIGN_OR_RETURN(const std::string compression, ReadString(c.input(2), "compression_type"));
  if (path.empty()) return NotFound("the filename is empty; No such file or directory");
  TemporaryFile temporary(path);
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSink> sink,
                        ByteSink::Create(temporary.path(), compression));
  const auto write = [&](const DatasetContext&, const Tensors& element) -> absl::Status {
    if (element.size() != 1 || element[0].dtype() != DT_STRING || element[0].rank() != 0)
      return InvalidArgument("A TFRecord file is written from elements of one string, got ",
                             element.size(), " components",
                             element.empty() ? "" : ", the first of them ",
                             element.empty() ? "" : element[0].Description());
    return AppendRecord(*sink, element[0].scalar<std::string>());
  };
  WEIR_RETURN_IF_ERROR(ForEachElement(c, 0, write));
  WEIR_RETURN_IF_ERROR(sink->Finish());
  WEIR_RETURN_IF_ERROR(Files().Rename(temporary.path(), path));
  temporary.SetRenamed();
  return Files().SyncDirectory(DirectoryOf(path));
}

// ---- SaveDataset

// What the ops that save have in common, known when the kernel is made.
struct SaveOptions {
  std::string compression;
  std::optional<CapturedFunction> shard_func;  // null: one shard

  static absl::StatusOr<SaveOptions> Of(const KernelInit& init) {
    SaveOptions options;
    WEIR_ASSIGN_OR_RETURN(options.compression,
                          ElementCompression(init.attr<std::string>("compression")));
    if (init.attr<bool>("use_shard_func")) {
      WEIR_ASSIGN_OR_RETURN(options.shard_func, CapturedFunctionOf(init, "shard_func"));
    }
    return options;
  }
  absl::StatusOr<SaveOptions> With(const KernelContext& c) const {
    SaveOptions options = *this;
    if (shard_func) {
      WEIR_ASSIGN_OR_RETURN(options.shard_func,
                            WithCaptured(c, *shard_func, "shard_func_other_args"));
    }
    return options;
  }
};

DataTypes TypesOf(const Tensors& element) {
  DataTypes types;
  for (const Tensor& t : element) types.push_back(t.dtype());
  return types;
}

absl::StatusOr<std::string> ReadFolder(const KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(std::string path, ReadString(c.input(1), "path"));
  if (path.empty()) return InvalidArgument("path cannot be empty.");
  return path;
}

absl::StatusOr<Kernel> MakeSave(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(SaveOptions given, SaveOptions::Of(init));
  return Kernel([given](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::string path, ReadFolder(c));
    WEIR_ASSIGN_OR_RETURN(const SaveOptions options, given.With(c));
    std::unique_ptr<ElementWriter> writer;
    const auto write = [&](const DatasetContext& x, const Tensors& element) -> absl::Status {
      if (writer == nullptr) {
        WEIR_ASSIGN_OR_RETURN(
            writer, ElementWriter::Create(path, options.compression, TypesOf(element), false));
      }
      return writer->Write(ShardOf(options.shard_func, x, element), element);
    };
    WEIR_RETURN_IF_ERROR(ForEachElement(c, 0, write));
    if (writer == nullptr) {  // no elements, of unknown types
      WEIR_ASSIGN_OR_RETURN(writer, ElementWriter::Create(path, options.compression, {}, false));
    }
    return writer->Finish();
  });
}

// Returns the elements unchanged, and finishes the files at their end.
absl::StatusOr<Kernel> MakeSaveV2(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(SaveOptions given, SaveOptions::Of(init));
  return Kernel(
      [given, types = init.attr<DataTypes>("output_types")](KernelContext& c) -> absl::Status {
        WEIR_ASSIGN_OR_RETURN(const std::string path, ReadFolder(c));
        WEIR_ASSIGN_OR_RETURN(const SaveOptions options, given.With(c));
        return WrapDataset(c, [path, options, types](IteratorPtr in) {
          return IteratorOf([=, in = std::move(in), writer = std::unique_ptr<ElementWriter>(),
                             ended = false](const DatasetContext& x) mutable -> MaybeElement {
            if (ended) return std::nullopt;
            if (writer == nullptr) {
              WEIR_ASSIGN_OR_RETURN(writer,
                                    ElementWriter::Create(path, options.compression, types, false));
            }
            WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
            if (!element) {
              ended = true;
              WEIR_RETURN_IF_ERROR(writer->Finish());
              return std::nullopt;
            }
            WEIR_RETURN_IF_ERROR(writer->Write(ShardOf(options.shard_func, x, *element), *element));
            return element;
          });
        });
      });
}

// ---- LoadDataset

absl::StatusOr<Kernel> MakeLoad(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const CapturedFunction reader, CapturedFunctionOf(init, "reader_func"));
  WEIR_ASSIGN_OR_RETURN(const std::string compression,
                        ElementCompression(init.attr<std::string>("compression")));
  return Kernel([reader, compression,
                 types = init.attr<DataTypes>("output_types")](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::string path, ReadString(c.input(0), "path"));
    WEIR_ASSIGN_OR_RETURN(const CapturedFunction function,
                          WithCaptured(c, reader, "reader_func_other_args"));
    const absl::StatusOr<SavedDataset> saved = ReadSavedDataset(path);
    if (absl::IsNotFound(saved.status()))
      return NotFound("Could not find metadata file [", path, "]: ", saved.status().message());
    WEIR_RETURN_IF_ERROR(saved.status());
    const std::string run = JoinPath(path, saved->run_id);
    c.SetOutput(0, DatasetTensor(DatasetOf([=] {
                  return IteratorOf(
                      [=, in = NestedIterator()](const DatasetContext& x) mutable -> MaybeElement {
                        if (in.iterator == nullptr) {
                          WEIR_ASSIGN_OR_RETURN(DatasetPtr shards,
                                                ShardDatasets(run, compression, types));
                          WEIR_ASSIGN_OR_RETURN(DatasetPtr elements,
                                                ElementsOf(function, x, std::move(shards)));
                          WEIR_ASSIGN_OR_RETURN(in, IterateOver(std::move(elements)));
                        }
                        return in.iterator->Next(x);
                      });
                })));
    return absl::OkStatus();
  });
}

}  // namespace

void AddDatasetSaveKernels(KernelRegistry* r) {
  r->Add("DatasetToTFRecord", kCpu, DatasetToTFRecord);
  r->Add("ExperimentalDatasetToTFRecord", kCpu, DatasetToTFRecord);
  r->Add("LoadDataset", kCpu, MakeLoad);
  r->Add("SaveDataset", kCpu, MakeSave);
  r->Add("SaveDatasetV2", kCpu, MakeSaveV2);
}

}  // namespace weir
