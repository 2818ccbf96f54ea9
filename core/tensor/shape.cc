#include "weir/core/tensor/shape.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace weir {

Shape::Shape(const Shape& other) = default;
Shape& Shape::operator=(const Shape& other) = default;
Shape::Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
Shape::Shape(absl::Span<const int64_t> dims) : dims_(dims.begin(), dims.end()) {}

Shape Shape::UnknownRank() {
  Shape s;
  s.has_rank_ = false;
  return s;
}

absl::StatusOr<Shape> Shape::Make(absl::Span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("Shape has rank ", dims.size(), "; at most ", kMaxRank, " is supported");
  }
  int64_t count = 1;
  bool has_zero = false;
  for (const int64_t d : dims) {
    if (d < kUnknown)
      return InvalidArgument("Shape [", absl::StrJoin(dims, ","), "] has a negative dimension");
    if (d == 0) has_zero = true;
    int64_t product = count;
    if (d > 0 && !has_zero && __builtin_mul_overflow(count, d, &product)) {
      return InvalidArgument("Shape [", absl::StrJoin(dims, ","),
                             "] has too many elements: Encountered overflow when multiplying ",
                             count, " with ", d);
    }
    count = product;
  }
  return Shape(dims);
}

bool Shape::IsFullyDefined() const {
  return has_rank_ && std::none_of(dims_.begin(), dims_.end(), [](int64_t d) { return d < 0; });
}

int64_t Shape::num_elements() const {
  if (!IsFullyDefined()) return kUnknown;
  if (std::find(dims_.begin(), dims_.end(), 0) != dims_.end()) return 0;
  int64_t n = 1;
  for (const int64_t d : dims_) {
    if (__builtin_mul_overflow(n, d, &n)) return INT64_MAX;
  }
  return n;
}

bool Shape::IsCompatibleWith(const Shape& other) const { return MergeWith(other).ok(); }

absl::StatusOr<Shape> Shape::MergeWith(const Shape& other) const {
  if (!has_rank_) return other;
  if (!other.has_rank_) return *this;
  if (rank() != other.rank()) {
    return InvalidArgument("Shapes must be equal rank, but are ", rank(), " and ", other.rank(),
                           ". Shapes are ", ToString(), " and ", other.ToString(), ".");
  }
  Shape merged = *this;
  for (int i = 0; i < rank(); ++i) {
    if (dims_[i] < 0) {
      merged.dims_[i] = other.dims_[i];
    } else if (other.dims_[i] >= 0 && other.dims_[i] != dims_[i]) {
      return InvalidArgument("Dimension ", i, " in both shapes must be equal, but are ", dims_[i],
                             " and ", other.dims_[i], ". Shapes are ", ToString(), " and ",
                             other.ToString(), ".");
    }
  }
  return merged;
}

void Shape::InsertDim(int i, int64_t extent) { dims_.insert(dims_.begin() + i, extent); }
void Shape::RemoveDim(int i) { dims_.erase(dims_.begin() + i); }

Shape Shape::Sub(int begin, int end) const {
  if (!has_rank_) return UnknownRank();
  const auto clamp = [this](int i) { return std::clamp(i < 0 ? i + rank() : i, 0, rank()); };
  const int b = clamp(begin), e = std::max(b, clamp(end));
  return Shape(absl::MakeConstSpan(dims_).subspan(b, e - b));
}

Shape Shape::Concatenate(const Shape& tail) const {
  if (!has_rank_ || !tail.has_rank_) return UnknownRank();
  Shape out = *this;
  out.dims_.insert(out.dims_.end(), tail.dims_.begin(), tail.dims_.end());
  return out;
}

std::string Shape::ToString() const {
  if (!has_rank_) return "<unknown>";
  return absl::StrCat("[",
                      absl::StrJoin(dims_, ",",
                                    [](std::string* out, int64_t d) {
                                      d < 0 ? absl::StrAppend(out, "?") : absl::StrAppend(out, d);
                                    }),
                      "]");
}

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return Shape::UnknownRank();
  const int rank = std::max(a.rank(), b.rank());
  absl::InlinedVector<int64_t, 6> dims(rank);
  for (int i = 1; i <= rank; ++i) {
    const int64_t x = i <= a.rank() ? a.dim(-i) : 1;
    const int64_t y = i <= b.rank() ? b.dim(-i) : 1;
    int64_t& out = dims[rank - i];
    if (x == y || y == 1) {
      out = x;
    } else if (x == 1) {
      out = y;
    } else if (x < 0 || y < 0) {
      out = std::max(x, y);  // one is unknown and must be 1 or equal to the other
    } else {
      return InvalidArgument("Incompatible shapes: ", a.ToString(), " vs. ", b.ToString());
    }
  }
  return Shape(dims);
}

}  // namespace weir
