#include <cmath>

#include "weir/kernels/array/fill_shapes.h"
#include "weir/kernels/containers/stored_values.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Fills tensors with one value, and checks values for NaN and infinity.
namespace weir {

namespace {

absl::Status Fill(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeOfFill(c));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  FillElements(c, out->dtype(), c.input(1).raw(), out->raw(), out->num_elements());
  return absl::OkStatus();
}

absl::Status ZerosLike(KernelContext& c) {
  if (c.input(0).dtype() == DT_RESOURCE) return InvalidArgument("type resource has no zero value");
  if (c.input(0).dtype() == DT_VARIANT) {
    WEIR_ASSIGN_OR_RETURN(Tensor zeros, ZerosOf(c.pool(), c.input(0)));
    c.SetOutput(0, std::move(zeros));
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, c.input(0).shape()));
  ClearElements(c, *out);
  return absl::OkStatus();
}

using OneTypes = JoinLists<Numbers, List<bool>>;

template <class T>
absl::Status OnesLike(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, c.input(0).shape()));
  const T one = T(1);
  FillElements(c, out->dtype(), &one, out->raw(), out->num_elements());
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeOnesLike(const KernelInit& init) {
  Kernel kernel;
  DispatchType(init.attr<DataType>("T"), OneTypes{},
               [&]<class T>() { kernel = Kernel(&OnesLike<T>); });
  return kernel;
}

// Zero-initializes the elements regardless of `init`, so that no run exposes what another one left
// in memory.
absl::Status Empty(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(0), 1, "shape"));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(ReadInts(c.input(0))));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  ClearElements(c, *out);
  return absl::OkStatus();
}

// ---- CheckNumerics

enum Badness { kNan = 1, kPositiveInf = 2, kNegativeInf = 4 };

template <class T>
int FindBad(const T* x, int64_t n) {
  int bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(x[i]);
    if (std::isfinite(v)) continue;
    bad |= std::isnan(v) ? kNan : v > 0 ? kPositiveInf : kNegativeInf;
  }
  return bad;
}

std::string Describe(int bad, bool with_sign) {
  if (!with_sign) return bad == kNan ? "NaN" : (bad & kNan) != 0 ? "Inf and NaN" : "Inf";
  std::string out;
  const auto add = [&](const char* text) {
    absl::StrAppend(&out, out.empty() ? "" : " and ", text);
  };
  if ((bad & kNegativeInf) != 0) add("-Inf");
  if ((bad & kPositiveInf) != 0) add("+Inf");
  if ((bad & kNan) != 0) add("NaN");
  return out;
}

absl::StatusOr<Kernel> MakeCheckNumerics(const KernelInit& init) {
  const std::string message = init.attr<std::string>("message");
  const bool with_sign = init.node.op_name() == "CheckNumericsV2";
  return Kernel([message, with_sign](KernelContext& c) -> absl::Status {
    const Tensor& in = c.input(0);
    std::atomic<int> bad{0};
    DispatchType(in.dtype(), Floats{}, [&]<class T>() {
      c.pool().ParallelFor(in.num_elements(), 0.5, [&](int64_t begin, int64_t end) {
        if (const int found = FindBad(in.data<T>() + begin, end - begin); found != 0) bad |= found;
      });
    });
    if (bad != 0)
      return InvalidArgument(message, " : Tensor had ", Describe(bad, with_sign), " values");
    c.SetOutput(0, in);
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<Shape> ShapeOfFill(const KernelContext& c) {
  const Tensor &dims = c.input(0), &value = c.input(1);
  if (dims.rank() > 1) {
    return InvalidArgument("dims must represent a vector, got shape ", dims.shape().ToString());
  }
  if (value.rank() > 1 || value.num_elements() != 1)
    return InvalidArgument("value must represent a scalar, got shape ", value.shape().ToString());
  return CheckedShape(ReadInts(dims));
}

void AddFillCpu(KernelRegistry* r) {
  r->Add("Fill", kCpu, Fill).HostArgs({"dims"});
  r->Add("ZerosLike", kCpu, ZerosLike).InPlace({0});
  r->Add("OnesLike", kCpu, MakeOnesLike).InPlace({0});
  r->Add("Empty", kCpu, Empty).HostArgs({"shape"});
  for (const char* op : {"CheckNumerics", "CheckNumericsV2"})
    r->Add(op, kCpu, MakeCheckNumerics).Aliases({0});
}

}  // namespace weir
