#include "weir/tools/ckpt/hdf5_driver.h"

#include <memory>

namespace weir::tools {

namespace {

// What the property list of a file says of it.
struct DriverInfo {
  const FilePart* part;
  uint64_t* end;
};

// The library's part comes first.
struct DriverFile {
  H5FD_t library{};
  DriverInfo info;
};

const DriverInfo& InfoOf(const H5FD_t* file) {
  return reinterpret_cast<const DriverFile*>(file)->info;
}

H5FD_t* OpenDriverFile(const char*, unsigned, hid_t access, haddr_t) {
  const auto* const info = static_cast<const DriverInfo*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  auto file = std::make_unique<DriverFile>();
  file->info = *info;
  return &file.release()->library;
}

herr_t CloseDriverFile(H5FD_t* file) {
  delete reinterpret_cast<DriverFile*>(file);
  return 0;
}

// The file's end, beyond which the library neither reads nor allocates.
haddr_t GetEnd(const H5FD_t* file, H5FD_mem_t) { return *InfoOf(file).end; }
herr_t SetEnd(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  *InfoOf(file).end = end;
  return 0;
}

haddr_t GetSize(const H5FD_t* file, H5FD_mem_t) { return InfoOf(file).part->size; }

herr_t ReadDriverFile(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t size, void* out) {
  const FilePart& part = *InfoOf(file).part;
  if (at > part.size || size > part.size - at) return -1;
  return part.file.Read(part.offset + at, size, static_cast<char*>(out)).ok() ? 0 : -1;
}

herr_t RefuseWrite(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) { return -1; }

H5FD_class_t Driver() {
  H5FD_class_t driver{};
  driver.name = "weir";
  driver.maxaddr = INT64_MAX;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(DriverInfo);
  driver.open = OpenDriverFile;
  driver.close = CloseDriverFile;
  driver.get_eoa = GetEnd;
  driver.set_eoa = SetEnd;
  driver.get_eof = GetSize;
  driver.read = ReadDriverFile;
  driver.write = RefuseWrite;
  constexpr H5FD_mem_t kFreeLists[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(kFreeLists), std::end(kFreeLists), driver.fl_map);
  return driver;
}

}  // namespace

Hdf5Handle OpenFilePart(const FilePart& part, uint64_t* end) {
  const H5FD_class_t driver = Driver();
  const Hdf5Handle registered(H5FDregister(&driver), H5FDunregister);
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  const DriverInfo info{&part, end};
  if (H5Pset_driver(access.get(), registered.get(), &info) < 0) return {};
  return {H5Fopen("part", H5F_ACC_RDONLY, access.get()), H5Fclose};
}

}  // namespace weir::tools
