#include <cmath>
#include <map>

#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/nn/ctc.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/pick.h"

// Gradients checked to order 1 by tests: CTCLoss, CTCLossV2.

// Connectionist temporal classification compared with the sum over all paths.
namespace weir {

namespace {

using pick::I32;
using pick::I64;
using pick::Index;

using Sequence = std::vector<int>;

struct Problem {
  int64_t time = 0, batch = 0, classes = 0;
  std::vector<double> x;
  std::vector<int64_t> lengths;
  int blank = 0;

  double LogY(int64_t t, int64_t b, int64_t c) const {
    const double* row = x.data() + (t * batch + b) * classes;
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) sum += std::exp(row[k]);
    return row[c] - std::log(sum);
  }

  // Returns the probability of each label sequence that paths of sequence b collapse to. Without
  // `merge` repeated symbols of a path are not collapsed.
  std::map<Sequence, double> SequenceProbabilities(int64_t b, bool merge) const {
    std::map<Sequence, double> out;
    Sequence path;
    const std::function<void(double)> extend = [&](double p) {
      const int64_t t = static_cast<int64_t>(path.size());
      if (t == lengths[b]) {
        Sequence labels;
        for (size_t i = 0; i < path.size(); ++i) {
          if (path[i] == blank || (merge && i > 0 && path[i] == path[i - 1])) continue;
          labels.push_back(path[i]);
        }
        out[labels] += p;
        return;
      }
      for (int64_t c = 0; c < classes; ++c) {
        path.push_back(static_cast<int>(c));
        extend(p * std::exp(LogY(t, b, c)));
        path.pop_back();
      }
    };
    extend(1);
    return out;
  }
};

Problem ProblemOf(const Tensor& x, const Tensor& lengths, int blank) {
  Problem p{x.dim(0), x.dim(1), x.dim(2), ToDoubles(x), pick::Ints(lengths), 0};
  p.blank = blank < 0 ? static_cast<int>(p.classes) + blank : blank;
  return p;
}

std::vector<Sequence> LabelsOf(const Tensor& indices, const Tensor& values, int64_t batch) {
  std::vector<Sequence> labels(batch);
  for (int64_t i = 0; i < values.num_elements(); ++i)
    labels[indices.data<int64_t>()[2 * i]].push_back(static_cast<int>(values.IntAt(i)));
  return labels;
}

Tensors LossReference(const Node& node, const Tensors& in) {
  Problem p = ProblemOf(in[0], in[3], node.op_name() == "CTCLossV2" ? 0 : -1);
  const std::vector<Sequence> labels = LabelsOf(in[1], in[2], p.batch);
  const bool merge = node.attr<bool>("ctc_merge_repeated");
  const auto loss = [&](int64_t b) {
    Sequence expected;
    for (size_t i = 0; i < labels[b].size(); ++i) {
      const bool repeated = i > 0 && labels[b][i] == labels[b][i - 1];
      if (!repeated || !node.attr<bool>("preprocess_collapse_repeated"))
        expected.push_back(labels[b][i]);
    }
    const bool too_long = static_cast<int64_t>(labels[b].size()) > p.lengths[b];
    if (p.lengths[b] == 0 || too_long) return 0.0;
    return -std::log(p.SequenceProbabilities(b, merge)[expected]);
  };
  std::vector<double> losses, gradient(p.x.size());
  for (int64_t b = 0; b < p.batch; ++b) losses.push_back(loss(b));
  for (size_t i = 0; i < p.x.size(); ++i) {
    const int64_t b = static_cast<int64_t>(i) / p.classes % p.batch;
    const double at = p.x[i];
    p.x[i] = at + 1e-5;
    const double above = loss(b);
    p.x[i] = at - 1e-5;
    gradient[i] = (above - loss(b)) / 2e-5;
    p.x[i] = at;
  }
  return {Doubles(Shape({p.batch}), losses), Doubles(in[0].shape(), gradient)};
}

Tensor Pairs(std::initializer_list<int64_t> values) {
  return Tensor::Of<int64_t>(Shape({static_cast<int64_t>(values.size()) / 2, 2}), values);
}

std::vector<OpCase> CtcCases() {
  const auto loss = [](const char* op, const char* label, std::initializer_list<int32_t> labels,
                       std::initializer_list<int32_t> lengths) {
    OpCase row(op);
    row.Label(label);
    if (row.op() == "CTCLoss") {
      row.Input({5, 3, 4});
    } else {
      row.Input(DT_FLOAT, {5, 3, 4});
    }
    return row.Input(Pairs({0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 2, 0}))
        .Input(I32(labels))
        .Input(I32(lengths))
        .Gradient(0)
        .Tolerance(DT_DOUBLE, 1e-8)
        .Reference(LossReference);
  };
  return {
      loss("CTCLoss", "plain", {0, 1, 2, 2, 0, 1}, {5, 4, 3}),
      loss("CTCLoss", "repeated", {1, 1, 0, 2, 2, 0}, {5, 3, 1}),
      loss("CTCLoss", "collapsed", {1, 1, 0, 2, 2, 0}, {5, 3, 1})
          .Attr("preprocess_collapse_repeated", true),
      loss("CTCLoss", "unmerged", {1, 1, 0, 2, 0, 0}, {5, 3, 2}).Attr("ctc_merge_repeated", false),
      loss("CTCLoss", "too_short", {0, 1, 2, 2, 0, 1}, {2, 4, 0})
          .Attr("ignore_longer_outputs_than_inputs", true),
      loss("CTCLossV2", "plain", {3, 1, 2, 2, 2, 1}, {5, 4, 3}),
  };
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Ctc, OpSweepTest, testing::ValuesIn(CtcCases()), OpCaseName);

namespace {

Tensor Activations(const Shape& shape) {
  Tensor t(DT_FLOAT, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i)
    t.data<float>()[i] = static_cast<float>(2 * std::sin(2.7 * static_cast<double>(i * i)));
  return t;
}

TEST(Ctc, BeamSearchFindsTheLikeliestSequences) {
  const Tensor x = Activations({5, 2, 4}), lengths = I32({5, 3});
  const Problem p = ProblemOf(x, lengths, -1);
  constexpr int kPaths = 3;
  const absl::StatusOr<Tensors> out =
      RunFed("CTCBeamSearchDecoder", {x, lengths},
             {{"beam_width", 2000}, {"top_paths", kPaths}, {"merge_repeated", false}});
  ASSERT_TRUE(out.ok()) << out.status();
  std::vector<std::vector<Sequence>> decoded;
  for (int k = 0; k < kPaths; ++k)
    decoded.push_back(LabelsOf((*out)[k], (*out)[kPaths + k], p.batch));
  for (int64_t b = 0; b < p.batch; ++b) {
    std::vector<std::pair<double, Sequence>> best;
    for (const auto& [labels, probability] : p.SequenceProbabilities(b, true))
      best.push_back({-probability, labels});
    std::sort(best.begin(), best.end());
    for (int k = 0; k < kPaths; ++k) {
      EXPECT_EQ(decoded[k][b], best[k].second) << b << " " << k;
      EXPECT_NEAR((*out)[3 * kPaths].data<float>()[b * kPaths + k], std::log(-best[k].first), 1e-5);
    }
  }
  EXPECT_EQ((*out)[2 * kPaths].IntAt(0), 2);
}

TEST(Ctc, ANarrowBeamKeepsToItsWidth) {
  const Tensor x = Activations({9, 1, 6}), lengths = I32({9});
  for (const int width : {1, 2, 5}) {
    const absl::StatusOr<Tensors> out =
        RunFed("CTCBeamSearchDecoder", {x, lengths}, {{"beam_width", width}, {"top_paths", 1}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_LE((*out)[3].data<float>()[0], 0);
  }
  EXPECT_EQ(RunFed("CTCBeamSearchDecoder", {x, lengths}, {{"beam_width", 2}, {"top_paths", 3}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Ctc, GreedyDecoderTakesTheBestOfEachStep) {
  // Classes 0 0 blank 0 2 in the first sequence, 1 1 in the second.
  const Tensor x = Tensor::Of<float>({5, 2, 3}, {9, 0, 0, 0, 8, 0, 7, 0, 0, 0, 6, 0, 0, 5, 0,
                                                 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0});
  const Tensor lengths = I32({5, 2});
  const absl::StatusOr<Tensors> merged =
      RunFed("CTCGreedyDecoder", {x, lengths}, {{"merge_repeated", true}, {"blank_index", 1}});
  ASSERT_TRUE(merged.ok()) << merged.status();
  const std::vector<Sequence> labels = LabelsOf((*merged)[0], (*merged)[1], 2);
  EXPECT_EQ(labels[0], (Sequence{0, 0, 2}));
  EXPECT_TRUE(labels[1].empty());
  EXPECT_EQ(pick::Ints((*merged)[2]), (Index{2, 3}));
  EXPECT_EQ((*merged)[3].data<float>()[0], -28);
  EXPECT_EQ((*merged)[3].data<float>()[1], -14);
  const absl::StatusOr<Tensors> all = RunFed("CTCGreedyDecoder", {x, lengths});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(LabelsOf((*all)[0], (*all)[1], 2)[0], (Sequence{0, 0, 1, 0}));
  EXPECT_EQ(LabelsOf((*all)[0], (*all)[1], 2)[1], (Sequence{1, 1}));
}

TEST(Ctc, TheGradientIsTheSecondOutputTimesDy) {
  Graph g;
  const Output x = Const(g, Activations({4, 2, 3}));
  const SparseTensor labels = {Const(g, Pairs({0, 0, 1, 0})), Const(g, I32({1, 0})),
                               Const(g, I64({2, 1}))};
  const Output loss = CtcLoss(labels, x, Const(g, I32({4, 3})));
  const Output weighted = AddOp("Mul", {loss, Const<float>(g, {2, -3})});
  const Outputs grads = DenseGradients({weighted}, {x});
  ASSERT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> out = Evaluate(g, {grads[0], loss.node->output(1)});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int64_t i = 0; i < 24; ++i) {
    const float dy = i / 3 % 2 == 0 ? 2 : -3;
    EXPECT_FLOAT_EQ((*out)[0].data<float>()[i], dy * (*out)[1].data<float>()[i]);
  }
}

TEST(Ctc, RefusesWhatIsNoSequence) {
  const Tensor x = Activations({4, 2, 3}), values = I32({1, 0}), lengths = I32({4, 3});
  const Tensor indices = Pairs({0, 0, 1, 0});
  const struct {
    Tensors inputs;
    const char* message;
  } rows[] = {
      {{Activations({4, 2}), indices, values, lengths}, "inputs is not a 3-Tensor"},
      {{Activations({0, 2, 3}), indices, values, I32({0, 0})}, "Max time"},
      {{x, indices, values, I32({5, 3})}, "sequence_length(0) <= 4"},
      {{x, indices, values, I32({4})}, "len(sequence_length) != batch_size"},
      {{x, Pairs({0, 0, 2, 0}), values, lengths}, "out of bounds"},
      {{x, Pairs({1, 0, 0, 0}), values, lengths}, "out of order"},
      {{x, Pairs({0, 0, 0, 1}), values, lengths}, "Labels length is zero in batch 1"},
      {{x, indices, I32({-1, 0}), lengths}, "nonnegative"},
      {{x, Pairs({0, 0, 0, 1, 1, 0}), I32({2, 1, 0}), lengths}, "following a null label"},
      {{x, Pairs({0, 0, 0, 1, 1, 0}), I32({0, 1, 0}), I32({1, 3})}, "Not enough time"},
  };
  for (const auto& row : rows) {
    const absl::Status status = RunFed("CTCLoss", row.inputs).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.message;
    EXPECT_NE(status.message().find(row.message), std::string::npos) << status;
  }
}

}  // namespace

}  // namespace weir
