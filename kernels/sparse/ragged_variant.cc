#include <algorithm>

#include "weir/core/tensor/variant.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/sparse/ragged.h"
#include "weir/kernels/sparse/sparse_value.h"

// Ragged tensors in the elements of variant tensors, whole or row by row, as map functions and
// datasets use them.
namespace weir {

namespace {

constexpr char kTypeName[] = "RaggedTensorVariant";

// The splits of each ragged dimension, outermost first, and the values.
struct RaggedValue {
  Tensors splits;
  Tensor values;
};

// The variant must outlive the step, so it owns its tensors.
absl::StatusOr<Variant> Encode(const KernelContext& c, const RaggedValue& ragged) {
  Tensors parts = ragged.splits;
  parts.push_back(ragged.values);
  for (Tensor& part : parts) {
    WEIR_ASSIGN_OR_RETURN(part, c.Own(part));
  }
  return Variant{.type_name = kTypeName, .metadata = "", .value = std::move(parts)};
}

// Copies rows [begin, end) of a tensor.
absl::StatusOr<Tensor> CopyRows(const Tensor& t, int64_t begin, int64_t end) {
  Shape shape = t.shape();
  shape.set_dim(0, end - begin);
  WEIR_ASSIGN_OR_RETURN(Tensor rows, Tensor::Allocate(HostAllocator(), t.dtype(), shape));
  const int64_t width = shape.Sub(1).num_elements();
  CopyElements(t.dtype(), ElementAt(t, begin * width), rows.raw(), (end - begin) * width);
  return rows;
}

absl::Status CheckSplits(const Tensor& splits, int64_t rows) {
  constexpr char kPrefix[] = "Invalid ragged splits: ";
  if (splits.rank() != 1) {
    return InvalidArgument(kPrefix, "ragged splits must be rank 1 but is rank ", splits.rank());
  }
  const int64_t n = splits.num_elements();
  if (n == 0)
    return InvalidArgument(kPrefix, "ragged splits must have at least one splits, but is empty");
  if (splits.IntAt(0) != 0) {
    return InvalidArgument(kPrefix, "first element of ragged splits must be 0 but is ",
                           splits.IntAt(0));
  }
  for (int64_t i = 1; i < n; ++i) {
    if (splits.IntAt(i) >= splits.IntAt(i - 1)) continue;
    return InvalidArgument(
        kPrefix, "ragged splits must be monotonically increasing, but ragged_splits[", i,
        "]=", splits.IntAt(i), " is smaller than row_splits[", i - 1, "]=", splits.IntAt(i - 1));
  }
  if (splits.IntAt(n - 1) == rows) return absl::OkStatus();
  return InvalidArgument(kPrefix,
                         "last element of ragged splits must be the number of ragged values(", rows,
                         ") but is ", splits.IntAt(n - 1));
}

absl::Status CheckRagged(const RaggedValue& x) {
  const size_t depth = x.splits.size();
  for (size_t k = depth; k-- > 0;) {
    if (k + 1 == depth && x.values.rank() == 0)
      return InvalidArgument(
          "Requires flat_values to have rank>=1 when nested_row_splits is not "
          "empty, but is 0.");
    const int64_t rows = k + 1 == depth ? x.values.dim(0) : x.splits[k + 1].num_elements() - 1;
    WEIR_RETURN_IF_ERROR(CheckSplits(x.splits[k], rows));
  }
  return absl::OkStatus();
}

// Returns row r of the outermost dimension, which has one ragged dimension less.
absl::StatusOr<RaggedValue> RowOf(const RaggedValue& x, int64_t r) {
  RaggedValue row;
  int64_t begin = x.splits[0].IntAt(r), end = x.splits[0].IntAt(r + 1);
  for (size_t k = 1; k < x.splits.size(); ++k) {
    WEIR_ASSIGN_OR_RETURN(Tensor splits, CopyRows(x.splits[k], begin, end + 1));
    begin = x.splits[k].IntAt(begin);
    end = x.splits[k].IntAt(end);
    for (int64_t i = 0; i < splits.num_elements(); ++i) splits.SetIntAt(i, splits.IntAt(i) - begin);
    row.splits.push_back(std::move(splits));
  }
  WEIR_ASSIGN_OR_RETURN(row.values, CopyRows(x.values, begin, end));
  return row;
}

// Writes a tensor of variants: one row each, or (not `batched`) a scalar that holds all rows.
absl::Status ToVariant(KernelContext& c, bool batched) {
  const int depth = c.num_inputs() - 1;
  RaggedValue x{.values = c.input(depth)};
  for (int k = 0; k < depth; ++k) x.splits.push_back(c.input(k));
  WEIR_RETURN_IF_ERROR(CheckRagged(x));
  if (!batched) {
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape()));
    WEIR_ASSIGN_OR_RETURN(*out->data<Variant>(), Encode(c, x));
    return absl::OkStatus();
  }
  if (depth == 0 && x.values.rank() == 0) return InvalidArgument("Can't unbatch rank-0 tensor.");
  const int64_t rows = depth == 0 ? x.values.dim(0) : x.splits[0].num_elements() - 1;
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({rows})));
  for (int64_t r = 0; r < rows; ++r) {
    ThrowIfCancelledAt(r);
    RaggedValue row;
    if (depth == 0) {
      WEIR_ASSIGN_OR_RETURN(const Tensor one, CopyRows(x.values, r, r + 1));
      row.values = one.Reshaped(x.values.shape().Sub(1));
    } else {
      WEIR_ASSIGN_OR_RETURN(row, RowOf(x, r));
    }
    WEIR_ASSIGN_OR_RETURN(out->data<Variant>()[r], Encode(c, row));
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeToVariant(const KernelInit& init) {
  const bool batched = init.attr<bool>("batched_input");
  return Kernel([batched](KernelContext& c) -> absl::Status { return ToVariant(c, batched); });
}

// ---- decoding

struct Expected {
  DataType values, splits;
  int64_t depth;
};

absl::StatusOr<RaggedValue> Decode(const Variant& variant, int64_t i) {
  const Tensors* const parts = std::any_cast<Tensors>(&variant.value);
  if (variant.type_name != kTypeName || parts == nullptr || parts->empty()) {
    return InvalidArgument("Input Variant element at index ", i,
                           " doesn't hold a RaggedTensorVariant: ", variant.type_name);
  }
  RaggedValue x{.splits = *parts, .values = parts->back()};
  x.splits.pop_back();
  return x;
}

absl::Status CheckExpected(const RaggedValue& x, const Expected& e, int64_t i) {
  if (static_cast<int64_t>(x.splits.size()) != e.depth) {
    return InvalidArgument("Encoded input RaggedTensorVariant has ragged_rank=", x.splits.size(),
                           ".  Expected ragged_rank=", e.depth, ".");
  }
  if (x.values.dtype() != e.values) {
    return InvalidArgument("Expected values Tensor dtype: ", DataTypeName(e.values),
                           ", found: ", DataTypeName(x.values.dtype()));
  }
  if (x.values.rank() < 1) {
    return InvalidArgument("Ragged values must have rank >= 1; encoded scalar element at index ", i,
                           " has values Tensor: ", x.values.Description());
  }
  for (const Tensor& splits : x.splits) {
    if (splits.dtype() != e.splits) {
      return InvalidArgument("Expected row_splits Tensor dtype: ", DataTypeName(e.splits),
                             ", found: ", DataTypeName(splits.dtype()));
    }
  }
  return CheckRagged(x);  // the variant may come from a file
}

absl::StatusOr<std::vector<RaggedValue>> DecodeAll(const Tensor& encoded, const Expected& e) {
  std::vector<RaggedValue> all;
  for (int64_t i = 0; i < encoded.num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    WEIR_ASSIGN_OR_RETURN(RaggedValue x, Decode(encoded.data<Variant>()[i], i));
    WEIR_RETURN_IF_ERROR(CheckExpected(x, e, i));
    if (!all.empty() && all[0].values.shape().Sub(1) != x.values.shape().Sub(1)) {
      return InvalidArgument("All flat_values must have compatible shapes.  Shape at index 0: ",
                             all[0].values.shape().Sub(1).ToString(), ".  Shape at index ", i, ": ",
                             x.values.shape().Sub(1).ToString());
    }
    all.push_back(std::move(x));
  }
  return all;
}

// Writes the splits of `count` rows of sizes size(i), beginning at 0.
template <class Size>
absl::Status OutputSplits(KernelContext& c, int output, int64_t count, Size size) {
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(output, Shape({count + 1})));
  int64_t end = 0;
  out->SetIntAt(0, 0);
  for (int64_t i = 0; i < count; ++i) out->SetIntAt(i + 1, end += size(i));
  return absl::OkStatus();
}

