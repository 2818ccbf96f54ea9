#include <algorithm>
#include <string>
#include <vector>

#include "weir/kernels/image/image.h"

// Converts between data formats such as NHWC: dimension numbers, and vectors with one entry per
// dimension.
namespace weir {

namespace {

// Returns the position in `to` of each letter of `from`. INVALID_ARGUMENT unless they consist of
// the same letters.
absl::StatusOr<std::vector<int>> Places(const std::string& from, const std::string& to) {
  for (const std::string* format : {&from, &to}) {
    if (format->size() != 4 && format->size() != 5) {
      return InvalidArgument(format == &from ? "Source" : "Destination",
                             " format must be of length 4 or 5, received ", *format);
    }
  }
  if (!std::is_permutation(from.begin(), from.end(), to.begin(), to.end()) ||
      std::any_of(from.begin(), from.end(),
                  [&](char letter) { return std::count(from.begin(), from.end(), letter) > 1; })) {
    return InvalidArgument("Destination and source format must determine a permutation, got ", from,
                           " and ", to);
  }
  std::vector<int> places;
  for (const char letter : from) places.push_back(static_cast<int>(to.find(letter)));
  return places;
}

// Elementwise. Out-of-range numbers wrap around, except that a number below -rank that is no
// multiple of the rank maps to the last dimension.
absl::StatusOr<Kernel> MakeDimMap(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(
      const std::vector<int> places,
      Places(init.attr<std::string>("src_format"), init.attr<std::string>("dst_format")));
  return Kernel([places](KernelContext& c) -> absl::Status {
    const Tensor& x = c.input(0);
    WEIR_ASSIGN_OR_RETURN(Tensor * y, c.AllocateOutput(0, x.shape()));
    const int64_t rank = static_cast<int64_t>(places.size());
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      ThrowIfCancelledAt(i);
      const int64_t dim = (x.IntAt(i) % rank + rank) % rank;
      const bool below = x.IntAt(i) < -rank && dim != 0;
      y->SetIntAt(i, places[below ? rank - 1 : dim]);
    }
    return absl::OkStatus();
  });
}

// Returns the spatial letters only.
std::string Spatial(const std::string& format, bool volumes) {
  std::string letters;
  for (const char letter : format) {
    if (letter == 'H' || letter == 'W' || (volumes && letter == 'D')) letters += letter;
  }
  return letters;
}

absl::Status Permute(KernelContext& c, const std::string& from, const std::string& to) {
  const Tensor& x = c.input(0);
  if (x.rank() != 1 && x.rank() != 2) {
    return InvalidArgument("input must be a vector or 2D tensor, but got shape ",
                           x.shape().ToString());
  }
  const int64_t rank = static_cast<int64_t>(from.size()), entries = x.dim(0);
  if (entries != rank && entries != rank - 2) {
    return InvalidArgument(x.rank() == 1 ? "1D input" : "First dimension of 2D input",
                           " must be of size ", rank - 2, " or ", rank, ", but got shape ",
                           x.shape().ToString());
  }
  if (x.rank() == 2 && x.dim(1) != 2) {
    return InvalidArgument("Second dimension of 2D input must be of size 2, but got shape ",
                           x.shape().ToString());
  }
  std::string source = from, target = to;
  if (entries != rank) {
    source = Spatial(from, rank == 5);
    target = Spatial(to, rank == 5);
    if (static_cast<int64_t>(source.size()) != entries) {
      return InvalidArgument("Format specifier must contain ", rank == 5 ? "D, " : "",
                             "H and W for 2D case");
    }
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * y, c.AllocateOutput(0, x.shape()));
  const int64_t width = x.rank() == 2 ? 2 : 1;
  for (int64_t i = 0; i < entries; ++i) {
    const int64_t place = static_cast<int64_t>(target.find(source[i]));
    for (int64_t k = 0; k < width; ++k) y->SetIntAt(place * width + k, x.IntAt(i * width + k));
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeVecPermute(const KernelInit& init) {
  const std::string from = init.attr<std::string>("src_format"),
                    to = init.attr<std::string>("dst_format");
  WEIR_RETURN_IF_ERROR(Places(from, to).status());
  return Kernel([from, to](KernelContext& c) { return Permute(c, from, to); });
}

}  // namespace

void AddDataFormatCpu(KernelRegistry* r) {
  r->Add("DataFormatDimMap", kCpu, MakeDimMap);
  r->Add("DataFormatVecPermute", kCpu, MakeVecPermute);
}

}  // namespace weir
