#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "weir/kernels/arguments.h"
#include "weir/kernels/image.h"
#include "weir/kernels/registry.h"
#include "weir/kernels/strided_copy.h"
#include "weir/ops/window.h"

// Patches of images and of volumes, each laid out along the last dimension of the result.
namespace weir {

namespace {

using Ints = std::vector<int64_t>;

// Sizes, strides and rates along planes, rows and columns; images have one plane.
struct PatchOptions {
  Ints sizes, strides, rates;
  std::string padding;
};

// A list of one number for each dimension, cut to the spatial ones.
absl::StatusOr<Ints> ReadSpatial(const KernelInit& init, absl::string_view name, size_t rank) {
  Ints list = init.node.attr_or<Ints>(name, Ints(rank, 1));
  if (list.size() != rank) {
    return InvalidArgument(name, " must have ", rank, " values, but got: ", list.size());
  }
  if (list.front() != 1 || list.back() != 1) {
    return Unimplemented("Only support ", name, " across space.");
  }
  list = Ints(list.begin() + 1, list.end() - 1);
  if (*std::min_element(list.begin(), list.end()) < 1) return OutOfRange(name, " is out of range.");
  if (rank == 4) list.insert(list.begin(), 1);
  return list;
}

absl::Status Extract(KernelContext& c, const PatchOptions& o, int rank) {
  const Tensor& in = c.input(0);
  if (in.rank() != rank) {
    return InvalidArgument("input must be ", rank, "-dimensional, but has shape ",
                           in.shape().ToString());
  }
  const int64_t batch = in.dim(0), depth = in.dim(-1);
  Window w[3];
  Dims dims = {batch};
  double taps = 1;
  for (int i = 0; i < 3; ++i) {
    w[i].input = rank == 4 && i == 0 ? 1 : in.dim(rank - 4 + i);
    w[i].size = o.sizes[i];
    w[i].stride = o.strides[i];
    w[i].dilation = o.rates[i];
    WEIR_RETURN_IF_ERROR(Slide(o.padding, &w[i]));
    if (rank == 5 || i > 0) dims.push_back(w[i].output);
    taps *= static_cast<double>(o.sizes[i]);
  }
  if (taps > 1e15) return InvalidArgument("patches of ", taps, " elements are too big");
  const int64_t tap_count = o.sizes[0] * o.sizes[1] * o.sizes[2];
  WEIR_ASSIGN_OR_RETURN(const Shape tail, CheckedShape({tap_count, depth}));
  dims.push_back(tail.num_elements());
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  std::memset(out->raw(), 0, out->num_bytes());
  const size_t pixel = depth * ElementSize(in.dtype());
  const auto at = [&](int i, int64_t to, int64_t tap) {  // -1 in the padding
    const int64_t from = to * w[i].stride - w[i].pad_before + tap * w[i].dilation;
    return from < w[i].input ? from : -1;
  };
  const int64_t rows = batch * w[0].output * w[1].output;
  c.pool().ParallelFor(
      rows, static_cast<double>(w[2].output * tap_count * depth), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t y = row % w[1].output, z = row / w[1].output % w[0].output,
                        b = row / w[1].output / w[0].output;
          char* to = static_cast<char*>(ElementAt(*out, row * w[2].output * tap_count * depth));
          for (int64_t x = 0; x < w[2].output; ++x) {
            for (int64_t i = 0; i < o.sizes[0]; ++i) {
              for (int64_t j = 0; j < o.sizes[1]; ++j) {
                for (int64_t k = 0; k < o.sizes[2]; ++k, to += pixel) {
                  const int64_t pz = at(0, z, i), py = at(1, y, j), px = at(2, x, k);
                  if (pz < 0 || py < 0 || px < 0) continue;
                  const int64_t from = ((b * w[0].input + pz) * w[1].input + py) * w[2].input + px;
                  std::memcpy(to, ElementAt(in, from * depth), pixel);
                }
              }
            }
          }
        }
      });
  return absl::OkStatus();
}

template <int rank>
absl::StatusOr<Kernel> MakeExtract(const KernelInit& init) {
  PatchOptions o;
  WEIR_ASSIGN_OR_RETURN(o.sizes, ReadSpatial(init, "ksizes", rank));
  WEIR_ASSIGN_OR_RETURN(o.strides, ReadSpatial(init, "strides", rank));
  WEIR_ASSIGN_OR_RETURN(o.rates, ReadSpatial(init, "rates", rank));
  o.padding = init.attr<std::string>("padding");
  return Kernel([o](KernelContext& c) { return Extract(c, o, rank); });
}

}  // namespace

void AddPatchesCpu(KernelRegistry* r) {
  r->Add("ExtractImagePatches", kCpu, MakeExtract<4>);
  r->Add("ExtractVolumePatches", kCpu, MakeExtract<5>);
  AddDilationCpu(r);
  AddFractionalPoolCpu(r);
  AddDataFormatCpu(r);
}

}  // namespace weir
