// Tensors of random numbers. philox.h describes the streams.

#include <algorithm>
#include <random>

#include "weir/kernels/lib/device_primitives.h"
#include "weir/kernels/lib/philox.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/random/distributions.h"
#include "weir/kernels/random/philox_words.h"
#include "weir/kernels/random/random_stream.h"

namespace weir {

absl::StatusOr<Shape> ShapeInput(const KernelContext& c, int i) {
  const Tensor& dims = c.input(i);
  if (dims.rank() != 1 || (dims.dtype() != DT_INT32 && dims.dtype() != DT_INT64)) {
    return InvalidArgument("shape must be a vector of {int32,int64}, got shape ",
                           dims.shape().ToString());
  }
  absl::InlinedVector<int64_t, 8> extents;
  for (int64_t d = 0; d < dims.num_elements(); ++d) {
    extents.push_back(dims.IntAt(d));
    if (extents.back() < 0) return InvalidArgument("Dimension ", extents.back(), " must be >= 0");
  }
  return Shape::Make(extents);
}

absl::StatusOr<Philox> SeedInput(const KernelContext& c, int i) {
  const Tensor& seed = c.input(i);
  if (seed.shape() != Shape({2}))
    return InvalidArgument("seed must have shape [2], not ", seed.shape().ToString());
  if (seed.dtype() != DT_INT32 && seed.dtype() != DT_INT64)
    return InvalidArgument("Invalid seed type: ", DataTypeName(seed.dtype()));
  return PhiloxFromSeed(static_cast<uint64_t>(seed.IntAt(0)), static_cast<uint64_t>(seed.IntAt(1)));
}

absl::StatusOr<Philox> KeyCounterInputs(const KernelContext& c) {
  const Tensor &key = c.input(1), &counter = c.input(2), &alg = c.input(3);
  WEIR_RETURN_IF_ERROR(CheckAlgorithmShape(c, 3));
  constexpr int kPhilox = 1, kAutoSelect = 3;
  const int algorithm = alg.scalar<int32_t>();
  if (algorithm != kPhilox && algorithm != kAutoSelect) {
    return InvalidArgument("Unsupported algorithm id: ", algorithm,
                           " (1 is Philox, 3 the device's choice)");
  }
  if (key.shape() != Shape({1}))
    return InvalidArgument("key must have shape [1], not ", key.shape().ToString());
  if (counter.rank() != 1 || counter.dim(0) < 2) {
    return InvalidArgument(
        "counter must be a vector of at least 2 elements for the Philox algorithm, not of shape ",
        counter.shape().ToString());
  }
  const uint64_t* words = counter.data<uint64_t>();
  return Philox(key.data<uint64_t>()[0], words[0], words[1]);
}

namespace {

// Writes group g, directly into the output if the whole group fits.
template <class Samples, class Source>
void WriteGroup(const Samples& distribution, Source& source, int64_t g,
                typename Samples::Sample* out, int64_t n) {
  constexpr int kGroup = Samples::kGroup;
  const int64_t at = g * kGroup;
  if (at + kGroup <= n) {
    distribution(source, out + at);
  } else {
    typename Samples::Sample group[kGroup];
    distribution(source, group);
    std::copy_n(group, n - at, out + at);
  }
}

// Fills groups [begin, end) of a distribution that rejects samples.
template <class Samples>
void FillRejecting(Philox stream, const Samples& distribution, int64_t begin, int64_t end,
                   typename Samples::Sample* out, int64_t n) {
  constexpr uint64_t kBlocks = Samples::kGroup * kReservedPerSample / 4;
  stream.Skip(begin * kBlocks);
  for (int64_t g = begin; g < end; ++g, stream.Skip(kBlocks)) {
    PhiloxWords words(stream);
    WriteGroup(distribution, words, g, out, n);
  }
}

// Fills groups [begin, end) from one block each; the blocks are generated in batches.
template <class Samples>
void FillBlocks(Philox stream, const Samples& distribution, int64_t begin, int64_t end,
                typename Samples::Sample* out, int64_t n) {
  constexpr int64_t kBatch = 128;
  uint32_t words[4 * kBatch];
  stream.Skip(begin);
  while (begin < end) {
    const int64_t batch = std::min(kBatch, end - begin);
    PhiloxBlocks(stream, batch, words);
    stream.Skip(batch);
    for (const uint32_t* block = words; begin < end && block < words + 4 * batch; block += 4) {
      WriteGroup(distribution, block, begin++, out, n);
    }
  }
}

template <class Samples>
void Fill(ThreadPool& pool, const Philox& stream, Samples distribution,
          typename Samples::Sample* out, int64_t n) {
  constexpr int kGroup = Samples::kGroup;
  pool.ParallelFor((n + kGroup - 1) / kGroup, Samples::kCost, [&](int64_t begin, int64_t end) {
    if constexpr (Samples::kRejects) {
      FillRejecting(stream, distribution, begin, end, out, n);
    } else if constexpr (std::is_same_v<Samples, UniformSamples<float>>) {
      Philox local = stream;
      local.Skip(begin);
      const int64_t whole = std::min(end, n / kGroup);
      PhiloxUnitFloats(local, whole - begin, out + begin * kGroup);
      if (whole < end) FillBlocks(stream, distribution, whole, end, out, n);
    } else {
      FillBlocks(stream, distribution, begin, end, out, n);
    }
  });
}

// Allocates output 0 with the shape that an input holds, and fills it; `start(samples)` returns the
// stream.
template <class Samples, class Start>
absl::Status FillOutput(KernelContext& c, const Samples& distribution, const Start& start,
                        int shape_input = 0) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeInput(c, shape_input));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  const int64_t n = out->num_elements();
  WEIR_ASSIGN_OR_RETURN(const Philox stream, start(n));
  if (n == 0) return absl::OkStatus();
  if (const DevicePrimitives* const device = c.device().primitives()) {
    DevicePrimitives::RandomArgs args{Samples::kKind, out->dtype(), stream};
    if constexpr (Samples::kKind == RandomKind::kInteger) {
      args.low = distribution.low;
      args.range = distribution.range;
    }
    args.out = out->raw();
    args.count = n;
    return device->FillRandom(args);
  }
  Fill(c.pool(), stream, distribution, out->data<typename Samples::Sample>(), n);
  return absl::OkStatus();
}

