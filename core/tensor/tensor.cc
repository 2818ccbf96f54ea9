#include "weir/core/tensor/tensor.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/variant.h"

namespace weir {

namespace {

// Returns the size of a tensor in bytes, or INVALID_ARGUMENT if no tensor can have that type and
// shape.
absl::StatusOr<size_t> ByteSize(DataType dtype, const Shape& shape) {
  const size_t element = IsRef(dtype) ? 0 : ElementSize(dtype);
  if (element == 0) {
    return InvalidArgument("Tensors cannot have dtype ", DataTypeName(dtype));
  }
  if (!shape.IsFullyDefined()) {
    return InvalidArgument("A tensor needs a fully defined shape, but got ", shape.ToString());
  }
  size_t bytes = element;
  bool overflow = false, empty = false;
  for (const int64_t d : shape.dims()) {
    empty = empty || d == 0;
    overflow = overflow || __builtin_mul_overflow(bytes, static_cast<size_t>(d), &bytes);
  }
  if (empty) return 0;
  if (overflow || bytes > static_cast<size_t>(INT64_MAX)) {
    WEIR_RETURN_IF_ERROR(Shape::Make(shape.dims()).status());  // too many elements for any type
    return InvalidArgument("Shape ", shape.ToString(), " of ", DataTypeName(dtype),
                           " would have more than 2**63 - 1 elements or bytes");
  }
  return bytes;
}

bool IdenticalElements(const ResourceHandle& a, const ResourceHandle& b) {
  return a.device == b.device && a.container == b.container && a.name == b.name &&
         a.resource == b.resource;
}

// Variants are equal if both have no value (only wire bytes) or lists of identical tensors. Other
// values cannot be compared and are never equal.
bool IdenticalElements(const Variant& a, const Variant& b) {
  if (a.type_name != b.type_name || a.metadata != b.metadata) return false;
  if (!a.value.has_value() && !b.value.has_value()) return true;
  const Tensors* x = std::any_cast<Tensors>(&a.value);
  const Tensors* y = std::any_cast<Tensors>(&b.value);
  return x != nullptr && y != nullptr &&
         std::equal(x->begin(), x->end(), y->begin(), y->end(), IdenticalTensors);
}

bool IdenticalElements(const std::string& a, const std::string& b) { return a == b; }

// The C library's memory, without the limits of the host allocator. A server whose client has used
// up its memory, to the last byte perhaps, must not end because a kernel makes a scalar.
class UnlimitedAllocator final : public Allocator {
 public:
  absl::string_view name() const override { return HostAllocator().name(); }
  void* Allocate(size_t bytes) override {
    return std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment);
  }
  void Deallocate(void* data, size_t) override { std::free(data); }
  int64_t bytes_in_use() const override { return HostAllocator().bytes_in_use(); }
  int64_t bytes_free() const override { return HostAllocator().bytes_free(); }
};

Allocator& LastResort() {
  static Allocator& allocator = *new UnlimitedAllocator;
  return allocator;
}

// Larger tensors have sizes from users, who may be refused.
bool IsLittle(DataType dtype, const Shape& shape) {
  constexpr int64_t kMaxElements = 1 << 16;
  return IsKnown(dtype) && shape.IsFullyDefined() && shape.num_elements() <= kMaxElements;
}

}  // namespace

Tensor::Tensor(DataType dtype, Shape shape) {
  absl::StatusOr<Tensor> t = Allocate(HostAllocator(), dtype, shape);
  if (!t.ok() && IsLittle(dtype, shape)) t = Allocate(LastResort(), dtype, shape);
  if (!t.ok()) {
    std::fprintf(stderr, "Tensor: %s\n", t.status().ToString().c_str());
    std::abort();
  }
  *this = *std::move(t);
}

absl::StatusOr<Tensor> Tensor::Allocate(Allocator& allocator, DataType dtype, const Shape& shape) {
  WEIR_ASSIGN_OR_RETURN(const size_t bytes, ByteSize(dtype, shape));
  if (!IsPlain(dtype) && !allocator.host_accessible()) {
    return InvalidArgument("Elements of ", DataTypeName(dtype),
                           " cannot be stored in the memory of ", allocator.name());
  }
  const int64_t count = static_cast<int64_t>(bytes / ElementSize(dtype));
  BufferPtr buffer(Buffer::New(allocator, dtype, count));
  if (!buffer) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "OOM when allocating tensor with shape ", shape.ToString(), " and type ",
        DataTypeName(dtype), " by allocator ", allocator.name(), ": ", bytes, " bytes asked for, ",
        allocator.bytes_in_use(), " in use, ", allocator.bytes_free(), " free"));
  }
  void* data = buffer->data();
  return Tensor(dtype, shape, std::move(buffer), data);
}

Tensor::Tensor(DataType dtype, Shape shape, BufferPtr buffer, void* data)
    : dtype_(dtype),
      shape_(std::move(shape)),
      num_elements_(shape_.num_elements()),
      data_(data),
      buffer_(std::move(buffer)) {
  assert(num_elements_ >= 0);
}

