#include "weir/tools/ckpt/hdf5_reader.h"

#include <algorithm>
#include <functional>
#include <set>

#include "absl/strings/escaping.h"
#include "weir/tools/ckpt/hdf5_attributes.h"
#include "weir/tools/ckpt/hdf5_driver.h"
#include "weir/tools/lib/zip_archive.h"

namespace weir::tools {

namespace {

constexpr uint64_t kMaxChunkBytes = uint64_t{64} << 20;
// A prime number of slots, 100 times the chunks that the cache holds at 64 KB each.
constexpr size_t kChunkSlots = 102407;

absl::StatusOr<Shape> ShapeOf(hid_t dataset) {
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  const H5S_class_t kind = H5Sget_simple_extent_type(space.get());
  if (kind == H5S_NULL) return Unimplemented("it has no shape: it is a null dataset");
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (kind == H5S_NO_CLASS || rank < 0) return DataLoss(LastHdf5Error());
  std::vector<hsize_t> dims(static_cast<size_t>(rank));
  if (rank > 0 && H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr) < 0)
    return DataLoss(LastHdf5Error());
  std::vector<int64_t> signed_dims;
  for (const hsize_t dim : dims) {
    if (dim > INT64_MAX) return DataLoss("a dimension of ", dim);
    signed_dims.push_back(static_cast<int64_t>(dim));
  }
  return Shape::Make(signed_dims);
}

absl::Status CheckFilters(hid_t creation) {
  const int count = H5Pget_nfilters(creation);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    size_t num_values = 0;
    char name[64] = "";
    const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags,
                                               &num_values, nullptr, sizeof(name), name, nullptr);
    if (filter < 0) return DataLoss(LastHdf5Error());
    if (H5Zfilter_avail(filter) > 0) continue;
    return Unimplemented("it is compressed by filter ", filter, " (",
                         absl::Utf8SafeCHexEscape(name),
                         "); h5repack -f GZIP=1 writes the file with one that is known");
  }
  return count < 0 ? DataLoss(LastHdf5Error()) : absl::OkStatus();
}

// Checks the chunks of a dataset, `bytes` in all: that all are there, and that their size, in
// memory and in all, is one that the file can have.
absl::Status CheckChunks(hid_t dataset, hid_t creation, const CheckpointTensor& tensor,
                         uint64_t bytes, uint64_t file_bytes) {
  const auto rank = static_cast<size_t>(tensor.shape.rank());
  std::vector<hsize_t> chunk(rank);
  if (rank == 0 || H5Pget_chunk(creation, static_cast<int>(rank), chunk.data()) < 0)
    return DataLoss(LastHdf5Error());
  uint64_t chunk_bytes = ElementSize(tensor.dtype), expected = 1;
  for (size_t d = 0; d < rank; ++d) {
    const auto dim = static_cast<uint64_t>(tensor.shape.dim(static_cast<int>(d)));
    if (chunk[d] == 0) return DataLoss("a dimension of its chunks is 0");
    expected *= (dim + chunk[d] - 1) / chunk[d];
    if (chunk[d] > kMaxChunkBytes / chunk_bytes) {
      return Unimplemented(
          "its chunks have more than 64 MB; h5repack -l CHUNK=... writes the file "
          "with smaller ones");
    }
    chunk_bytes *= chunk[d];
  }
  if (bytes / kMaxDeflateRatio > file_bytes) {
    return DataLoss("it would have ", bytes, " bytes, but the file has only ", file_bytes);
  }
  hsize_t chunks = 0;
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  if (H5Dget_num_chunks(dataset, space.get(), &chunks) < 0) return DataLoss(LastHdf5Error());
  if (chunks == expected) return absl::OkStatus();
  return DataLoss("it has ", chunks, " of ", expected, " chunks");
}