template <class Samples>
absl::StatusOr<Kernel> MakeStateful(const KernelInit& init) {
  return Kernel([stream = RandomStream::Of(init)](KernelContext& c) {
    return FillOutput(c, Samples(), [&](int64_t n) {
      return absl::StatusOr<Philox>(stream->ReserveSamples(n, c.step()));
    });
  });
}

template <class Samples>
absl::Status RunFromSeed(KernelContext& c) {
  return FillOutput(c, Samples(), [&](int64_t) { return SeedInput(c, 1); });
}

template <class Samples>
absl::Status RunFromKey(KernelContext& c) {
  return FillOutput(c, Samples(), [&](int64_t) { return KeyCounterInputs(c); });
}

// The inputs are a generator, its algorithm, and the shape.
constexpr int kGeneratorShape = 2;

template <class Samples>
absl::Status RunFromGenerator(KernelContext& c) {
  return FillOutput(
      c, Samples(), [&](int64_t n) { return GeneratorInput(c, n); }, kGeneratorShape);
}

// The inputs are a generator, which knows its algorithm, and the shape.
template <class Samples>
absl::Status RunFromTaggedGenerator(KernelContext& c) {
  return FillOutput(
      c, Samples(), [&](int64_t n) { return TaggedGeneratorInput(c, n); }, 1);
}

// ---- integers in [minval, maxval), which are inputs `first` and `first + 1`

