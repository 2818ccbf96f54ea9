#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "weir/kernels/image/image.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/ops/lib/window.h"

// Extracts patches of images and volumes; each patch is a row in the last dimension of the result.
namespace weir {

namespace {

using Ints = std::vector<int64_t>;

// Sizes, strides and rates along planes, rows and columns; images have one plane.
struct PatchOptions {
  Ints sizes, strides, rates;
  std::string padding;
};

// Returns the spatial entries of a list with one number per dimension.
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

// The positions of the patches, and the shape of the result.
struct Patches {
  Window windows[3];
  int64_t batch = 0, depth = 0, taps = 0;
  Shape shape;

  static absl::StatusOr<Patches> Make(const PatchOptions& o, const Tensor& in, int rank) {
    Patches p;
    p.batch = in.dim(0);
    p.depth = in.dim(-1);
    Dims dims = {p.batch};
    for (int i = 0; i < 3; ++i) {
      Window& w = p.windows[i];
      w.input = rank == 4 && i == 0 ? 1 : in.dim(rank - 4 + i);
      w.size = o.sizes[i];
      w.stride = o.strides[i];
      w.dilation = o.rates[i];
      WEIR_RETURN_IF_ERROR(Slide(o.padding, &w));
      // Volumes are centered under their patches even if these leave gaps (negative padding).
      if (rank == 5 && o.padding == "SAME") {
        w.pad_before = ((w.output - 1) * w.stride + w.size - w.input) / 2;
      }
      if (rank == 5 || i > 0) dims.push_back(w.output);
    }
    WEIR_ASSIGN_OR_RETURN(const Shape taps, CheckedShape(o.sizes));
    p.taps = taps.num_elements();
    WEIR_ASSIGN_OR_RETURN(const Shape values, CheckedShape({p.taps, p.depth}));
    dims.push_back(values.num_elements());
    WEIR_ASSIGN_OR_RETURN(p.shape, CheckedShape(dims));
    return p;
  }

  // Returns the coordinate of a patch's tap along a side; -1 in the padding.
  int64_t At(int side, int64_t patch, int64_t tap) const {
    const Window& w = windows[side];
    const int64_t at = patch * w.stride - w.pad_before + tap * w.dilation;
    return at < w.input ? at : -1;
  }

  // Copies the patch at (z, y, x) of image b; skips the padding.
  void Copy(const Tensor& in, int64_t b, int64_t z, int64_t y, int64_t x, char* to) const {
    const size_t pixel = depth * ElementSize(in.dtype());
    for (int64_t i = 0; i < windows[0].size; ++i) {
      for (int64_t j = 0; j < windows[1].size; ++j) {
        for (int64_t k = 0; k < windows[2].size; ++k, to += pixel) {
          const int64_t pz = At(0, z, i), py = At(1, y, j), px = At(2, x, k);
          if (pz < 0 || py < 0 || px < 0) continue;
          const int64_t from =
              ((b * windows[0].input + pz) * windows[1].input + py) * windows[2].input + px;
          std::memcpy(to, ElementAt(in, from * depth), pixel);
        }
      }
    }
  }
};

absl::Status Extract(KernelContext& c, const PatchOptions& o, int rank) {
  const Tensor& in = c.input(0);
  if (in.rank() != rank) {
    return InvalidArgument("input must be ", rank, "-dimensional, but has shape ",
                           in.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const Patches p, Patches::Make(o, in, rank));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, p.shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  std::memset(out->raw(), 0, out->num_bytes());
  const int64_t planes = p.windows[0].output, rows = p.windows[1].output,
                columns = p.windows[2].output, size = p.taps * p.depth;
  c.pool().ParallelFor(p.batch * planes * rows, static_cast<double>(columns * size),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t row = begin; row < end; ++row) {
                           for (int64_t x = 0; x < columns; ++x) {
                             p.Copy(
                                 in, row / rows / planes, row / rows % planes, row % rows, x,
                                 static_cast<char*>(ElementAt(*out, (row * columns + x) * size)));
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
