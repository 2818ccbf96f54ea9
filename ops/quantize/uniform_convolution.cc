#include "weir/ops/quantize/uniform_convolution.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "weir/core/tensor/status.h"
#include "weir/proto/uniform_quant_ops_attr.pb.h"

namespace weir {

namespace {

// A limit for strides, dilations and paddings, so that sums and products of them do not overflow.
constexpr int64_t kMost = int64_t{1} << 31;

// The positions of all dimensions of a tensor must be a permutation.
absl::Status CheckDimensions(const ConvolutionDimensions& d, int64_t rank) {
  if (static_cast<int64_t>(d.spatial.size()) != rank - 2) {
    return InvalidArgument("Spatial dimensions size must be rank - 2. Given rank ", rank,
                           " and spatial dimensions size ", d.spatial.size());
  }
  std::vector<int64_t> all = d.spatial;
  all.insert(all.end(), {d.batch, d.feature});
  std::vector<bool> used(rank, false);
  for (const int64_t i : all) {
    if (i < 0 || i >= rank) {
      return InvalidArgument("Each dimension number must be in region [0, rank). Given rank ", rank,
                             " and dimension number value ", i);
    }
    if (used[i]) return InvalidArgument("dimension number ", i, " is used twice");
    used[i] = true;
  }
  return absl::OkStatus();
}

// Fills a list of ones if it is empty, otherwise checks it.
absl::Status CompleteList(absl::string_view name, size_t size, std::vector<int64_t>* list) {
  if (list->empty()) list->assign(size, 1);
  if (list->size() != size) {
    return InvalidArgument("Size of ", name, " Attr must be dims - 2.");
  }
  for (const int64_t i : *list) {
    if (i >= 1 && i < kMost) continue;
    return InvalidArgument("All elements of ", name, " must be >= 1. Given ",
                           absl::StrJoin(*list, ", "));
  }
  return absl::OkStatus();
}

absl::Status CheckDivides(int64_t divisor, int64_t count, absl::string_view names) {
  if (divisor > 0 && count % divisor == 0) return absl::OkStatus();
  return InvalidArgument(names, ", but ", divisor, " does not divide ", count);
}

absl::Status CheckGroups(const UniformConvolution& c, const Shape& input, const Shape& kernel) {
  if (c.feature_groups <= 0) {
    return InvalidArgument("feature_group_count must be a positive integer, given: ",
                           c.feature_groups);
  }
  if (c.batch_groups <= 0) {
    return InvalidArgument("batch_group_count Attr must be a positive integer. Given: ",
                           c.batch_groups);
  }
  const int64_t features = input.dim(static_cast<int>(c.input.feature));
  const int64_t kernel_in = kernel.dim(static_cast<int>(c.kernel.feature));
  const int64_t kernel_out = kernel.dim(static_cast<int>(c.kernel.batch));
  WEIR_RETURN_IF_ERROR(CheckDivides(c.feature_groups, features,
                                    "feature_group_count must divide lhs feature dimension size"));
  if (features / c.feature_groups != kernel_in) {
    return InvalidArgument(
        "lhs feature dimension size divided by feature_group_count must equal the rhs input "
        "feature dimension size, but ",
        features, " / ", c.feature_groups, " != ", kernel_in);
  }
  WEIR_RETURN_IF_ERROR(
      CheckDivides(c.feature_groups, kernel_out,
                   "rhs output dimension size must be a multiple of feature_group_count"));
  WEIR_RETURN_IF_ERROR(CheckDivides(c.batch_groups, input.dim(static_cast<int>(c.input.batch)),
                                    "batch_group_count must divide lhs batch dimension size"));
  return CheckDivides(c.batch_groups, kernel_out,
                      "rhs output dimension size must be a multiple of batch_group_count");
}

// The padding of SAME: the output has as many elements as the dilated input has strides.
void PadSame(const Shape& input, const Shape& kernel, UniformConvolution* c) {
  for (size_t i = 0; i < c->strides.size(); ++i) {
    const int64_t size = UniformConvolution::Dilated(
        input.dim(static_cast<int>(c->input.spatial[i])), c->input_dilation[i]);
    const int64_t window = UniformConvolution::Dilated(
        kernel.dim(static_cast<int>(c->kernel.spatial[i])), c->kernel_dilation[i]);
    const int64_t count = (size + c->strides[i] - 1) / c->strides[i];
    const int64_t total = std::max<int64_t>(0, (count - 1) * c->strides[i] + window - size);
    c->padding.insert(c->padding.end(), {total / 2, total - total / 2});
  }
}

}  // namespace

absl::StatusOr<UniformConvolution> UniformConvolution::Read(const Node& node) {
  UniformConvolution c;
  c.strides = node.attr<std::vector<int64_t>>("window_strides");
  c.input_dilation = node.attr<std::vector<int64_t>>("lhs_dilation");
  c.kernel_dilation = node.attr<std::vector<int64_t>>("rhs_dilation");
  c.padding = node.attr<std::vector<int64_t>>("explicit_padding");
  c.padding_kind = node.attr<std::string>("padding");
  c.batch_groups = node.attr<int64_t>("batch_group_count");
  c.feature_groups = node.attr<int64_t>("feature_group_count");
  if (c.padding_kind != "EXPLICIT" && c.padding_kind != "SAME" && c.padding_kind != "VALID") {
    return InvalidArgument("padding Attr must be one of [EXPLICIT | SAME | VALID], but given: ",
                           c.padding_kind);
  }
  if (c.padding_kind != "EXPLICIT" && !c.padding.empty()) {
    return InvalidArgument(
        "If padding Attr is not 'EXPLICIT', explicit_padding Attr must be empty. Given padding ",
        c.padding_kind, " and explicit_padding of size ", c.padding.size());
  }
  const auto numbers = node.attr<std::string>("dimension_numbers");
  if (numbers.empty()) return c;
  proto::UniformQuantizedConvolutionDimensionNumbersAttr message;
  if (!message.ParseFromString(numbers)) {
    return InvalidArgument("Error parsing convolution dimension numbers.");
  }
  const auto list = [](const auto& field) {
    return std::vector<int64_t>(field.begin(), field.end());
  };
  c.input = {message.input_batch_dimension(), message.input_feature_dimension(),
             list(message.input_spatial_dimensions())};
  c.kernel = {message.kernel_output_feature_dimension(), message.kernel_input_feature_dimension(),
              list(message.kernel_spatial_dimensions())};
  c.output = {message.output_batch_dimension(), message.output_feature_dimension(),
              list(message.output_spatial_dimensions())};
  return c;
}

absl::Status UniformConvolution::Complete(const Shape& input_shape, const Shape& kernel_shape) {
  const int64_t rank = input_shape.rank();
  if (rank != kernel_shape.rank()) {
    return InvalidArgument("lhs and rhs must have same dims. Given lhs and rhs of shapes: ",
                           input_shape.ToString(), kernel_shape.ToString());
  }
  if (rank <= 2) {
    return InvalidArgument("lhs and rhs shape dims must be at least 3. Given: ", rank);
  }
  const size_t spatial = static_cast<size_t>(rank) - 2;
  WEIR_RETURN_IF_ERROR(CompleteList("window_strides", spatial, &strides));
  WEIR_RETURN_IF_ERROR(CompleteList("lhs_dilation", spatial, &input_dilation));
  WEIR_RETURN_IF_ERROR(CompleteList("rhs_dilation", spatial, &kernel_dilation));
  if (input.spatial.empty()) {
    std::vector<int64_t> after(spatial);
    std::iota(after.begin(), after.end(), 2);
    input = kernel = output = {0, 1, after};
  }
  for (const ConvolutionDimensions* d : {&input, &kernel, &output})
    WEIR_RETURN_IF_ERROR(CheckDimensions(*d, rank));
  for (const Shape* shape : {&input_shape, &kernel_shape}) {
    for (const int64_t extent : shape->dims())
      if (extent >= kMost) return InvalidArgument("an extent is too large: ", extent);
  }
  WEIR_RETURN_IF_ERROR(CheckGroups(*this, input_shape, kernel_shape));
  if (padding_kind == "SAME") {
    PadSame(input_shape, kernel_shape, this);
    return absl::OkStatus();
  }
  if (padding_kind == "VALID") {
    padding.assign(2 * spatial, 0);
    return absl::OkStatus();
  }
  if (padding.size() != 2 * spatial) {
    return InvalidArgument("Size of explicit_padding Attr must be 2 * (rank - 2). Given rank ",
                           rank, " and explicit_padding of size ", padding.size());
  }
  for (const int64_t i : padding) {
    if (i >= 0 && i < kMost) continue;
    return InvalidArgument("All explicit_padding elems must be >= 0, Given ",
                           absl::StrJoin(padding, ", "));
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> UniformConvolution::OutputShape(const Shape& input_shape,
                                                      const Shape& kernel_shape) const {
  std::vector<int64_t> dims(input_shape.rank());
  dims[output.batch] = input_shape.dim(static_cast<int>(input.batch)) / batch_groups;
  dims[output.feature] = kernel_shape.dim(static_cast<int>(kernel.batch));
  for (size_t i = 0; i < strides.size(); ++i) {
    const int64_t size =
        Dilated(input_shape.dim(static_cast<int>(input.spatial[i])), input_dilation[i]) +
        padding[2 * i] + padding[2 * i + 1];
    const int64_t window =
        Dilated(kernel_shape.dim(static_cast<int>(kernel.spatial[i])), kernel_dilation[i]);
    const int64_t count = (size - window + strides[i]) / strides[i];
    if (count < 0) {
      return InvalidArgument("the window of ", window, " elements exceeds the padded input of ",
                             size, " in spatial dimension ", i);
    }
    dims[output.spatial[i]] = count;
  }
  return Shape::Make(dims);
}

}  // namespace weir
