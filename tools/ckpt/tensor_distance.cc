#include "weir/tools/ckpt/tensor_distance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "weir/tools/ckpt/convert_elements.h"
#include "weir/tools/ckpt/output.h"

namespace weir::tools {

namespace {

// Adds elements to a distance.
class Comparison {
 public:
  explicit Comparison(const DistanceTolerance& tolerance) : tolerance_(tolerance) {}

  void Add(const std::vector<double>& a, const std::vector<double>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;
      if (std::isnan(a[i]) || std::isnan(b[i])) {
        AddNans(i, std::isnan(a[i]), std::isnan(b[i]));
      } else {
        AddDifference(i, std::abs(a[i] - b[i]), a[i], b[i]);
      }
    }
    out_.elements += static_cast<int64_t>(a.size());
  }

  // For 64-bit integers, of which doubles are only an approximation.
  template <class T>
  void AddExact(const T* a, const T* b, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (a[i] == b[i]) continue;
      const uint64_t low = static_cast<uint64_t>(std::min(a[i], b[i])),
                     high = static_cast<uint64_t>(std::max(a[i], b[i]));
      AddDifference(i, static_cast<double>(high - low), static_cast<double>(a[i]),
                    static_cast<double>(b[i]));
    }
    out_.elements += static_cast<int64_t>(count);
  }

  void AddStrings(const Tensor& a, const Tensor& b) {
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      if (a.data<std::string>()[i] != b.data<std::string>()[i]) AddDifferent(i);
    }
    out_.elements += a.num_elements();
  }

  const TensorDistance& distance() const { return out_; }

 private:
  void AddDifferent(size_t i) {
    if (out_.different++ == 0) out_.first = out_.elements + static_cast<int64_t>(i);
  }

  void AddNans(size_t i, bool in_a, bool in_b) {
    if (in_a && in_b) return;
    ++(in_a ? out_.nans_a : out_.nans_b);
    AddDifferent(i);
  }

  void AddDifference(size_t i, double difference, double a, double b) {
    const double larger = std::max(std::abs(a), std::abs(b));
    out_.max_absolute = std::max(out_.max_absolute, difference);
    out_.max_relative =
        std::max(out_.max_relative, std::isinf(larger) ? larger : difference / larger);
    const bool is_near =
        std::isfinite(larger) && difference <= tolerance_.atol + tolerance_.rtol * std::abs(b);
    if (!is_near) AddDifferent(i);
  }

  const DistanceTolerance tolerance_;
  TensorDistance out_;
};

// Two streams of elements that are read together.
class PairOfStreams {
 public:
  PairOfStreams(DataType a, DataType b) : a_{a}, b_{b} {}

  absl::Status Run(CheckpointReader& a, CheckpointReader& b, const std::string& name_a,
                   const std::string& name_b, int64_t elements, Comparison* comparison) {
    WEIR_ASSIGN_OR_RETURN(a_.stream, a.Stream(name_a));
    WEIR_ASSIGN_OR_RETURN(b_.stream, b.Stream(name_b));
    const auto piece = static_cast<int64_t>(kPieceBytes / sizeof(double));
    for (int64_t done = 0; done < elements; done += piece) {
      const auto count = static_cast<size_t>(std::min(piece, elements - done));
      WEIR_RETURN_IF_ERROR(a_.Read(count));
      WEIR_RETURN_IF_ERROR(b_.Read(count));
      Compare(count, comparison);
    }
    return absl::OkStatus();
  }

 private:
  struct Side {
    DataType dtype;
    std::unique_ptr<TensorStream> stream = nullptr;
    std::vector<char> bytes = {};
    std::vector<double> values = {};

    absl::Status Read(size_t count) {
      bytes.resize(count * ElementSize(dtype));
      return stream->Read(bytes.size(), bytes.data());
    }
    const std::vector<double>& Doubles(size_t count) {
      // A complex number is two.
      const bool is_complex = IsComplex(dtype);
      const DataType real = dtype == DT_COMPLEX64    ? DT_FLOAT
                            : dtype == DT_COMPLEX128 ? DT_DOUBLE
                                                     : dtype;
      values.resize(count * (is_complex ? 2 : 1));
      ToDoubles(real, bytes.data(), values.data(), values.size());
      return values;
    }
  };

  void Compare(size_t count, Comparison* comparison) {
    if (a_.dtype == b_.dtype && (a_.dtype == DT_INT64 || a_.dtype == DT_UINT64)) {
      DispatchType(a_.dtype, List<int64_t, uint64_t>{}, [&]<class T>() {
        comparison->AddExact(reinterpret_cast<const T*>(a_.bytes.data()),
                             reinterpret_cast<const T*>(b_.bytes.data()), count);
      });
    } else {
      comparison->Add(a_.Doubles(count), b_.Doubles(count));
    }
  }

  Side a_, b_;
};

}  // namespace

absl::StatusOr<TensorDistance> ComputeDistance(CheckpointReader& a, const CheckpointTensor& in_a,
                                               CheckpointReader& b, const CheckpointTensor& in_b,
                                               const DistanceTolerance& tolerance) {
  Comparison comparison(tolerance);
  const bool is_plain = IsPlain(in_a.dtype) && IsPlain(in_b.dtype);
  if (in_a.dtype != in_b.dtype && (!is_plain || IsComplex(in_a.dtype) != IsComplex(in_b.dtype))) {
    return FailedPrecondition("elements of types ", DataTypeName(in_a.dtype), " and ",
                              DataTypeName(in_b.dtype), " have no distance");
  }
  if (is_plain) {
    PairOfStreams streams(in_a.dtype, in_b.dtype);
    WEIR_RETURN_IF_ERROR(
        streams.Run(a, b, in_a.name, in_b.name, in_a.shape.num_elements(), &comparison));
  } else {
    WEIR_ASSIGN_OR_RETURN(const Tensor strings_a, a.Read(in_a.name));
    WEIR_ASSIGN_OR_RETURN(const Tensor strings_b, b.Read(in_b.name));
    comparison.AddStrings(strings_a, strings_b);
  }
  return comparison.distance();
}

}  // namespace weir::tools