struct LinkVisit {
  std::function<absl::Status(const char* name, const H5L_info_t& link)> visit;
  absl::Status status;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Hdf5Reader>> Hdf5Reader::Open(const FilePart& part) {
  SilenceHdf5Errors();
  H5PLset_loading_state(0);  // no code from elsewhere
  std::unique_ptr<Hdf5Reader> reader(new Hdf5Reader(part));
  reader->file_ = OpenFilePart(reader->part_, &reader->end_);
  if (!reader->file_.ok()) {
    return DataLoss("it is not an HDF5 file, or it is truncated or damaged (", LastHdf5Error(),
                    ")");
  }
  WEIR_RETURN_IF_ERROR(reader->Scan());
  return reader;
}

absl::Status Hdf5Reader::Scan() {
  if (part_.size > end_) {
    return DataLoss("it ends at byte ", end_, ", but ", part_.size - end_, " bytes follow");
  }
  bool ignored = false;
  WEIR_RETURN_IF_ERROR(ReadHdf5Attributes(file_.get(), "", &contents_.metadata, &ignored));
  LinkVisit visit{[&](const char* name, const H5L_info_t& link) { return AddLink(name, link); },
                  absl::OkStatus()};
  const auto add = [](hid_t, const char* name, const H5L_info_t* link, void* opaque) -> herr_t {
    auto& to = *static_cast<LinkVisit*>(opaque);
    to.status = to.visit(name, *link);
    return to.status.ok() ? 0 : -1;
  };
  if (H5Lvisit(file_.get(), H5_INDEX_NAME, H5_ITER_NATIVE, add, &visit) < 0)
    return visit.status.ok() ? DataLoss(LastHdf5Error()) : visit.status;
  return CheckOverlaps();
}

absl::Status Hdf5Reader::AddLink(const std::string& name, const H5L_info_t& link) {
  const std::string what = absl::StrCat("object '", absl::Utf8SafeCHexEscape(name), "'");
  if (link.type != H5L_TYPE_HARD) {
    return Unimplemented(what,
                         " is a symbolic or external link; h5repack -e or h5copy writes a "
                         "file that has the object itself");
  }
  H5O_info_t info{};
  if (H5Oget_info_by_name2(file_.get(), name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
    return Annotate(DataLoss(LastHdf5Error()), what);
  if (info.type == H5O_TYPE_DATASET) return Annotate(AddDataset(name, info.addr), what);
  if (info.type != H5O_TYPE_GROUP) return absl::OkStatus();
  const Hdf5Handle group(H5Oopen(file_.get(), name.c_str(), H5P_DEFAULT), H5Oclose);
  if (!group.ok()) return Annotate(DataLoss(LastHdf5Error()), what);
  bool ignored = false;
  const size_t before = contents_.metadata.size();
  WEIR_RETURN_IF_ERROR(ReadHdf5Attributes(group.get(), name, &contents_.metadata, &ignored));
  H5G_info_t members{};
  if (H5Gget_info(group.get(), &members) < 0) return Annotate(DataLoss(LastHdf5Error()), what);
  if (members.nlinks == 0 && contents_.metadata.size() == before)
    contents_.metadata.push_back(EmptyHdf5Group(name));
  return absl::OkStatus();
}

absl::Status Hdf5Reader::AddDataset(const std::string& name, haddr_t object) {
  const Hdf5Handle dataset(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.ok()) return DataLoss(LastHdf5Error());
  bool is_bfloat16 = false;
  WEIR_RETURN_IF_ERROR(ReadHdf5Attributes(dataset.get(), name, &contents_.metadata, &is_bfloat16));
  const Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose);
  const DataType dtype = DtypeOfHdf5(type.get(), is_bfloat16);
  if (dtype == DT_INVALID) {
    return Unimplemented("its elements are ",
                         H5Tget_class(type.get()) == H5T_STRING ? "texts" : "of an unknown type",
                         ", not numbers");
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(dataset.get()));
  CheckpointTensor tensor{name, dtype, shape, {}};
  WEIR_RETURN_IF_ERROR(CheckStorage(dataset.get(), tensor, object));
  contents_.tensors.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status Hdf5Reader::CheckStorage(hid_t dataset, const CheckpointTensor& tensor,
                                      haddr_t object) {
  const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  const auto elements = static_cast<uint64_t>(tensor.shape.num_elements());
  if (elements > UINT64_MAX / ElementSize(tensor.dtype)) return DataLoss("its size overflows");
  const uint64_t bytes = elements * ElementSize(tensor.dtype);
  if (layout == H5D_VIRTUAL || H5Pget_external_count(creation.get()) > 0)
    return Unimplemented("its elements are in other files");
  if (layout == H5D_CHUNKED) {
    WEIR_RETURN_IF_ERROR(CheckFilters(creation.get()));
    if (bytes == 0) return absl::OkStatus();
    return CheckChunks(dataset, creation.get(), tensor, bytes, part_.size);
  }
  const uint64_t storage = H5Dget_storage_size(dataset);
  if (storage != bytes) return DataLoss("its shape needs ", bytes, " bytes, but it has ", storage);
  if (layout != H5D_CONTIGUOUS || bytes == 0) return absl::OkStatus();
  const uint64_t begin = H5Dget_offset(dataset);
  if (begin > end_ || bytes > end_ - begin)
    return DataLoss("its elements would be at byte ", begin, ", but the file ends at ", end_);
  storage_.push_back({begin, begin + bytes, object, tensor.name});
  return absl::OkStatus();
}

// Two names of one dataset share its elements.
absl::Status Hdf5Reader::CheckOverlaps() {
  std::sort(storage_.begin(), storage_.end(),
            [](const Storage& a, const Storage& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < storage_.size(); ++i) {
    const Storage &a = storage_[i - 1], &b = storage_[i];
    if (a.end > b.begin && a.object != b.object)
      return DataLoss("datasets '", a.name, "' and '", b.name, "' overlap");
  }
  return absl::OkStatus();
}

absl::Status Hdf5Reader::Read(size_t index, uint64_t first, uint64_t count, char* out) {
  const CheckpointTensor& tensor = contents_.tensors[index];
  if (opened_ != index) {
    const Hdf5Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    H5Pset_chunk_cache(access.get(), kChunkSlots, kMaxChunkBytes, 1);
    opened_ = SIZE_MAX;
    dataset_ = Hdf5Handle(H5Dopen2(file_.get(), tensor.name.c_str(), access.get()), H5Dclose);
    if (!dataset_.ok()) return DataLoss(LastHdf5Error());
    const Hdf5Handle type(H5Dget_type(dataset_.get()), H5Tclose);
    memory_type_ = Hdf5MemoryType(type.get(), tensor.dtype);
    opened_ = index;
  }
  const size_t width = ElementSize(tensor.dtype);
  WEIR_RETURN_IF_ERROR(TransferRange(dataset_.get(), tensor.shape.dims(), first, count,
                                     [&](hid_t memory, hid_t file, uint64_t offset) {
                                       return H5Dread(dataset_.get(), memory_type_.get(), memory,
                                                      file, H5P_DEFAULT, out + offset * width);
                                     }));
  // Other numbers than 0 and 1 are no bools.
  if (tensor.dtype == DT_BOOL)
    std::transform(out, out + count, out, [](char c) { return static_cast<char>(c != 0); });
  return absl::OkStatus();
}

}  // namespace weir::tools