template <class T>
absl::StatusOr<IntegerSamples<T>> RangeInputs(const KernelContext& c, int first) {
  const Tensor &low = c.input(first), &high = c.input(first + 1);
  if (low.rank() != 0)
    return InvalidArgument("minval must be 0-D, got shape ", low.shape().ToString());
  if (high.rank() != 0)
    return InvalidArgument("maxval must be 0-D, got shape ", high.shape().ToString());
  const T lo = low.scalar<T>(), hi = high.scalar<T>();
  if (lo >= hi) return InvalidArgument("Need minval < maxval, got ", lo, " >= ", hi);
  using Word = std::make_unsigned_t<T>;
  return IntegerSamples<T>{static_cast<Word>(lo),
                           static_cast<Word>(static_cast<Word>(hi) - static_cast<Word>(lo))};
}

template <class T, class Start>
absl::Status FillRange(KernelContext& c, int first, const Start& start, int shape_input = 0) {
  absl::StatusOr<IntegerSamples<T>> range = RangeInputs<T>(c, first);
  if (!range.ok()) {
    // For an empty output the range may be empty, but the bounds must be scalars.
    WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeInput(c, shape_input));
    const bool scalars = c.input(first).rank() == 0 && c.input(first + 1).rank() == 0;
    if (!scalars || shape.num_elements() != 0) return range.status();
    range = IntegerSamples<T>();
  }
  return FillOutput(c, *range, start, shape_input);
}

template <class T>
absl::StatusOr<Kernel> MakeStatefulRange(const KernelInit& init) {
  return Kernel([stream = RandomStream::Of(init)](KernelContext& c) {
    return FillRange<T>(c, 1, [&](int64_t n) {
      return absl::StatusOr<Philox>(stream->ReserveSamples(n, c.step()));
    });
  });
}

template <class T>
absl::Status RunRangeFromSeed(KernelContext& c) {
  return FillRange<T>(c, 2, [&](int64_t) { return SeedInput(c, 1); });
}

template <class T>
absl::Status RunRangeFromKey(KernelContext& c) {
  return FillRange<T>(c, 4, [&](int64_t) { return KeyCounterInputs(c); });
}

template <class T>
absl::Status RunRangeFromGenerator(KernelContext& c) {
  return FillRange<T>(
      c, 3, [&](int64_t n) { return GeneratorInput(c, n); }, kGeneratorShape);
}

// Non-deterministic: never produces the same numbers again.
template <class T>
absl::Status RunUnpredictable(KernelContext& c) {
  return FillOutput(c, IntegerSamples<T>(), [](int64_t) {
    std::random_device device;
    const auto word = [&] { return device() | uint64_t{device()} << 32; };
    return absl::StatusOr<Philox>(Philox(word(), word(), word()));
  });
}

absl::Status RunGetKeyCounter(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Philox stream, SeedInput(c, 0));
  WEIR_ASSIGN_OR_RETURN(Tensor * key, c.AllocateOutput(0, Shape({1})));
  key->data<uint64_t>()[0] = stream.key();
  WEIR_ASSIGN_OR_RETURN(Tensor * counter, c.AllocateOutput(1, Shape({2})));
  counter->data<uint64_t>()[0] = stream.counter_low();
  counter->data<uint64_t>()[1] = stream.counter_high();
  if (c.num_outputs() > 2) c.SetOutput(2, Tensor::Scalar<int32_t>(1));
  return absl::OkStatus();
}

KernelFactory Stateless(absl::Status (*run)(KernelContext&)) { return run; }

}  // namespace

