#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/linalg/matmul.h"
#include "weir/kernels/random/unigram.h"

// Points and centers of k-means. Squared distances are |p|^2 - 2 p.c + |c|^2, as in TensorFlow, so
// that most of the work is a matrix multiplication. The random draws match TensorFlow's exactly.
namespace weir {

namespace {

float Dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<float> HalfSquaredNorms(const Tensor& rows) {
  const int64_t n = rows.dim(1);
  std::vector<float> norms(static_cast<size_t>(rows.dim(0)));
  for (size_t i = 0; i < norms.size(); ++i) {
    const float* const row = rows.data<float>() + static_cast<int64_t>(i) * n;
    norms[i] = 0.5f * Dot(row, row, n);
  }
  return norms;
}

// ---- the nearest centers

using Candidate =
    std::pair<float, int64_t>;  // half the squared distance without the point's own term; a center

// NaN compares as farthest; ties go to the lower index.
bool Nearer(const Candidate& a, const Candidate& b) {
  const bool nan_a = std::isnan(a.first), nan_b = std::isnan(b.first);
  if (nan_a || nan_b) return nan_a == nan_b ? a.second < b.second : nan_b;
  return a < b;
}

absl::Status CheckNeighbors(const KernelContext& c) {
  const Tensor &points = c.input(0), &centers = c.input(1);
  if (points.rank() != 2) return InvalidArgument("Input points should be a matrix.");
  if (centers.rank() != 2) return InvalidArgument("Input centers should be a matrix.");
  if (c.input(2).rank() != 0) return InvalidArgument("Input k should be a scalar.");
  if (points.dim(0) == 0) return InvalidArgument("Expected points.rows() > 0.");
  if (c.input(2).IntAt(0) < 0)
    return InvalidArgument("Expected k >= 0, but it is ", c.input(2).IntAt(0));
  if (points.dim(1) == centers.dim(1)) return absl::OkStatus();
  return InvalidArgument("Expected point_dimensions == center_dimensions: ", points.dim(1), " vs ",
                         centers.dim(1), ".");
}

absl::Status NearestNeighbors(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(CheckNeighbors(c));
  const Tensor &points = c.input(0), &centers = c.input(1);
  const int64_t n = points.dim(0), dims = points.dim(1), count = centers.dim(0);
  const int64_t k = std::min(count, c.input(2).IntAt(0));
  WEIR_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape({n, k})));
  WEIR_ASSIGN_OR_RETURN(Tensor * distances, c.AllocateOutput(1, Shape({n, k})));
  if (k == 0) return absl::OkStatus();
  const std::vector<float> norms = HalfSquaredNorms(centers);
  constexpr int64_t kProducts = int64_t{1} << 20;  // computed at a time: 4 MB
  const int64_t block = std::clamp<int64_t>(kProducts / count, 1, n);
  WEIR_ASSIGN_OR_RETURN(Tensor products, c.AllocateTemp(DT_FLOAT, Shape({block, count})));
  for (int64_t first = 0; first < n; first += block) {
    ThrowIfCancelled();
    const int64_t rows = std::min(block, n - first);
    const float* const from = points.data<float>() + first * dims;
    WEIR_RETURN_IF_ERROR(RunMatMul(c.pool(), DT_FLOAT,
                                   {.m = rows, .n = count, .k = dims, .transpose_b = true}, from,
                                   centers.data<float>(), products.data<float>()));
    c.pool().ParallelFor(rows, 3 * static_cast<double>(count), [&](int64_t begin, int64_t end) {
      std::vector<Candidate> candidates(static_cast<size_t>(count));
      for (int64_t i = begin; i < end; ++i) {
        const float* const product = products.data<float>() + i * count;
        for (int64_t j = 0; j < count; ++j) candidates[j] = {norms[j] - product[j], j};
        std::partial_sort(candidates.begin(), candidates.begin() + k, candidates.end(), Nearer);
        const float own = Dot(from + i * dims, from + i * dims, dims);
        for (int64_t j = 0; j < k; ++j) {
          indices->data<int64_t>()[(first + i) * k + j] = candidates[j].second;
          distances->data<float>()[(first + i) * k + j] = 2 * candidates[j].first + own;
        }
      }
    });
  }
  return absl::OkStatus();
}

// ---- initial centers

// Draws points one at a time, each with probability proportional to its distance from those drawn
// before.
class Seeding {
 public:
  Seeding(ThreadPool& pool, const Tensor& points, int64_t seed)
      : pool_(pool),
        points_(points),
        words_(Philox(static_cast<uint64_t>(seed), 0)),
        norms_(HalfSquaredNorms(points)),
        nearest_(norms_.size(), std::numeric_limits<float>::infinity()),
        sums_(norms_.size()),
        taken_(norms_.size()) {}

