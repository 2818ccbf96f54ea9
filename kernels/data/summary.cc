#include "weir/kernels/data/summary_writer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "weir/core/io/graph_io.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/proto/histogram.pb.h"
#include "weir/proto/summary.pb.h"
#include "weir/proto/tensor.pb.h"

namespace weir {

absl::Status SetSummary(KernelContext& ctx, const proto::Summary& summary) {
  WEIR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  if (!summary.SerializeToString(out->data<std::string>()))
    return Internal("a summary cannot be serialized");
  return absl::OkStatus();
}

absl::StatusOr<std::string> ScalarTag(const Tensor& tag) {
  if (tag.rank() != 0) return InvalidArgument("tags must be scalar, not ", tag.shape().ToString());
  return *tag.data<std::string>();
}

namespace {

absl::StatusOr<std::string> TagFor(SummarySink sink, const Tensor& tag) {
  return sink == SetSummary ? ScalarTag(tag) : ReadOneString(tag, "tag");
}

template <class T>
double AsDouble(T value) {
  if constexpr (kIsNarrowFloat<T>) {
    return static_cast<float>(value);
  } else {
    return static_cast<double>(value);
  }
}

template <class T, SummarySink kSink>
absl::Status ScalarSummary(KernelContext& ctx) {
  const Tensor& tags = ctx.input(FirstInput(kSink));
  const Tensor& values = ctx.input(FirstInput(kSink) + 1);
  // The writer's op takes one tensor of each, of any rank.
  const bool fits = kSink == SetSummary ? tags.shape() == values.shape()
                                        : tags.num_elements() == 1 && values.num_elements() == 1;
  if (!fits) {
    return InvalidArgument("tags and values are not the same shape: ", tags.shape().ToString(),
                           " != ", values.shape().ToString());
  }
  proto::Summary summary;
  for (int64_t i = 0; i < tags.num_elements(); ++i) {
    proto::Summary::Value* value = summary.add_value();
    value->set_tag(tags.data<std::string>()[i]);
    value->set_simple_value(static_cast<float>(AsDouble(values.data<T>()[i])));
  }
  return kSink(ctx, summary);
}

// ---- histograms

// The upper limits of the buckets: -max, -1e20 .. -1e-12, 0, 1e-12 .. 1e20 in steps of 10%, max.
const std::vector<double>& BucketLimits() {
  static const std::vector<double>* const limits = [] {
    std::vector<double> positive;
    for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
    positive.push_back(std::numeric_limits<double>::max());
    auto* all = new std::vector<double>;
    for (size_t i = positive.size(); i > 0; --i) all->push_back(-positive[i - 1]);
    all->push_back(0);
    all->insert(all->end(), positive.begin(), positive.end());
    return all;
  }();
  return *limits;
}

// A value belongs to the first bucket whose limit is greater. A run of empty buckets is merged into
// one bucket that ends where the last of them ends.
void FillHistogram(const std::vector<double>& values, proto::HistogramProto* out) {
  const std::vector<double>& limits = BucketLimits();
  std::vector<double> counts(limits.size(), 0.0);
  double low = std::numeric_limits<double>::max(), high = -low, sum = 0, squares = 0;
  for (double v : values) {
    ThrowIfCancelled();
    const size_t bucket = std::upper_bound(limits.begin(), limits.end(), v) - limits.begin();
    counts[std::min(bucket, limits.size() - 1)] += 1;
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
    squares += v * v;
  }
  out->set_min(low);
  out->set_max(high);
  out->set_num(static_cast<double>(values.size()));
  out->set_sum(sum);
  out->set_sum_squares(squares);
  for (size_t i = 0; i < limits.size();) {
    double limit = limits[i], count = counts[i];
    ++i;
    while (count == 0 && i < limits.size() && counts[i] == 0) limit = limits[i++];
    out->add_bucket_limit(limit);
    out->add_bucket(count);
  }
}

template <class T, SummarySink kSink>
absl::Status HistogramSummary(KernelContext& ctx) {
  WEIR_ASSIGN_OR_RETURN(const std::string tag, TagFor(kSink, ctx.input(FirstInput(kSink))));
  const Tensor& from = ctx.input(FirstInput(kSink) + 1);
  std::vector<double> values;
  values.reserve(from.num_elements());
  for (const T& element : from.flat<T>()) {
    ThrowIfCancelled();
    const double v = AsDouble(element);
    if (std::isnan(v)) return InvalidArgument("Nan in summary histogram for: ", ctx.node().name());
    if (std::isinf(v)) return InvalidArgument("Infinity in Histogram for: ", ctx.node().name());
    values.push_back(v);
  }
  proto::Summary summary;
  proto::Summary::Value* value = summary.add_value();
  value->set_tag(tag);
  FillHistogram(values, value->mutable_histo());
  return kSink(ctx, summary);
}

// ---- merging, tensors

absl::Status MergeSummary(KernelContext& ctx) {
  proto::Summary merged;
  std::set<std::string> tags;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    for (const std::string& bytes : ctx.input(i).flat<std::string>()) {
      proto::Summary part;
      if (!part.ParseFromString(bytes))
        return InvalidArgument("Could not parse one of the summary inputs");
      for (proto::Summary::Value& value : *part.mutable_value()) {
        if (!value.tag().empty() && !tags.insert(value.tag()).second) {
          return InvalidArgument("Duplicate tag ", value.tag(), " found in summary inputs");
        }
        merged.add_value()->Swap(&value);
      }
    }
  }
  return SetSummary(ctx, merged);
}

absl::Status TensorSummary(KernelContext& ctx) {
  proto::Summary summary;
  proto::Summary::Value* value = summary.add_value();
  value->set_node_name(ctx.node().name());
  TensorToProtoContent(ctx.input(0), value->mutable_tensor());
  return SetSummary(ctx, summary);
}

absl::Status TensorSummaryV2(KernelContext& ctx) {
  const Tensor& metadata = ctx.input(2);
  WEIR_ASSIGN_OR_RETURN(const std::string tag, ScalarTag(ctx.input(0)));
  if (metadata.rank() != 0) {
    return InvalidArgument("serialized_summary_metadata must be scalar, not ",
                           metadata.shape().ToString());
  }
  proto::Summary summary;
  proto::Summary::Value* value = summary.add_value();
  value->set_tag(tag);
  TensorToProtoContent(ctx.input(1), value->mutable_tensor());
  if (!value->mutable_metadata()->ParseFromString(*metadata.data<std::string>())) {
    return InvalidArgument("serialized_summary_metadata is not a serialized SummaryMetadata");
  }
  return SetSummary(ctx, summary);
}

template <class... Ts>
void AddNumeric(KernelRegistry* r, List<Ts...>) {
  (r->Add("ScalarSummary", kCpu, DataTypeOf<Ts>::value, ScalarSummary<Ts, SetSummary>), ...);
  (r->Add("HistogramSummary", kCpu, DataTypeOf<Ts>::value, HistogramSummary<Ts, SetSummary>), ...);
  (r->Add("WriteScalarSummary", kCpu, DataTypeOf<Ts>::value, ScalarSummary<Ts, WriteSummaryEvent>),
   ...);
  (r->Add("WriteHistogramSummary", kCpu, DataTypeOf<Ts>::value,
          HistogramSummary<Ts, WriteSummaryEvent>),
   ...);
}

}  // namespace

void AddSummary(KernelRegistry* r) {
  AddNumeric(r, RealNumbers());
  r->Add("WriteHistogramSummary", kCpu, DT_BOOL, HistogramSummary<bool, WriteSummaryEvent>);
  const auto add = [r](absl::string_view op, absl::Status (*run)(KernelContext&)) {
    r->Add(op, kCpu, run);
  };
  add("MergeSummary", MergeSummary);
  add("TensorSummary", TensorSummary);
  add("TensorSummaryV2", TensorSummaryV2);
}

}  // namespace weir