void AddRandomCpu(KernelRegistry* r) {
  const std::vector<std::string> shape = {"shape"}, seed = {"shape", "seed"},
                                 key = {"shape", "key", "counter", "alg"};
  const auto with_range = [](std::vector<std::string> args) {
    args.insert(args.end(), {"minval", "maxval"});
    return args;
  };
  const auto add = [r](absl::string_view op, TypeConstraints types,
                       const std::vector<std::string>& host_args, KernelFactory make) {
    r->Add(op, kCpu, std::move(types), std::move(make)).HostArgs(host_args);
  };
  const auto generate = [r](absl::string_view op, TypeConstraints types, KernelFactory make) {
    r->Add(op, kCpu, std::move(types), std::move(make))
        .HostArgs({"algorithm", "shape", "minval", "maxval"})
        .Writes({0});
  };
  const auto add_floats = [&]<class... Ts>(List<Ts...>) {
    (
        [&] {
          const TypeConstraints types = {{"dtype", DataTypeOf<Ts>::value}};
          add("RandomUniform", types, shape, MakeStateful<UniformSamples<Ts>>);
          add("RandomStandardNormal", types, shape, MakeStateful<NormalSamples<Ts>>);
          add("TruncatedNormal", types, shape, MakeStateful<TruncatedNormalSamples<Ts>>);
          add("StatelessRandomUniform", types, seed, Stateless(RunFromSeed<UniformSamples<Ts>>));
          add("StatelessRandomNormal", types, seed, Stateless(RunFromSeed<NormalSamples<Ts>>));
          add("StatelessTruncatedNormal", types, seed,
              Stateless(RunFromSeed<TruncatedNormalSamples<Ts>>));
          add("StatelessRandomUniformV2", types, key, Stateless(RunFromKey<UniformSamples<Ts>>));
          add("StatelessRandomNormalV2", types, key, Stateless(RunFromKey<NormalSamples<Ts>>));
          add("StatelessTruncatedNormalV2", types, key,
              Stateless(RunFromKey<TruncatedNormalSamples<Ts>>));
          generate("StatefulUniform", types, RunFromGenerator<UniformSamples<Ts>>);
          generate("StatefulStandardNormalV2", types, RunFromGenerator<NormalSamples<Ts>>);
          r->Add("StatefulStandardNormal", kCpu, types, RunFromTaggedGenerator<NormalSamples<Ts>>)
              .HostArgs({"shape"})
              .Writes({0});
          generate("StatefulTruncatedNormal", types, RunFromGenerator<TruncatedNormalSamples<Ts>>);
        }(),
        ...);
  };
  const auto add_integers = [&]<class... Ts>(List<Ts...>) {
    (
        [&] {
          const DataType type = DataTypeOf<Ts>::value;
          if constexpr (std::is_signed_v<Ts>) {
            add("RandomUniformInt", {{"Tout", type}}, with_range(shape), MakeStatefulRange<Ts>);
            add("StatelessRandomUniformInt", {{"dtype", type}}, with_range(seed),
                Stateless(RunRangeFromSeed<Ts>));
          }
          add("StatelessRandomUniformIntV2", {{"dtype", type}}, with_range(key),
              Stateless(RunRangeFromKey<Ts>));
          add("StatelessRandomUniformFullInt", {{"dtype", type}}, seed,
              Stateless(RunFromSeed<IntegerSamples<Ts>>));
          add("StatelessRandomUniformFullIntV2", {{"dtype", type}}, key,
              Stateless(RunFromKey<IntegerSamples<Ts>>));
          generate("StatefulUniformInt", {{"dtype", type}}, RunRangeFromGenerator<Ts>);
          generate("StatefulUniformFullInt", {{"dtype", type}},
                   RunFromGenerator<IntegerSamples<Ts>>);
          add("NonDeterministicInts", {{"dtype", type}}, shape, RunUnpredictable<Ts>);
        }(),
        ...);
  };
  add_floats(Floats{});
  add_integers(List<int32_t, int64_t, uint32_t, uint64_t>{});
  add("StatelessRandomGetKeyCounter", {}, {"seed"}, Stateless(RunGetKeyCounter));
  add("StatelessRandomGetKeyCounterAlg", {}, {"seed"}, Stateless(RunGetKeyCounter));
  add("StatelessRandomGetAlg", {}, {}, [](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel::Constant(Tensor::Scalar<int32_t>(1));
  });
}

}  // namespace weir
