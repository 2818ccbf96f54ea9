#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "weir/core/io/bundle.h"
#include "weir/core/runtime/resource.h"
#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/variant.h"
#include "weir/kernels/data/dataset_files.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Datasets whose elements are computed once and then come from memory or from a file. Only an
// iteration that reaches the end fills the cache.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

// ---- in memory

// The elements of a dataset, which the datasets that share the resource share.
class MemoryCache final : public Resource {
 public:
  using Elements = std::shared_ptr<const std::vector<Tensors>>;

  std::string Describe() const override { return "memory cache of a dataset"; }
  void Clear() override {
    const MutexLock lock(mutex_);
    elements_ = nullptr;
  }
  // Returns null before an iteration is complete.
  Elements elements() {
    const MutexLock lock(mutex_);
    return elements_;
  }
  // Keeps the first elements that are given.
  void Complete(std::vector<Tensors> elements) {
    const MutexLock lock(mutex_);
    if (elements_ == nullptr)
      elements_ = std::make_shared<const std::vector<Tensors>>(std::move(elements));
  }

 private:
  Mutex mutex_;
  Elements elements_ ABSL_GUARDED_BY(mutex_);
};

absl::Status CacheInMemory(KernelContext& c, const std::shared_ptr<MemoryCache>& cache) {
  return WrapDataset(
      c,
      [cache](IteratorPtr in) {
        return IteratorOf(
            [in = std::move(in), cache, stored = cache->elements(), next = size_t{0},
             read = std::vector<Tensors>()](const DatasetContext& x) mutable -> MaybeElement {
              if (stored != nullptr) {
                if (next >= stored->size()) return std::nullopt;
                return (*stored)[next++];
              }
              WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
              if (element) {
                read.push_back(*element);
                return element;
              }
              cache->Complete(std::move(read));
              stored = cache->elements();
              next = stored == nullptr ? 0 : stored->size();
              return std::nullopt;
            });
      },
      SameElements());
}

// A resource that lives as long as its handle.
Tensor NewCacheHandle(const Device& device) {
  ResourceHandle handle;
  handle.device = device.text();
  handle.name = "MemoryCache";
  handle.resource = std::make_shared<MemoryCache>();
  return Tensor::Scalar(std::move(handle));
}

absl::Status AnonymousMemoryCache(KernelContext& c) {
  c.SetOutput(0, NewCacheHandle(c.device()));
  // The handle owns the cache, so the deleter has nothing to do.
  c.SetOutput(1, Tensor::Scalar(
                     Variant{.type_name = "ResourceDeleter", .metadata = "", .value = Tensors()}));
  return absl::OkStatus();
}

absl::Status DummyMemoryCache(KernelContext& c) {
  c.SetOutput(0, NewCacheHandle(c.device()));
  return absl::OkStatus();
}

// Frees the elements, also while other handles are alive.
absl::Status DeleteMemoryCache(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryCache> cache, c.resource<MemoryCache>(0));
  cache->Clear();
  return absl::OkStatus();
}

// ---- in a file

// The file is a bundle (core/io/bundle.h), as in TensorFlow: component k of element i has the key
// "i_k", with both numbers padded with spaces to fixed widths, so that the keys sort as the
// elements do. Source: tensorflow/core/kernels/data/cache_dataset_ops.cc.
constexpr int64_t kMostElements = 10'000'000;

std::string KeyOf(int64_t element, size_t component, size_t num_components) {
  const auto width = [](int64_t last) { return static_cast<int>(absl::StrCat(last).size()); };
  return absl::StrFormat("%*d_%*d", width(kMostElements - 1), element,
                         width(static_cast<int64_t>(num_components) - 1), component);
}

absl::Status ConcurrentWriter(const std::string& path) {
  return absl::AlreadyExistsError(absl::StrCat(
      "There appears to be a concurrent caching iterator running - cache lockfile already exists "
      "('",
      path,
      "'). If you are sure no other running TF computations are using this cache prefix, "
      "delete the lockfile and re-initialize the iterator."));
}

// Passes the elements of the input on and writes them. The cache appears when it is complete.
class CacheWriter final : public DatasetIterator {
 public:
  CacheWriter(IteratorPtr in, std::string prefix, size_t num_components)
      : in_(std::move(in)), prefix_(std::move(prefix)), num_components_(num_components) {}

