#include "weir/kernels/random/distributions.h"

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/random/random_stream.h"

namespace weir {

std::vector<double> ReadReals(const Tensor& t) {
  std::vector<double> out(t.num_elements());
  DispatchType(t.dtype(), RealNumbers{}, [&]<class T>() {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(t.data<T>()[i]);
  });
  return out;
}

std::vector<int64_t> BroadcastOffsets(const Shape& from, const Shape& to) {
  std::vector<int64_t> offsets = {0};
  const Dims strides = StridesOf(from);
  const int missing = to.rank() - from.rank();
  for (int d = 0; d < to.rank(); ++d) {
    const bool repeats = d < missing || from.dim(d - missing) == 1;
    const int64_t stride = repeats ? 0 : strides[d - missing];
    std::vector<int64_t> next;
    next.reserve(offsets.size() * to.dim(d));
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < to.dim(d); ++i) next.push_back(offset + i * stride);
    }
    offsets = std::move(next);
  }
  return offsets;
}

absl::StatusOr<SampleShape> SamplesOf(const KernelContext& c, const Shape& parameters,
                                      int shape_input) {
  SampleShape out;
  WEIR_ASSIGN_OR_RETURN(out.shape, ShapeInput(c, shape_input));
  const int extra = out.shape.rank() - parameters.rank();
  if (extra < 0 || out.shape.Sub(extra) != parameters)
    return InvalidArgument("Shape passed in must end with broadcasted shape.");
  out.samples = out.shape.Sub(0, extra).num_elements();
  return out;
}

absl::StatusOr<SampleShape> SamplesOfEach(const KernelContext& c, const Shape& parameters) {
  WEIR_ASSIGN_OR_RETURN(const Shape samples, ShapeInput(c, 0));
  WEIR_ASSIGN_OR_RETURN(Shape shape, CheckedShape(samples.Concatenate(parameters).dims()));
  return SampleShape{std::move(shape), samples.num_elements()};
}

namespace {

absl::Status CheckAlgorithm(int64_t id) {
  constexpr int64_t kPhilox = 1, kThreeFry = 2, kAutoSelect = 3;
  if (id == kThreeFry) return Unimplemented("The ThreeFry algorithm is not supported");
  if (id == kPhilox || id == kAutoSelect) return absl::OkStatus();
  return InvalidArgument("Unsupported algorithm id: ", id);
}

// `tagged`: element 0 of the variable is the algorithm.
absl::StatusOr<Philox> AdvanceGenerator(KernelContext& c, int64_t samples, bool tagged) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<VariableState> variable, c.variable(0));
  const MutexLock lock(variable->mutex());
  if (!variable->initialized()) {
    return NotFound("Could not find resource: the generator's state, ", variable->Describe(),
                    ", has not been initialized");
  }
  const int64_t size = tagged ? 4 : 3;
  if (variable->dtype() != DT_INT64 || variable->value().rank() != 1 ||
      variable->value().dim(0) < size) {
    return InvalidArgument("the state of a Philox generator is a vector of ", size,
                           " or more int64, not ", variable->Describe());
  }
  if (tagged) WEIR_RETURN_IF_ERROR(CheckAlgorithm(variable->value().IntAt(0)));
  Tensor state = variable->value().DeepCopy();
  auto* words = reinterpret_cast<uint64_t*>(state.data<int64_t>()) + (tagged ? 1 : 0);
  const Philox start(words[2], words[0], words[1]);
  Philox next = start;
  next.Skip(static_cast<uint64_t>(samples) * kReservedPerSample);
  words[0] = next.counter_low();
  words[1] = next.counter_high();
  variable->Set(std::move(state));
  return start;
}

}  // namespace

absl::Status CheckAlgorithmShape(const KernelContext& c, int i) {
  if (c.input(i).rank() == 0) return absl::OkStatus();
  return InvalidArgument("input ", i, " (0-based), the algorithm, must have shape [], not ",
                         c.input(i).shape().ToString());
}

absl::StatusOr<Philox> GeneratorInput(KernelContext& c, int64_t samples) {
  WEIR_RETURN_IF_ERROR(CheckAlgorithmShape(c, 1));
  WEIR_RETURN_IF_ERROR(CheckAlgorithm(c.input(1).IntAt(0)));
  return AdvanceGenerator(c, samples, false);
}

absl::StatusOr<Philox> TaggedGeneratorInput(KernelContext& c, int64_t samples) {
  return AdvanceGenerator(c, samples, true);
}

}  // namespace weir
