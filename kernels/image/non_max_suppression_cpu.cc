#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <type_traits>
#include <vector>

#include "weir/kernels/image/box_set.h"
#include "weir/kernels/image/image.h"
#include "weir/kernels/image/score_order.h"
#include "weir/kernels/lib/arguments.h"

// Non-maximum suppression: among overlapping boxes, keeps the one with the highest score.
//
// Greedy: candidates are taken in the order of their scores. A candidate that overlaps a selected
// box by more than a threshold is dropped. With a sigma ("soft" suppression, Bodla et al., 2017)
// its score is instead multiplied by exp(-overlap^2 / (2 sigma)) for each selected box, and it is
// pushed back to a priority queue; a candidate is selected if its score has not changed since it
// was pushed. So each candidate stores how many selected boxes it has been compared with. Overlap
// is the intersection over union of two boxes, whose corners may be in any order.
namespace weir {

namespace {

// The overlap of boxes i and j.
using Similarity = std::function<float(int64_t, int64_t)>;

struct Limits {
  int64_t count = 0;
  float overlap = 0, score = 0, sigma = 0;
};

struct Candidate {
  int64_t box = 0;
  float score = 0;
  size_t compared = 0;  // number of selected boxes it was compared with
  // Lower priority; with equal scores, the later box.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.score < b.score || (a.score == b.score && a.box > b.box);
  }
};

// As if computed in T.
template <class T>
float Rounded(float v) {
  return static_cast<float>(static_cast<T>(v));
}

// Scores are rounded to T after every operation.
template <class T>
std::vector<Candidate> SuppressSoftly(const T* scores, int64_t n, const Similarity& similarity,
                                      const Limits& limits) {
  const auto round = Rounded<T>;
  const float scale = round(-0.5f / limits.sigma);
  std::priority_queue<Candidate> queue;
  for (int64_t i = 0; i < n; ++i) {
    const float score = static_cast<float>(scores[i]);
    if (score > limits.score) queue.push({i, score, 0});
  }
  std::vector<Candidate> chosen;
  while (static_cast<int64_t>(chosen.size()) < limits.count && !queue.empty()) {
    ThrowIfCancelled();
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    for (size_t j = chosen.size(); j > next.compared; --j) {
      const float overlap = round(similarity(next.box, chosen[j - 1].box));
      next.score = round(next.score * round(std::exp(round(round(scale * overlap) * overlap))));
      if (next.score <= limits.score) break;
    }
    next.compared = chosen.size();
    if (next.score == before) {
      chosen.push_back(next);
    } else if (next.score > limits.score) {
      queue.push(next);
    }
  }
  return chosen;
}

// `choose` returns false for a box that overlaps a chosen one; otherwise it remembers the box.
template <class T, class Choose>
std::vector<Candidate> SelectInOrder(const T* scores, int64_t n, const Limits& limits,
                                     const Choose& choose) {
  ScoreOrder order(scores, n, limits.score);
  std::vector<Candidate> chosen;
  while (static_cast<int64_t>(chosen.size()) < limits.count) {
    ThrowIfCancelled();
    const int64_t box = order.Next();
    if (box < 0) break;
    if (choose(box)) chosen.push_back({box, static_cast<float>(scores[box])});
  }
  return chosen;
}

template <class T>
std::vector<Candidate> SuppressByPairs(const T* scores, int64_t n, const Similarity& similarity,
                                       const Limits& limits) {
  if (limits.sigma > 0) return SuppressSoftly(scores, n, similarity, limits);
  std::vector<int64_t> chosen;
  return SelectInOrder(scores, n, limits, [&](int64_t box) {
    for (const int64_t other : chosen) {
      if (Rounded<T>(similarity(box, other)) > limits.overlap) return false;
    }
    chosen.push_back(box);
    return true;
  });
}

// `corners` returns the address of the four coordinates of a box.
template <class T, class Corners>
std::vector<Candidate> SuppressBoxes(const T* scores, int64_t n, const Corners& corners,
                                     const Limits& limits) {
  if (!std::is_same_v<T, float> || limits.sigma > 0) {
    const auto similarity = [&](int64_t i, int64_t j) {
      return Overlap(Box::OfCorners(corners(i)), Box::OfCorners(corners(j)));
    };
    return SuppressByPairs(scores, n, similarity, limits);
  }
  BoxSet chosen;
  return SelectInOrder(scores, n, limits, [&](int64_t i) {
    const Box box = Box::OfCorners(corners(i));
    if (chosen.HasOverlap(box, limits.overlap)) return false;
    chosen.Add(box);
    return true;
  });
}

// ---- ops on a single list of boxes

absl::Status CheckBoxes(const Tensor& boxes, const Tensor& scores, bool overlaps) {
  if (boxes.rank() != 2) {
    return InvalidArgument(overlaps ? "overlaps" : "boxes", " must be 2-D, but have shape ",
                           boxes.shape().ToString(), " (Shape must be rank 2 but is rank ",
                           boxes.rank(), ")");
  }
  if (overlaps && boxes.dim(0) != boxes.dim(1)) {
    return InvalidArgument("overlaps must be square, but have shape ", boxes.shape().ToString());
  }
  if (!overlaps && boxes.dim(1) != 4) {
    return InvalidArgument("boxes must have 4 columns (Dimension must be 4 but is ", boxes.dim(1),
                           ")");
  }
  if (scores.rank() != 1) {
    return InvalidArgument("scores must be 1-D, but have shape ", scores.shape().ToString(),
                           " (Shape must be rank 1 but is rank ", scores.rank(), ")");
  }
  if (scores.dim(0) != boxes.dim(0)) {
    return InvalidArgument("scores has incompatible shape (Dimensions must be equal, but are ",
                           boxes.dim(0), " and ", scores.dim(0), ")");
  }
  return absl::OkStatus();
}

// Reads a threshold input, rounded to T.
template <class T>
absl::StatusOr<float> Threshold(const KernelContext& c, int i, absl::string_view argument) {
  WEIR_RETURN_IF_ERROR(CheckScalar(c.input(i), argument));
  WEIR_ASSIGN_OR_RETURN(const double value, ReadReal(c.input(i), argument));
  return static_cast<float>(static_cast<T>(static_cast<float>(value)));
}

struct NmsOptions {
  float iou_threshold = 0.5f;  // attribute of the first version
  bool pad = false, overlaps = false;
};

template <class T>
absl::StatusOr<Limits> ReadLimits(const KernelContext& c, const NmsOptions& o) {
  Limits limits;
  WEIR_RETURN_IF_ERROR(CheckScalar(c.input(2), "max_output_size"));
  limits.count = c.input(2).scalar<int32_t>();
  limits.overlap = o.iou_threshold;
  limits.score = -std::numeric_limits<float>::infinity();
  if (c.num_inputs() > 3) {
    WEIR_ASSIGN_OR_RETURN(limits.overlap, Threshold<T>(c, 3, "iou_threshold"));
  }
  if (c.num_inputs() > 4) {
    WEIR_ASSIGN_OR_RETURN(limits.score, Threshold<T>(c, 4, "score_threshold"));
  }
  if (c.num_inputs() > 5) {
    WEIR_ASSIGN_OR_RETURN(limits.sigma, Threshold<T>(c, 5, "soft_nms_sigma"));
  }
  if (!o.overlaps && !(limits.overlap >= 0 && limits.overlap <= 1)) {
    return InvalidArgument("iou_threshold must be in [0, 1], but is ", limits.overlap);
  }
  if (!(limits.sigma >= 0)) {
    return InvalidArgument("soft_nms_sigma_val must be >= 0, but is ", limits.sigma);
  }
  if (limits.count < 0) {
    return InvalidArgument("output size must be non-negative, but is ", limits.count);
  }
  return limits;
}

// Outputs: indices, (version 5) scores, (version 4 and up) the number of valid ones before padding.
template <class T>
absl::Status WriteChosen(KernelContext& c, const std::vector<Candidate>& chosen, int64_t size) {
  WEIR_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape({size})));
  std::fill_n(indices->data<int32_t>(), size, 0);
  for (size_t i = 0; i < chosen.size(); ++i) {
    indices->data<int32_t>()[i] = static_cast<int32_t>(chosen[i].box);
  }
  if (c.num_outputs() == 3) {
    WEIR_ASSIGN_OR_RETURN(Tensor * scores, c.AllocateOutput(1, Shape({size})));
    std::fill_n(scores->data<T>(), size, T(0));
    for (size_t i = 0; i < chosen.size(); ++i) {
      scores->data<T>()[i] = static_cast<T>(chosen[i].score);
    }
  }
  if (c.num_outputs() > 1) {
    WEIR_ASSIGN_OR_RETURN(Tensor * valid, c.AllocateOutput(c.num_outputs() - 1, Shape()));
    valid->data<int32_t>()[0] = static_cast<int32_t>(chosen.size());
  }
  return absl::OkStatus();
}