  MaybeElement Next(const DatasetContext& x) override {
    if (ended_) return std::nullopt;
    if (failed_) return in_->Next(x);  // the cache would lack an element
    if (writer_ == nullptr) WEIR_RETURN_IF_ERROR(Open());
    WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in_->Next(x));
    if (!element) {
      ended_ = true;
      WEIR_RETURN_IF_ERROR(writer_->Finish());
      return std::nullopt;
    }
    const absl::Status written = Write(*element);
    if (written.ok()) return element;
    failed_ = true;
    writer_ = nullptr;
    return written;
  }

 private:
  absl::Status Write(const Tensors& element) {
    if (next_ == kMostElements)
      return InvalidArgument("Upstream iterator is producing more than ", kMostElements,
                             " items, which is more than the cache limit.");
    if (element.size() != num_components_)
      return InvalidArgument("Upstream iterator returned ", element.size(), " components, not ",
                             num_components_);
    for (size_t k = 0; k < num_components_; ++k)
      WEIR_RETURN_IF_ERROR(writer_->Add(KeyOf(next_, k, num_components_), element[k]));
    ++next_;
    return absl::OkStatus();
  }

  // TensorFlow's writer marks its prefix by a file, Weir's by a lock that ends with its process.
  absl::Status Open() {
    const std::string lock_file = prefix_ + "_0.lockfile";
    if (Files().Exists(lock_file)) return ConcurrentWriter(lock_file);
    if (!Files().IsDirectory(DirectoryOf(prefix_)))  // which a checkpoint would make
      return NotFound(lock_file, "; No such file or directory");
    auto writer = BundleWriter::Create(prefix_);
    if (absl::IsAborted(writer.status())) return ConcurrentWriter(prefix_);
    WEIR_RETURN_IF_ERROR(writer.status());
    writer_ = *std::move(writer);
    return absl::OkStatus();
  }

  const IteratorPtr in_;
  const std::string prefix_;
  const size_t num_components_;
  std::unique_ptr<BundleWriter> writer_;
  int64_t next_ = 0;
  bool ended_ = false, failed_ = false;
};

class CacheFileReader final : public DatasetIterator {
 public:
  CacheFileReader(std::string prefix, size_t num_components)
      : prefix_(std::move(prefix)), num_components_(num_components) {}

  MaybeElement Next(const DatasetContext&) override {
    if (reader_ == nullptr) {
      WEIR_ASSIGN_OR_RETURN(reader_, CheckpointReader::Open(prefix_));
      WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> all, reader_->List());
      count_ = all.size();
    }
    const size_t first = static_cast<size_t>(next_) * num_components_;
    if (first >= count_) return std::nullopt;
    Tensors element;
    for (size_t k = 0; k < num_components_; ++k) {
      WEIR_ASSIGN_OR_RETURN(element.emplace_back(),
                            reader_->Read(KeyOf(next_, k, num_components_)));
    }
    ++next_;
    return element;
  }

 private:
  const std::string prefix_;
  const size_t num_components_;
  std::unique_ptr<CheckpointReader> reader_;
  size_t count_ = 0;  // of tensors in the file
  int64_t next_ = 0;
};

// Whether there is a file to read is decided when an iteration begins.
absl::Status CacheInFile(KernelContext& c, const std::string& prefix, size_t num_components) {
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr input, DatasetIn(c.input(0)));
  c.SetOutput(0, DatasetTensor(DatasetOf(
                     [=]() -> MaybeIterator {
                       if (Files().Exists(prefix + ".index"))
                         return std::make_unique<CacheFileReader>(prefix, num_components);
                       WEIR_ASSIGN_OR_RETURN(IteratorPtr in, input->Iterate());
                       return std::make_unique<CacheWriter>(std::move(in), prefix, num_components);
                     },
                     {.cardinality = input->cardinality()})));
  return absl::OkStatus();
}

absl::Status CacheDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string file, ReadString(c.input(1), "filename"));
  if (!file.empty()) return CacheInFile(c, file, c.node().attr<DataTypes>("output_types").size());
  if (c.num_inputs() < 3) return CacheInMemory(c, std::make_shared<MemoryCache>());
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryCache> cache, c.resource<MemoryCache>(2));
  return CacheInMemory(c, cache);
}

}  // namespace

void AddDatasetCacheKernels(KernelRegistry* r) {
  r->Add("AnonymousMemoryCache", kCpu, AnonymousMemoryCache);
  r->Add("CacheDataset", kCpu, CacheDataset);
  r->Add("CacheDatasetV2", kCpu, CacheDataset);
  r->Add("DeleteMemoryCache", kCpu, DeleteMemoryCache);
  r->Add("DummyMemoryCache", kCpu, DummyMemoryCache);
}

}  // namespace weir
