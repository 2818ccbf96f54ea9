#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "weir/kernels/audio/audio.h"
#include "weir/kernels/audio/microfrontend.h"
#include "weir/kernels/lib/arguments.h"

namespace weir {

namespace {

struct Framing {
  int left_context = 0, right_context = 0, stride = 1, out_scale = 1;
  bool zero_padding = false;
};

// The features of all windows of `audio`: [frames][channels].
absl::StatusOr<Tensor> ComputeFrames(KernelContext& c, const MicrofrontendOptions& o,
                                     int64_t frames) {
  WEIR_ASSIGN_OR_RETURN(Microfrontend front_end, Microfrontend::Make(o));
  WEIR_ASSIGN_OR_RETURN(Tensor features, c.AllocateTemp(DT_UINT16, Shape({frames, o.channels})));
  for (int64_t i = 0; i < frames; ++i) {
    ThrowIfCancelled();
    front_end.Process(c.input_data<int16_t>(0) + i * o.step,
                      features.data<uint16_t>() + i * o.channels);
  }
  return features;
}

// Each row of the output is a frame with its neighbors.
template <class T>
absl::Status RunMicrofrontend(KernelContext& c, const MicrofrontendOptions& o, const Framing& f) {
  const Tensor& audio = c.input(0);
  if (audio.rank() != 1) return InvalidArgument("audio is not a vector");
  if (o.step < 1)
    return Internal("failed to populate frontend state: a step must have samples, got ", o.step);
  const int64_t samples = audio.num_elements();
  const int64_t frames = samples < o.window ? 0 : (samples - o.window) / o.step + 1;
  const int64_t rows = (frames + f.stride - 1) / f.stride;
  const int64_t stack = int64_t{1} + f.left_context + f.right_context;
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({rows, stack, o.channels}));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({rows, stack * o.channels})));
  WEIR_ASSIGN_OR_RETURN(const Tensor features, ComputeFrames(c, o, frames));
  T* to = out->data<T>();
  for (int64_t anchor = 0; anchor < frames; anchor += f.stride) {
    ThrowIfCancelledAt(anchor);
    for (int64_t frame = anchor - f.left_context; frame <= anchor + f.right_context; ++frame) {
      const bool inside = frame >= 0 && frame < frames;
      const uint16_t* const from =
          features.data<uint16_t>() + std::clamp<int64_t>(frame, 0, frames - 1) * o.channels;
      for (int i = 0; i < o.channels; ++i) {
        const auto value = static_cast<T>(inside || !f.zero_padding ? from[i] : 0);
        if constexpr (std::is_integral_v<T>) {
          *to++ = static_cast<T>(int64_t{value} / f.out_scale);
        } else {
          *to++ = value / static_cast<T>(f.out_scale);
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Samples(const Node& node, absl::string_view attr, int sample_rate) {
  WEIR_ASSIGN_OR_RETURN(const int milliseconds, NarrowAttr(node, attr));
  if (milliseconds < 1 || sample_rate < 1) {
    return InvalidArgument(attr, " and sample_rate must be positive, got ", milliseconds, " and ",
                           sample_rate);
  }
  return int64_t{milliseconds} * sample_rate / 1000;
}

absl::StatusOr<MicrofrontendOptions> ReadOptions(const Node& n) {
  MicrofrontendOptions o;
  WEIR_ASSIGN_OR_RETURN(o.sample_rate, NarrowAttr(n, "sample_rate"));
  WEIR_ASSIGN_OR_RETURN(o.window, Samples(n, "window_size", o.sample_rate));
  WEIR_ASSIGN_OR_RETURN(o.step, Samples(n, "window_step", o.sample_rate));
  WEIR_ASSIGN_OR_RETURN(o.channels, NarrowAttr(n, "num_channels"));
  o.upper_limit = n.attr<float>("upper_band_limit");
  o.lower_limit = n.attr<float>("lower_band_limit");
  WEIR_ASSIGN_OR_RETURN(o.smoothing_bits, NarrowAttr(n, "smoothing_bits"));
  o.even_smoothing = n.attr<float>("even_smoothing");
  o.odd_smoothing = n.attr<float>("odd_smoothing");
  o.min_signal_remaining = n.attr<float>("min_signal_remaining");
  o.enable_pcan = n.attr<bool>("enable_pcan");
  o.pcan_strength = n.attr<float>("pcan_strength");
  o.pcan_offset = n.attr<float>("pcan_offset");
  WEIR_ASSIGN_OR_RETURN(o.gain_bits, NarrowAttr(n, "gain_bits"));
  o.enable_log = n.attr<bool>("enable_log");
  WEIR_ASSIGN_OR_RETURN(o.scale_shift, NarrowAttr(n, "scale_shift"));
  return o;
}

absl::StatusOr<Framing> ReadFraming(const Node& n) {
  Framing f;
  WEIR_ASSIGN_OR_RETURN(f.left_context, NarrowAttr(n, "left_context"));
  WEIR_ASSIGN_OR_RETURN(f.right_context, NarrowAttr(n, "right_context"));
  WEIR_ASSIGN_OR_RETURN(f.stride, NarrowAttr(n, "frame_stride"));
  WEIR_ASSIGN_OR_RETURN(f.out_scale, NarrowAttr(n, "out_scale"));
  f.zero_padding = n.attr<bool>("zero_padding");
  if (f.left_context < 0 || f.right_context < 0 || f.stride < 1 || f.out_scale == 0) {
    return InvalidArgument(
        "left_context and right_context must not be negative, frame_stride must be positive, and "
        "out_scale not 0, got ",
        f.left_context, ", ", f.right_context, ", ", f.stride, " and ", f.out_scale);
  }
  return f;
}

template <class T>
absl::StatusOr<Kernel> MakeMicrofrontend(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const MicrofrontendOptions options, ReadOptions(init.node));
  WEIR_ASSIGN_OR_RETURN(const Framing framing, ReadFraming(init.node));
  return Kernel(
      [options, framing](KernelContext& c) { return RunMicrofrontend<T>(c, options, framing); });
}

}  // namespace

void AddMicrofrontendCpu(KernelRegistry* r) {
  r->Add("AudioMicrofrontend", kCpu, {{"out_type", DT_UINT16}}, MakeMicrofrontend<uint16_t>);
  r->Add("AudioMicrofrontend", kCpu, {{"out_type", DT_FLOAT}}, MakeMicrofrontend<float>);
}

}  // namespace weir