template <class T>
absl::Status NonMaxSuppression(KernelContext& c, const NmsOptions& o) {
  const Tensor &boxes = c.input(0), &scores = c.input(1);
  WEIR_ASSIGN_OR_RETURN(const Limits limits, ReadLimits<T>(c, o));
  WEIR_RETURN_IF_ERROR(CheckBoxes(boxes, scores, o.overlaps));
  const T* const from = boxes.data<T>();
  const int64_t n = boxes.dim(0);
  const auto similarity = [&](int64_t i, int64_t j) { return static_cast<float>(from[i * n + j]); };
  const auto corners = [&](int64_t i) { return from + 4 * i; };
  const std::vector<Candidate> chosen =
      o.overlaps ? SuppressByPairs(scores.data<T>(), n, similarity, limits)
                 : SuppressBoxes(scores.data<T>(), n, corners, limits);
  return WriteChosen<T>(c, chosen, o.pad ? limits.count : static_cast<int64_t>(chosen.size()));
}

KernelFactory WithOptions(absl::Status (*run)(KernelContext&, const NmsOptions&)) {
  return [run](const KernelInit& init) -> absl::StatusOr<Kernel> {
    NmsOptions o;
    o.iou_threshold = init.node.attr_or<float>("iou_threshold", 0);
    o.pad = init.node.attr_or<bool>("pad_to_max_output_size", false);
    o.overlaps = init.node.op_name() == "NonMaxSuppressionWithOverlaps";
    if (!(o.iou_threshold >= 0 && o.iou_threshold <= 1)) {
      return InvalidArgument("iou_threshold must be in [0, 1], but is ", o.iou_threshold);
    }
    return Kernel([run, o](KernelContext& c) { return run(c, o); });
  };
}