// A tensor without a buffer never counts as the sole owner of its elements, so nobody overwrites
// the caller's memory.
Tensor Tensor::View(DataType dtype, Shape shape, void* data) {
  return Tensor(dtype, std::move(shape), BufferPtr(), data);
}

Tensor Tensor::Scalar(const char* text) { return Scalar(std::string(text)); }

Tensor Tensor::Zeros(DataType dtype, const Shape& shape) {
  Tensor t(dtype, shape);
  if (IsPlain(dtype)) std::memset(t.raw(), 0, t.num_bytes());
  return t;
}

void Tensor::FailTypeCheck(DataType asked) const {
  std::fprintf(stderr, "Tensor: cannot access the elements of a %s as %s\n",
               initialized() ? Description().c_str() : "tensor without a value",
               DataTypeName(asked).c_str());
  std::abort();
}

void Tensor::FailCountCheck(int64_t expected) const {
  std::fprintf(stderr, "Tensor: a %s does not have %lld element%s\n", Description().c_str(),
               static_cast<long long>(expected), expected == 1 ? "" : "s");
  std::abort();
}

namespace {

void CheckIndex(const Tensor& t, int64_t i) {
  if (i >= 0 && i < t.num_elements()) [[likely]]
    return;
  std::fprintf(stderr, "Tensor: a %s has no element %lld\n", t.Description().c_str(),
               static_cast<long long>(i));
  std::abort();
}

}  // namespace

int64_t Tensor::IntAt(int64_t i) const {
  CheckIndex(*this, i);
  int64_t value = 0;
  const bool is_integer = DispatchType(
      dtype_, Integers{}, [&]<class T>() { value = static_cast<int64_t>(data<T>()[i]); });
  if (!is_integer) FailTypeCheck(DT_INT64);
  return value;
}

void Tensor::SetIntAt(int64_t i, int64_t value) {
  CheckIndex(*this, i);
  const bool is_integer =
      DispatchType(dtype_, Integers{}, [&]<class T>() { data<T>()[i] = static_cast<T>(value); });
  if (!is_integer) FailTypeCheck(DT_INT64);
}

Tensor Tensor::Reshaped(Shape shape) const {
  CheckCount(shape.num_elements());
  return Tensor(dtype_, std::move(shape), buffer_, data_);
}

Tensor Tensor::Slice(int64_t begin, int64_t end) const {
  if (rank() == 0 || begin < 0 || begin > end || end > dim(0)) [[unlikely]] {
    std::fprintf(stderr, "Tensor: a %s has no rows [%lld, %lld)\n", Description().c_str(),
                 static_cast<long long>(begin), static_cast<long long>(end));
    std::abort();
  }
  const size_t row_bytes = dim(0) == 0 ? 0 : num_bytes() / static_cast<size_t>(dim(0));
  Shape shape = shape_;
  shape.set_dim(0, end - begin);
  return Tensor(dtype_, std::move(shape), buffer_, static_cast<char*>(data_) + begin * row_bytes);
}

Tensor Tensor::Row(int64_t i) const {
  Tensor row = Slice(i, i + 1);
  row.shape_.RemoveDim(0);
  return row;
}

Tensor Tensor::BitcastTo(DataType dtype) const {
  if (!IsPlain(dtype) || !IsPlain(dtype_) || ElementSize(dtype) != ElementSize(dtype_))
      [[unlikely]] {
    std::fprintf(stderr, "Tensor: cannot bitcast a %s to %s\n", Description().c_str(),
                 DataTypeName(dtype).c_str());
    std::abort();
  }
  return Tensor(dtype, shape_, buffer_, data_);
}

Tensor Tensor::DeepCopy() const {
  if (!initialized()) return Tensor();
  assert(host_accessible());
  Tensor copy(dtype_, shape_);
  if (IsPlain(dtype_)) {
    if (num_elements_ > 0) std::memcpy(copy.data_, data_, num_bytes());
  } else {
    DispatchType(dtype_, List<std::string, ResourceHandle, Variant>{},
                 [&]<class T>() { std::copy_n(data<T>(), num_elements_, copy.data<T>()); });
  }
  return copy;
}

std::string Tensor::Description() const {
  return absl::StrCat(DataTypeName(dtype_), shape_.ToString());
}

bool IdenticalTensors(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.num_elements() == 0 || a.raw() == b.raw()) return true;
  if (IsPlain(a.dtype())) return std::memcmp(a.raw(), b.raw(), a.num_bytes()) == 0;
  bool identical = false;
  DispatchType(a.dtype(), List<std::string, ResourceHandle, Variant>{}, [&]<class T>() {
    identical = std::equal(a.data<T>(), a.data<T>() + a.num_elements(), b.data<T>(),
                           [](const T& x, const T& y) { return IdenticalElements(x, y); });
  });
  return identical;
}

}  // namespace weir
