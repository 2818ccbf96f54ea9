#include "weir/serving/batch_tensors.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace weir::serving {

namespace {

// Returns the smallest shape of `rows` rows that has room for the ranges of a tensor.
Shape JoinedShape(absl::Span<const RowRange> ranges, const std::string& name, int64_t rows) {
  Shape joined = ranges[0].tensors->at(name).shape();
  for (const RowRange& range : ranges.subspan(1)) {
    const Shape& shape = range.tensors->at(name).shape();
    for (int i = 1; i < joined.rank(); ++i)
      joined.set_dim(i, std::max(joined.dim(i), shape.dim(i)));
  }
  joined.set_dim(0, rows);
  return joined;
}

int64_t RowElements(const Shape& shape) {
  int64_t count = 1;
  for (int i = 1; i < shape.rank(); ++i) count *= shape.dim(i);
  return count;
}

// Copies elements [begin, begin + count) of `from`, strings or plain, to element `at` of `to`, and
// those that follow.
void CopyElements(const Tensor& from, int64_t begin, int64_t count, Tensor& to, int64_t at) {
  if (from.dtype() == DT_STRING) {
    std::copy_n(from.data<std::string>() + begin, count, to.data<std::string>() + at);
  } else if (count > 0) {
    const size_t size = ElementSize(to.dtype());
    std::memcpy(static_cast<char*>(to.raw()) + static_cast<size_t>(at) * size,
                static_cast<const char*>(from.raw()) + static_cast<size_t>(begin) * size,
                static_cast<size_t>(count) * size);
  }
}

// Sets `count` elements from `begin` on to copies of the first `unit` elements there.
void Repeat(Tensor& to, int64_t begin, int64_t unit, int64_t count) {
  for (int64_t done = unit; done < count;) {
    const int64_t n = std::min(done, count - done);
    CopyElements(to, begin, n, to, begin + done);
    done += n;
  }
}

// Copies rows [begin, end) of `from` into larger rows of `to`, from row `at` on.
void CopyPadded(const Tensor& from, int64_t begin, int64_t end, Tensor& to, int64_t at) {
  const int64_t first = at * RowElements(to.shape());
  const int64_t count = (end - begin) * RowElements(to.shape());
  if (count == 0) return;
  const Tensor zero = from.num_elements() == 0 ? Tensor::Zeros(to.dtype(), Shape()) : Tensor();
  CopyElements(from.num_elements() == 0 ? zero : from, 0, 1, to, first);
  Repeat(to, first, 1, count);
  if (from.num_elements() == 0) return;
  const int last = from.rank() - 1;
  const int64_t run = from.dim(last);
  const int64_t num_runs = (end - begin) * RowElements(from.shape()) / run;
  std::vector<int64_t> index(static_cast<size_t>(last), 0);  // of the run
  index[0] = at;
  for (int64_t r = 0; r < num_runs; ++r) {
    int64_t offset = 0;
    for (int i = 0; i < last; ++i) offset = offset * to.dim(i) + index[static_cast<size_t>(i)];
    CopyElements(from, begin * RowElements(from.shape()) + r * run, run, to, offset * to.dim(last));
    for (int i = last - 1; i >= 0 && ++index[static_cast<size_t>(i)] == from.dim(i) && i > 0; --i)
      index[static_cast<size_t>(i)] = 0;
  }
}

}  // namespace

JoinedBytes BytesOf(absl::Span<const RowRange> ranges, int64_t rows) {
  JoinedBytes bytes;
  for (const auto& [name, tensor] : *ranges[0].tensors) {
    const double size = static_cast<double>(ElementSize(tensor.dtype()));
    double row = size;
    const Shape joined = JoinedShape(ranges, name, rows);
    for (int i = 1; i < joined.rank(); ++i) row *= static_cast<double>(joined.dim(i));
    bytes.joined += row * static_cast<double>(rows);
    for (const RowRange& range : ranges) {
      bytes.separate += size * static_cast<double>((range.end - range.begin) *
                                                   RowElements(range.tensors->at(name).shape()));
    }
  }
  return bytes;
}

absl::StatusOr<NamedTensors> JoinRows(absl::Span<const RowRange> ranges, int64_t rows) {
  NamedTensors result;
  for (const auto& [name, tensor] : *ranges[0].tensors) {
    const Shape shape = JoinedShape(ranges, name, rows);
    WEIR_ASSIGN_OR_RETURN(Tensor to, Tensor::Allocate(HostAllocator(), tensor.dtype(), shape));
    const int64_t row = RowElements(shape);
    int64_t at = 0;
    for (const RowRange& range : ranges) {
      const Tensor& from = range.tensors->at(name);
      if (RowElements(from.shape()) != row) {
        CopyPadded(from, range.begin, range.end, to, at);
      } else {
        CopyElements(from, range.begin * row, (range.end - range.begin) * row, to, at * row);
      }
      at += range.end - range.begin;
    }
    if (at > 0 && row > 0) Repeat(to, (at - 1) * row, row, (rows - at + 1) * row);
    result.emplace(name, std::move(to));
  }
  return result;
}

NamedTensors SliceRows(const NamedTensors& tensors, int64_t begin, int64_t end) {
  NamedTensors rows;
  for (const auto& [name, tensor] : tensors) rows.emplace(name, tensor.Slice(begin, end));
  return rows;
}

}  // namespace weir::serving