// Writes the concatenation of tensors that differ in the first extent only. Without tensors it
// writes an empty vector.
absl::Status OutputConcat(KernelContext& c, int output, const std::vector<RaggedValue>& parts) {
  Shape shape = parts.empty() ? Shape({0}) : parts[0].values.shape();
  int64_t rows = 0;
  for (const RaggedValue& part : parts) rows += part.values.dim(0);
  shape.set_dim(0, rows);
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(output, shape));
  int64_t at = 0;
  for (const RaggedValue& part : parts) {
    const int64_t n = part.values.num_elements();
    CopyElements(out->dtype(), part.values.raw(), ElementAt(*out, at), n);
    at += n;
  }
  return absl::OkStatus();
}

// Stacks the ragged tensors of a tensor of variants, whose dimensions become ragged ones.
absl::Status Stack(KernelContext& c, const std::vector<RaggedValue>& parts, int64_t inner_depth) {
  const Shape& outer = c.input(0).shape();
  int64_t rows = 1;
  for (int d = 0; d + 1 < outer.rank(); ++d) {
    rows *= outer.dim(d);
    WEIR_RETURN_IF_ERROR(OutputSplits(c, d, rows, [&](int64_t) { return outer.dim(d + 1); }));
  }
  int output = outer.rank() - 1;
  const int64_t count = static_cast<int64_t>(parts.size());
  WEIR_RETURN_IF_ERROR(OutputSplits(c, output++, count, [&](int64_t i) {
    return inner_depth > 0 ? parts[i].splits[0].num_elements() - 1 : parts[i].values.dim(0);
  }));
  for (int64_t k = 0; k < inner_depth; ++k) {
    std::vector<int64_t> sizes;
    for (const RaggedValue& part : parts) {
      for (int64_t i = 1; i < part.splits[k].num_elements(); ++i)
        sizes.push_back(part.splits[k].IntAt(i) - part.splits[k].IntAt(i - 1));
    }
    WEIR_RETURN_IF_ERROR(OutputSplits(c, output++, static_cast<int64_t>(sizes.size()),
                                      [&](int64_t i) { return sizes[i]; }));
  }
  return OutputConcat(c, output, parts);
}