// ---- CombinedNonMaxSuppression: per class of each image, followed by the best of all classes

struct Detections {
  int64_t batch, boxes, box_classes, classes;
  int64_t per_image;  // capacity for detections
  Limits limits;      // per class
  bool clip;
  const float *corners, *scores;
};

struct Detection {
  float score;
  int64_t label;
  const float* corners;
};

std::vector<Detection> DetectIn(const Detections& d, int64_t image) {
  std::vector<Detection> all;
  std::vector<float> scores(d.boxes);
  for (int64_t label = 0; label < d.classes; ++label) {
    const auto corners = [&](int64_t box) {
      const int64_t of_class = d.box_classes > 1 ? label : 0;
      return d.corners + ((image * d.boxes + box) * d.box_classes + of_class) * 4;
    };
    for (int64_t i = 0; i < d.boxes; ++i) {
      scores[i] = d.scores[(image * d.boxes + i) * d.classes + label];
    }
    for (const Candidate& k : SuppressBoxes(scores.data(), d.boxes, corners, d.limits)) {
      all.push_back({k.score, label, corners(k.box)});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  if (static_cast<int64_t>(all.size()) > d.per_image) all.resize(d.per_image);
  return all;
}

absl::StatusOr<Detections> ReadDetections(const KernelContext& c, bool pad_per_class, bool clip) {
  const Tensor &boxes = c.input(0), &scores = c.input(1);
  const char* const names[] = {"max_size_per_class", "max_total_size", "iou_threshold",
                               "score_threshold"};
  for (int i = 2; i < 6; ++i) WEIR_RETURN_IF_ERROR(CheckScalar(c.input(i), names[i - 2]));
  if (boxes.rank() != 4) {
    return InvalidArgument("boxes must be 4-D, but have shape ", boxes.shape().ToString());
  }
  if (scores.rank() != 3) {
    return InvalidArgument("scores must be 3-D, but have shape ", scores.shape().ToString());
  }
  if (boxes.dim(0) != scores.dim(0)) {
    return InvalidArgument("boxes and scores must have same batch size");
  }
  if (boxes.dim(2) != 1 && boxes.dim(2) != scores.dim(2)) {
    return InvalidArgument("third dimension of boxes must be either 1 or num classes");
  }
  if (boxes.dim(3) != 4) return InvalidArgument("boxes must have 4 columns");
  if (scores.dim(1) != boxes.dim(1)) {
    return InvalidArgument("scores has incompatible shape: ", scores.shape().ToString(), " for ",
                           boxes.dim(1), " boxes");
  }
  const int64_t per_class = c.input(2).scalar<int32_t>(), total = c.input(3).scalar<int32_t>();
  if (per_class <= 0) return InvalidArgument("max_size_per_class must be positive");
  if (total <= 0) return InvalidArgument("max_total_size must be > 0");
  const Limits limits = {per_class, c.input(4).scalar<float>(), c.input(5).scalar<float>(), 0};
  if (!(limits.overlap >= 0 && limits.overlap <= 1)) {
    return InvalidArgument("iou_threshold must be in [0, 1]");
  }
  const int64_t room = pad_per_class ? std::min(total, per_class * scores.dim(2)) : total;
  return Detections{boxes.dim(0), boxes.dim(1), boxes.dim(2),        scores.dim(2),       room,
                    limits,       clip,         boxes.data<float>(), scores.data<float>()};
}

absl::Status Combined(KernelContext& c, bool pad_per_class, bool clip) {
  WEIR_ASSIGN_OR_RETURN(const Detections d, ReadDetections(c, pad_per_class, clip));
  const Shape shape({d.batch, d.per_image});
  WEIR_ASSIGN_OR_RETURN(Tensor * boxes, c.AllocateOutput(0, Shape({d.batch, d.per_image, 4})));
  WEIR_ASSIGN_OR_RETURN(Tensor * scores, c.AllocateOutput(1, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor * classes, c.AllocateOutput(2, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor * valid, c.AllocateOutput(3, Shape({d.batch})));
  for (Tensor* t : {boxes, scores, classes}) std::fill_n(t->data<float>(), t->num_elements(), 0.0f);
  for (int64_t image = 0; image < d.batch; ++image) {
    ThrowIfCancelled();
    const std::vector<Detection> found = DetectIn(d, image);
    valid->data<int32_t>()[image] = static_cast<int32_t>(found.size());
    int64_t at = image * d.per_image;
    for (const Detection& detection : found) {
      scores->data<float>()[at] = detection.score;
      classes->data<float>()[at] = static_cast<float>(detection.label);
      for (int k = 0; k < 4; ++k) {
        const float v = detection.corners[k];
        boxes->data<float>()[4 * at + k] = d.clip ? std::max(std::min(v, 1.0f), 0.0f) : v;
      }
      ++at;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeCombined(const KernelInit& init) {
  const bool pad = init.attr<bool>("pad_per_class"), clip = init.attr<bool>("clip_boxes");
  return Kernel([pad, clip](KernelContext& c) { return Combined(c, pad, clip); });
}

}  // namespace

void AddNonMaxSuppressionCpu(KernelRegistry* r) {
  r->Add("NonMaxSuppression", kCpu, WithOptions(NonMaxSuppression<float>));
  r->Add("NonMaxSuppressionWithOverlaps", kCpu, WithOptions(NonMaxSuppression<float>));
  for (const char* op : {"NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4",
                         "NonMaxSuppressionV5"}) {
    r->Add(op, kCpu, DT_FLOAT, WithOptions(NonMaxSuppression<float>));
    r->Add(op, kCpu, DT_HALF, WithOptions(NonMaxSuppression<half>));
  }
  r->Add("CombinedNonMaxSuppression", kCpu, MakeCombined);
}

}  // namespace weir
