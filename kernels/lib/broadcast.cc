#include "weir/kernels/lib/broadcast.h"

#include <algorithm>
#include <cstring>

#include "weir/kernels/lib/strided_copy.h"

namespace weir {

Broadcast::Broadcast(const Shape& result, absl::Span<const Shape* const> arguments) {
  const int rank = result.rank(), count = static_cast<int>(arguments.size());
  strides_.resize(count);
  // From the innermost dimension outward. `running` holds each argument's stride for the next
  // dimension.
  absl::InlinedVector<int64_t, 3> running(count, 1);
  for (int i = 1; i <= rank; ++i) {
    const int64_t extent = result.dim(-i);
    if (extent == 1) continue;
    absl::InlinedVector<int64_t, 3> stride(count, 0);
    for (int k = 0; k < count; ++k) {
      const int64_t own = i <= arguments[k]->rank() ? arguments[k]->dim(-i) : 1;
      if (own != 1) {
        stride[k] = running[k];
        running[k] *= own;
      }
    }
    bool merges = !dims_.empty();
    for (int k = 0; merges && k < count; ++k) {
      const int64_t inner = strides_[k].back();
      merges =
          (stride[k] == 0) == (inner == 0) && (stride[k] == 0 || stride[k] == inner * dims_.back());
    }
    if (merges) {
      dims_.back() *= extent;
    } else {
      dims_.push_back(extent);
      for (int k = 0; k < count; ++k) strides_[k].push_back(stride[k]);
    }
  }
  std::reverse(dims_.begin(), dims_.end());
  for (int k = 0; k < count; ++k) {
    std::reverse(strides_[k].begin(), strides_[k].end());
    int64_t dense = 1;
    bool is_dense = true, is_constant = true;
    for (int i = static_cast<int>(dims_.size()) - 1; i >= 0; --i) {
      is_dense &= strides_[k][i] == dense;
      is_constant &= strides_[k][i] == 0;
      dense *= dims_[i];
    }
    kinds_.push_back(is_dense ? Kind::kDense : is_constant ? Kind::kConstant : Kind::kStrided);
  }
}

namespace {

// Runs along the innermost dimension, whose stride is 0 or 1, are mostly short. Short runs are
// copied by loops over elements, long ones by memcpy.
template <class U>
void GatherElements(const U* from, absl::Span<const int64_t> dims,
                    absl::Span<const int64_t> strides, int64_t begin, int64_t n, U* to) {
  constexpr int64_t kLong = 32;
  const int last = static_cast<int>(dims.size()) - 1;
  absl::InlinedVector<int64_t, 6> index(dims.size(), 0);
  int64_t rest = begin, offset = 0;
  for (int i = last; i >= 0 && rest > 0; --i) {
    if (rest <= UINT32_MAX && dims[i] <= UINT32_MAX) {  // 32-bit division: several times faster
      const uint32_t whole = static_cast<uint32_t>(rest), dim = static_cast<uint32_t>(dims[i]);
      rest = whole / dim;
      index[i] = whole % dim;
    } else {
      index[i] = rest % dims[i];
      rest /= dims[i];
    }
    offset += index[i] * strides[i];
  }
  while (n > 0) {
    const int64_t run = std::min(n, dims[last] - index[last]);
    const U* const x = from + offset;
    if (strides[last] == 0) {
      FillElements(to, x, sizeof(U), run);
    } else if (run >= kLong) {
      std::memcpy(to, x, run * sizeof(U));
    } else {
      for (int64_t i = 0; i < run; ++i) to[i] = x[i];
    }
    to += run;
    n -= run;
    index[last] += run;
    offset += run * strides[last];
    for (int i = last; i > 0 && index[i] == dims[i]; --i) {
      offset += strides[i - 1] - index[i] * strides[i];
      index[i] = 0;
      ++index[i - 1];
    }
  }
}

}  // namespace

void Broadcast::Gather(int argument, const void* data, size_t size, int64_t begin, int64_t n,
                       void* out) const {
  if (dims_.empty()) return FillElements(out, data, size, n);
  DispatchSize(size, [&]<class U>() {
    GatherElements(static_cast<const U*>(data), dims_, strides_[argument], begin, n,
                   static_cast<U*>(out));
  });
}

const void* Broadcast::Tile(int argument, const void* data, size_t size, int64_t begin, int64_t n,
                            void* buffer) const {
  switch (kinds_[argument]) {
    case Kind::kDense:
      return static_cast<const char*>(data) + begin * size;
    case Kind::kConstant:
      FillElements(buffer, data, size, n);
      return buffer;
    case Kind::kStrided:
      break;
  }
  Gather(argument, data, size, begin, n, buffer);
  return buffer;
}

}  // namespace weir