absl::Status FromVariant(KernelContext& c, Expected e) {
  const Tensor& encoded = c.input(0);
  const int64_t out_depth = c.num_outputs() - 1;
  if (e.depth == -1) {
    e.depth = out_depth - encoded.rank();
    if (e.depth < 0) {
      return InvalidArgument(
          "Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be >= 0, "
          "found output_ragged_rank: ",
          out_depth, ", encoded_variant.dims(): ", encoded.rank(),
          ", inferred input_ragged_rank: ", e.depth);
    }
  }
  if (out_depth != encoded.rank() + e.depth) {
    return InvalidArgument(
        "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); "
        "output_ragged_rank: ",
        out_depth, ", input_ragged_rank: ", e.depth, ", encoded_variant.dims(): ", encoded.rank(),
        ".");
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<RaggedValue> parts, DecodeAll(encoded, e));
  if (encoded.rank() > 0) return Stack(c, parts, e.depth);
  for (int k = 0; k < out_depth; ++k) c.SetOutput(k, parts[0].splits[k]);
  c.SetOutput(static_cast<int>(out_depth), parts[0].values);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeFromVariant(const KernelInit& init) {
  const Expected e{init.attr<DataType>("Tvalues"), init.attr<DataType>("Tsplits"),
                   init.attr<int64_t>("input_ragged_rank")};
  return Kernel([e](KernelContext& c) -> absl::Status { return FromVariant(c, e); });
}

// ---- RaggedTensorToVariantGradient

// Writes the values of all variants, concatenated, in the shape of the values that were encoded.
absl::Status ToVariantGradient(KernelContext& c, DataType type) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, ReadShape(c.input(2), "dense_values_shape"));
  const Tensor &encoded = c.input(0), &splits = c.input(1);
  const int64_t n = splits.num_elements();
  // A scalar means that there are no splits.
  if (splits.rank() > 0) WEIR_RETURN_IF_ERROR(CheckSplits(splits, n > 0 ? splits.IntAt(n - 1) : 0));
  std::vector<RaggedValue> parts;
  int64_t count = 0;
  for (int64_t i = 0; i < encoded.num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    const Variant& variant = encoded.data<Variant>()[i];
    if (variant.type_name.empty()) continue;  // zeros: no gradient reached this element
    WEIR_ASSIGN_OR_RETURN(parts.emplace_back(), Decode(variant, i));
    if (parts.back().values.dtype() != type) {
      return InvalidArgument("Expected values Tensor dtype: ", DataTypeName(type),
                             ", found: ", DataTypeName(parts.back().values.dtype()));
    }
    count += parts.back().values.num_elements();
  }
  if (!parts.empty() && count != shape.num_elements()) {
    return InvalidArgument("the gradient has ", count, " values, not those of shape ",
                           shape.ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  if (parts.empty()) ClearElements(c.pool(), *out);
  int64_t at = 0;
  for (const RaggedValue& part : parts) {
    const int64_t n = part.values.num_elements();
    CopyElements(type, part.values.raw(), ElementAt(*out, at), n);
    at += n;
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeToVariantGradient(const KernelInit& init) {
  const DataType type = init.attr<DataType>("Tvalues");
  return Kernel([type](KernelContext& c) -> absl::Status { return ToVariantGradient(c, type); });
}

}  // namespace

void AddRaggedVariantKernels(KernelRegistry* r) {
  r->Add("RaggedTensorToVariant", kCpu, MakeToVariant);
  r->Add("RaggedTensorFromVariant", kCpu, MakeFromVariant);
  r->Add("RaggedTensorToVariantGradient", kCpu, MakeToVariantGradient)
      .HostArgs({"dense_values_shape"});
}

}  // namespace weir
