#include <algorithm>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/quantize/uniform_product.h"

// Products of uniformly quantized matrices.
namespace weir {

namespace {

absl::Status CheckMatrices(const Shape& x, const Shape& y) {
  if (x.rank() != 2)
    return InvalidArgument("lhs rank must be 2, but given lhs shape ", x.ToString());
  if (y.rank() != 2)
    return InvalidArgument("rhs rank must be 2, but given rhs shape ", y.ToString());
  if (x.dim(1) == y.dim(0)) return absl::OkStatus();
  return InvalidArgument("lhs.dim_size(1) and rhs.dim_size(0) must be equal, but given lhs shape ",
                         x.ToString(), " and rhs shape ", y.ToString());
}

void Multiply(KernelContext& c, const UniformLeft& x, const Tensor& y, const UniformParams& right,
              const UniformResult& result, Tensor* out) {
  const int64_t terms = y.dim(0), n = y.dim(1);
  c.pool().ParallelFor(
      out->dim(0), static_cast<double>(terms * n), [&](int64_t begin, int64_t end) {
        std::vector<uint32_t> sums(n);
        for (int64_t i = begin; i < end; ++i) {
          std::fill(sums.begin(), sums.end(), 0);
          const auto zero = static_cast<uint32_t>(x.params.zero_point(i));
          for (int64_t k = 0; k < terms; ++k) {
            ThrowIfCancelledAt(k);
            const int8_t factor = x.data[i * terms + k];
            const int8_t* const row = UniformIntegers(y) + k * n;
            for (int64_t j = 0; j < n; ++j)
              sums[j] +=
                  UniformProduct(factor, zero, row[j], static_cast<uint32_t>(right.zero_point(j)));
          }
          for (int64_t j = 0; j < n; ++j)
            result.Write(static_cast<int32_t>(sums[j]), i, j, out->raw(), i * n + j);
        }
      });
}

absl::Status CheckAxis(const KernelInit& init, const char* name) {
  const auto axis = init.attr<int64_t>(name);
  if (axis == 1 || axis == -1) return absl::OkStatus();
  return InvalidArgument(name, " Attr must be 1 (per-channel) or -1 (per-tensor).");
}

// The axis of scales that may be a vector: they decide, not the attribute, as in TensorFlow.
int64_t AxisOf(const Tensor& scales) { return scales.rank() == 0 ? -1 : 1; }

absl::StatusOr<Kernel> MakeDot(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const UniformRange range, UniformRange::Read(init.node, "output_"));
  if (init.attr<int64_t>("lhs_quantization_axis") != -1)
    return InvalidArgument("lhs_quantization_axis Attr must be -1 (per-tensor).");
  WEIR_RETURN_IF_ERROR(CheckAxis(init, "rhs_quantization_axis"));
  WEIR_RETURN_IF_ERROR(CheckAxis(init, "output_quantization_axis"));
  return Kernel([range](KernelContext& c) -> absl::Status {
    const Tensor &x = c.input(0), &y = c.input(1);
    for (const int i : {2, 4, 6}) WEIR_RETURN_IF_ERROR(CheckScales(c, i));
    WEIR_RETURN_IF_ERROR(CheckMatrices(x.shape(), y.shape()));
    WEIR_RETURN_IF_ERROR(CheckUniformLeft(c));
    UniformLeft left{.data = UniformIntegers(x)};
    WEIR_ASSIGN_OR_RETURN(left.params, ReadUniformParams(c, 2, x.shape(), -1));
    WEIR_ASSIGN_OR_RETURN(const UniformParams right,
                          ReadUniformParams(c, 4, y.shape(), AxisOf(c.input(4))));
    const Shape shape({x.dim(0), y.dim(1)});
    WEIR_ASSIGN_OR_RETURN(const UniformResult result,
                          QuantizedUniformResult(c, range, left.params, right, shape,
                                                 AxisOf(c.input(6)), shape.dim(1)));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
    Multiply(c, left, y, right, result, out);
    return absl::OkStatus();
  });
}

absl::StatusOr<Kernel> MakeHybridDot(const KernelInit& init) {
  WEIR_RETURN_IF_ERROR(CheckAxis(init, "rhs_quantization_axis"));
  return Kernel([](KernelContext& c) -> absl::Status {
    const Tensor &x = c.input(0), &y = c.input(1);
    WEIR_RETURN_IF_ERROR(CheckMatrices(x.shape(), y.shape()));
    WEIR_ASSIGN_OR_RETURN(const UniformParams right,
                          ReadUniformParams(c, 2, y.shape(), AxisOf(c.input(2))));
    WEIR_RETURN_IF_ERROR(CheckScales(c, 2));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({x.dim(0), y.dim(1)})));
    WEIR_ASSIGN_OR_RETURN(const UniformLeft left,
                          QuantizeUniformRows(c, x.data<float>(), x.dim(0), x.dim(1)));
    Multiply(c, left, y, right, {.left = left.params, .right = right}, out);
    return absl::OkStatus();
  });
}

}  // namespace

void AddUniformDotCpu(KernelRegistry* r) {
  const TypeConstraints quantized = {{"Tin", DT_QINT8}, {"Tout", DT_QINT32}};
  const TypeConstraints hybrid = {{"Tlhs", DT_FLOAT}, {"Trhs", DT_QINT8}, {"Tout", DT_FLOAT}};
  r->Add("UniformQuantizedDot", kCpu, quantized, MakeDot);
  r->Add("UniformQuantizedDotHybrid", kCpu, hybrid, MakeHybridDot);
}

}  // namespace weir