  // Returns the best of 1 + `retries` draws: the one that minimizes the sum of distances to the
  // nearest center.
  int64_t Next(int64_t retries) {
    int64_t best = 0;
    float best_sum = 0;
    std::vector<float> best_nearest;
    for (int64_t i = 0; i <= retries; ++i) {
      ThrowIfCancelled();
      const int64_t drawn = Draw();
      std::vector<float> nearest = NearestWith(drawn);
      const float sum = std::accumulate(nearest.begin(), nearest.end(), 0.0f);
      if (i > 0 && !(sum < best_sum)) continue;
      best = drawn;
      best_sum = sum;
      best_nearest = std::move(nearest);
    }
    nearest_ = std::move(best_nearest);
    std::partial_sum(nearest_.begin(), nearest_.end(), sums_.begin());
    taken_[best] = true;
    any_taken_ = true;
    return best;
  }

 private:
  int64_t count() const { return points_.dim(0); }

  int64_t Draw() {
    if (!any_taken_) {
      return static_cast<int64_t>(
          UnbiasedUniform<uint64_t>(words_, static_cast<uint64_t>(count())));
    }
    // A chosen point is at distance 0 from itself, except for rounding.
    constexpr int kTries = 1000;
    for (int i = 0; i < kTries; ++i) {
      const float at = UnitFloat(words_()) * sums_.back();
      const int64_t index = std::upper_bound(sums_.begin(), sums_.end(), at) - sums_.begin();
      if (index == count()) return count() - 1;  // all remaining points equal chosen ones
      if (!taken_[index]) return index;
    }
    return std::find(taken_.begin(), taken_.end(), false) - taken_.begin();
  }

  // Returns half the squared distances to the nearest among the chosen points and `center`.
  std::vector<float> NearestWith(int64_t center) const {
    std::vector<float> nearest(nearest_.size());
    const int64_t dims = points_.dim(1);
    const float* const p = points_.data<float>();
    pool_.ParallelFor(count(), static_cast<double>(dims), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float distance =
            norms_[i] - Dot(p + i * dims, p + center * dims, dims) + norms_[center];
        nearest[i] = std::min(nearest_[i], distance);
      }
    });
    return nearest;
  }

  ThreadPool& pool_;
  const Tensor& points_;
  PhiloxWords words_;
  const std::vector<float> norms_;
  std::vector<float> nearest_, sums_;  // half squared distances, and their prefix sums
  std::vector<bool> taken_;
  bool any_taken_ = false;
};

absl::Status KmeansPlusPlus(KernelContext& c) {
  const char* const scalars[] = {"num_to_sample", "seed", "num_retries_per_sample"};
  const Tensor& points = c.input(0);
  if (points.rank() != 2) return InvalidArgument("Input points should be a matrix.");
  for (int i = 1; i < 4; ++i) {
    if (c.input(i).rank() != 0)
      return InvalidArgument("Input ", scalars[i - 1], " should be a scalar.");
  }
  const int64_t rows = points.dim(0), dims = points.dim(1), count = c.input(1).IntAt(0);
  if (rows == 0) return InvalidArgument("Expected points.rows() > 0.");
  if (count <= 0) return InvalidArgument("Expected num_to_sample > 0.");
  if (count > rows) {
    return InvalidArgument("Expected num_to_sample <= points.rows(). ", count, " vs ", rows, ".");
  }
  int64_t retries = c.input(3).IntAt(0);
  if (retries < 0) retries = 2 + static_cast<int64_t>(std::log(static_cast<double>(count)));
  WEIR_ASSIGN_OR_RETURN(Tensor * samples, c.AllocateOutput(0, Shape({count, dims})));
  Seeding seeding(c.pool(), points, c.input(2).IntAt(0));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t next = seeding.Next(retries);
    std::copy_n(points.data<float>() + next * dims, dims, samples->data<float>() + i * dims);
  }
  return absl::OkStatus();
}

absl::Status Kmc2Chain(KernelContext& c) {
  const Tensor& distances = c.input(0);
  if (distances.rank() != 1) return InvalidArgument("Input distances should be a vector.");
  if (c.input(1).rank() != 0) return InvalidArgument("Input seed should be a scalar.");
  if (distances.dim(0) == 0) return InvalidArgument("Expected distances_tensor.size() > 0.");
  PhiloxWords words(Philox(static_cast<uint64_t>(c.input(1).IntAt(0)), 0));
  const float* const d = distances.data<float>();
  int64_t at = 0;
  for (int64_t i = 1; i < distances.dim(0); ++i) {
    if (d[i] > UnitFloat(words()) * d[at]) at = i;
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * index, c.AllocateOutput(0, Shape()));
  *index->data<int64_t>() = at;
  return absl::OkStatus();
}

}  // namespace

void AddClusteringCpu(KernelRegistry* r) {
  r->Add("NearestNeighbors", kCpu, NearestNeighbors);
  r->Add("KmeansPlusPlusInitialization", kCpu, KmeansPlusPlus);
  r->Add("KMC2ChainInitialization", kCpu, Kmc2Chain);
}

}  // namespace weir
