#include <cmath>

#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/op_case.h"

// Gradients checked to order 1 by tests: BlockLSTM, BlockLSTMV2.

// Recurrent cells: their steps against the formulas in double, their gradients against central
// differences of the formulas.
namespace weir {

namespace {

using Vec = std::vector<double>;

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

// The arguments of an LSTM. The states are in the order of the op's outputs.
struct Lstm {
  int64_t time = 1, steps = 1, batch = 0, input = 0, width = 0;
  Vec x, cs, h, w, wci, wcf, wco, b;
  double forget_bias = 0, clip = 0;
  bool peephole = false, forget_second = false;

  std::vector<Vec> Run() const {
    std::vector<Vec> out(7, Vec(time * batch * width, 0.0));
    for (int64_t t = 0; t < steps; ++t) {
      for (int64_t r = 0; r < batch; ++r) {
        for (int64_t j = 0; j < width; ++j) Step(t, r, j, &out);
      }
    }
    return out;
  }

 private:
  double Before(const Vec& initial, const Vec& states, int64_t t, int64_t r, int64_t j) const {
    return t == 0 ? initial[r * width + j] : states[((t - 1) * batch + r) * width + j];
  }
  void Step(int64_t t, int64_t r, int64_t j, std::vector<Vec>* out) const {
    const auto gate = [&](int64_t block) {
      const int64_t column = block * width + j;
      double sum = b[column];
      for (int64_t k = 0; k < input; ++k)
        sum += x[(t * batch + r) * input + k] * w[k * 4 * width + column];
      for (int64_t k = 0; k < width; ++k)
        sum += Before(h, (*out)[6], t, r, k) * w[(input + k) * 4 * width + column];
      return sum;
    };
    const double before = Before(cs, (*out)[1], t, r, j), peep = peephole ? 1 : 0;
    const double i = Logistic(gate(0) + peep * wci[j] * before);
    const double g = std::tanh(gate(forget_second ? 2 : 1));
    const double f = Logistic(gate(forget_second ? 1 : 2) + forget_bias + peep * wcf[j] * before);
    double s = i * g + f * before;
    if (clip > 0) s = std::min(std::max(s, -clip), clip);
    const double o = Logistic(gate(3) + peep * wco[j] * s);
    const double states[] = {i, s, f, o, g, std::tanh(s), o * std::tanh(s)};
    for (int k = 0; k < 7; ++k) (*out)[k][(t * batch + r) * width + j] = states[k];
  }
};

Lstm LstmOf(const Node& node, const Tensors& in) {
  Lstm l;
  const bool sequence = node.op_name() != "LSTMBlockCell";
  const int first = sequence ? 1 : 0;
  const Tensor &x = in[first], &cs = in[first + 1];
  l.time = sequence ? x.dim(0) : 1;
  l.steps = sequence ? in[0].scalar<int64_t>() : 1;
  l.batch = x.dim(-2);
  l.input = x.dim(-1);
  l.width = cs.dim(1);
  Vec* const parts[] = {&l.x, &l.cs, &l.h, &l.w, &l.wci, &l.wcf, &l.wco, &l.b};
  for (int k = 0; k < 8; ++k) *parts[k] = ToDoubles(in[first + k]);
  l.forget_bias = node.attr_or<float>("forget_bias", 0);
  l.clip = node.attr_or<float>("cell_clip", 0);
  l.peephole = node.attr<bool>("use_peephole");
  l.forget_second = node.op_name() == "BlockLSTMV2";
  return l;
}

Tensors LstmReference(const Node& node, const Tensors& in) {
  const Lstm l = LstmOf(node, in);
  const Shape shape = node.op_name() == "LSTMBlockCell" ? Shape({l.batch, l.width})
                                                        : Shape({l.time, l.batch, l.width});
  Tensors out;
  for (const Vec& states : l.Run()) out.push_back(Doubles(shape, states));
  return out;
}

struct Gru {
  int64_t batch = 0, input = 0, width = 0;
  Vec x, h, w_ru, w_c, b_ru, b_c;

  // r, u, c, h.
  std::vector<Vec> Run() const {
    std::vector<Vec> out(4, Vec(batch * width));
    const auto column = [&](int64_t row, const Vec& right, const Vec& w, int64_t columns,
                            int64_t j) {
      double sum = 0;
      for (int64_t k = 0; k < input; ++k) sum += x[row * input + k] * w[k * columns + j];
      for (int64_t k = 0; k < width; ++k)
        sum += right[row * width + k] * w[(input + k) * columns + j];
      return sum;
    };
    Vec reset(batch * width);
    for (int64_t r = 0; r < batch; ++r) {
      for (int64_t j = 0; j < width; ++j) {
        const int64_t at = r * width + j;
        out[0][at] = Logistic(column(r, h, w_ru, 2 * width, j) + b_ru[j]);
        out[1][at] = Logistic(column(r, h, w_ru, 2 * width, width + j) + b_ru[width + j]);
        reset[at] = h[at] * out[0][at];
      }
    }
    for (int64_t r = 0; r < batch; ++r) {
      for (int64_t j = 0; j < width; ++j) {
        const int64_t at = r * width + j;
        out[2][at] = std::tanh(column(r, reset, w_c, width, j) + b_c[j]);
        out[3][at] = out[1][at] * h[at] + (1 - out[1][at]) * out[2][at];
      }
    }
    return out;
  }
};

Gru GruOf(const Tensors& in) {
  Gru g;
  g.batch = in[0].dim(0);
  g.input = in[0].dim(1);
  g.width = in[1].dim(1);
  Vec* const parts[] = {&g.x, &g.h, &g.w_ru, &g.w_c, &g.b_ru, &g.b_c};
  for (int k = 0; k < 6; ++k) *parts[k] = ToDoubles(in[k]);
  return g;
}

Tensors GruReference(const Node&, const Tensors& in) {
  const Gru g = GruOf(in);
  Tensors out;
  for (const Vec& states : g.Run()) out.push_back(Doubles(Shape({g.batch, g.width}), states));
  return out;
}

OpCase LstmCase(const char* op, const char* label, int64_t time, int64_t steps, int64_t batch,
                int64_t input, int64_t width) {
  OpCase row(op);
  row.Label(label).Types({DT_HALF, DT_FLOAT}).Reference(LstmReference);
  if (time > 0) {
    row.Input(Tensor::Scalar<int64_t>(steps)).Input({time, batch, input});
  } else {
    row.Input({batch, input});
  }
  row.Input({batch, width}).Input({batch, width}).Input({input + width, 4 * width}, {-1, 1});
  for (int k = 0; k < 3; ++k) row.Input({width});
  return row.Input({4 * width});
}

std::vector<OpCase> RnnCases() {
  const auto gru = [](const char* label, int64_t batch, int64_t input, int64_t width) {
    return OpCase("GRUBlockCell")
        .Label(label)
        .Input({batch, input})
        .Input({batch, width})
        .Input({input + width, 2 * width}, {-1, 1})
        .Input({input + width, width}, {-1, 1})
        .Input({2 * width})
        .Input({width})
        .Reference(GruReference);
  };
  return {
      LstmCase("LSTMBlockCell", "plain", 0, 1, 3, 2, 5).Attr("cell_clip", -1.0f),
      LstmCase("LSTMBlockCell", "peephole", 0, 1, 2, 3, 4)
          .Attr("use_peephole", true)
          .Attr("forget_bias", 0.5f),
      LstmCase("LSTMBlockCell", "clipped", 0, 1, 4, 1, 3).Attr("cell_clip", 0.3f),
      LstmCase("LSTMBlockCell", "no_inputs", 0, 1, 2, 0, 3),
      LstmCase("LSTMBlockCell", "many_rows", 0, 1, 130, 9, 33),
      LstmCase("BlockLSTM", "short", 5, 3, 2, 3, 4).Attr("use_peephole", true),
      LstmCase("BlockLSTM", "no_steps", 2, 0, 2, 3, 1),
      LstmCase("BlockLSTM", "full", 4, 4, 1, 2, 3),
      LstmCase("BlockLSTMV2", "peephole", 3, 3, 2, 3, 4).Attr("use_peephole", true),
      LstmCase("BlockLSTMV2", "clipped", 3, 2, 2, 1, 2).Attr("cell_clip", 0.4f),
      gru("odd", 3, 2, 5),
      gru("no_rows", 0, 2, 5),
      gru("no_inputs", 2, 0, 3),
      gru("many_rows", 130, 9, 33),
  };
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Rnn, OpSweepTest, testing::ValuesIn(RnnCases()), OpCaseName);

namespace {

Tensor Wave(const Shape& shape, double phase) {
  Tensor t(DT_FLOAT, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i)
    t.data<float>()[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i) + phase));
  return t;
}

double Dot(const Vec& a, const Tensor& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b.data<float>()[i];
  return sum;
}

// The derivative of `loss` with respect to every element of `x`.
Vec Differences(Vec* x, const std::function<double()>& loss) {
  constexpr double kStep = 1e-5;
  Vec out;
  for (double& v : *x) {
    const double at = v;
    v = at + kStep;
    const double above = loss();
    v = at - kStep;
    out.push_back((above - loss()) / (2 * kStep));
    v = at;
  }
  return out;
}

void ExpectNear(const Tensor& got, const Vec& want, const char* what) {
  ASSERT_EQ(got.num_elements(), static_cast<int64_t>(want.size())) << what;
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got.data<float>()[i], want[i], 1e-4) << what << " " << i;
}

// The inputs of an LSTM op from x on.
Tensors LstmInputs(int64_t time, int64_t batch, int64_t input, int64_t width) {
  const Shape x = time == 0 ? Shape({batch, input}) : Shape({time, batch, input});
  return {Wave(x, 0),
          Wave({batch, width}, 1),
          Wave({batch, width}, 2),
          Wave({input + width, 4 * width}, 3),
          Wave({width}, 4),
          Wave({width}, 5),
          Wave({width}, 6),
          Wave({4 * width}, 7)};
}

void TestSequenceGradient(const char* suffix, bool peephole, int64_t steps) {
  constexpr int64_t kTime = 3, kBatch = 2, kInput = 2, kWidth = 3;
  Tensors in = LstmInputs(kTime, kBatch, kInput, kWidth);
  in.insert(in.begin(), Tensor::Scalar<int64_t>(steps));
  const std::string op = std::string("BlockLSTM") + suffix;
  const absl::StatusOr<Tensors> states =
      RunFed(op, in, {{"use_peephole", peephole}, {"cell_clip", 0.0f}});
  ASSERT_TRUE(states.ok()) << states.status();
  const Shape all({kTime, kBatch, kWidth});
  Tensor cs_grad = Wave(all, 8), h_grad = Wave(all, 9);
  Tensors grad_in = in;
  grad_in.insert(grad_in.end(), states->begin(), states->end());
  grad_in.insert(grad_in.end(), {cs_grad, h_grad});
  const absl::StatusOr<Tensors> grads =
      RunFed(std::string("BlockLSTMGrad") + suffix, grad_in, {{"use_peephole", peephole}});
  ASSERT_TRUE(grads.ok()) << grads.status();

  Lstm l;
  l.time = kTime;
  l.steps = steps;
  l.batch = kBatch;
  l.input = kInput;
  l.width = kWidth;
  Vec* const parts[] = {&l.x, &l.cs, &l.h, &l.w, &l.wci, &l.wcf, &l.wco, &l.b};
  for (int k = 0; k < 8; ++k) *parts[k] = ToDoubles(in[1 + k]);
  l.forget_bias = *suffix == 0 ? 1 : 0;
  l.peephole = peephole;
  l.forget_second = *suffix != 0;
  const auto loss = [&] {
    const std::vector<Vec> out = l.Run();
    return Dot(out[1], cs_grad) + Dot(out[6], h_grad);
  };
  const char* const names[] = {"x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b"};
  for (int k = 0; k < 8; ++k) ExpectNear((*grads)[k], Differences(parts[k], loss), names[k]);
}

TEST(Rnn, SequenceGradientsMatchDifferences) {
  for (const bool peephole : {false, true}) {
    for (const int64_t steps : {3, 2, 0}) {
      TestSequenceGradient("", peephole, steps);
      TestSequenceGradient("V2", peephole, steps);
    }
  }
}

TEST(Rnn, CellGradientsMatchDifferences) {
  constexpr int64_t kInput = 2, kWidth = 3;  // of one row: the gradient of b is that of the gates
  const Tensors in = LstmInputs(0, 1, kInput, kWidth);
  const absl::StatusOr<Tensors> states = RunFed("LSTMBlockCell", in, {{"use_peephole", true}});
  ASSERT_TRUE(states.ok()) << states.status();
  const Tensor cs_grad = Wave({1, kWidth}, 8), h_grad = Wave({1, kWidth}, 9);
  Tensors grad_in = in;
  grad_in.insert(grad_in.end(), states->begin(), states->end() - 1);
  grad_in.insert(grad_in.end(), {cs_grad, h_grad});
  const absl::StatusOr<Tensors> grads =
      RunFed("LSTMBlockCellGrad", grad_in, {{"use_peephole", true}});
  ASSERT_TRUE(grads.ok()) << grads.status();
  Lstm l;
  l.batch = 1;
  l.input = kInput;
  l.width = kWidth;
  Vec* const parts[] = {&l.x, &l.cs, &l.h, &l.w, &l.wci, &l.wcf, &l.wco, &l.b};
  for (int k = 0; k < 8; ++k) *parts[k] = ToDoubles(in[k]);
  l.forget_bias = 1;
  l.peephole = true;
  const auto loss = [&] {
    const std::vector<Vec> out = l.Run();
    return Dot(out[1], cs_grad) + Dot(out[6], h_grad);
  };
  Vec* const by[] = {&l.cs, &l.b, &l.wci, &l.wcf, &l.wco};
  const char* const names[] = {"cs_prev", "gates", "wci", "wcf", "wco"};
  for (int k = 0; k < 5; ++k) ExpectNear((*grads)[k], Differences(by[k], loss), names[k]);
}

TEST(Rnn, GruGradientsMatchDifferences) {
  constexpr int64_t kInput = 2, kWidth = 3;
  const Tensors in = {Wave({1, kInput}, 0),
                      Wave({1, kWidth}, 1),
                      Wave({kInput + kWidth, 2 * kWidth}, 2),
                      Wave({kInput + kWidth, kWidth}, 3),
                      Wave({2 * kWidth}, 4),
                      Wave({kWidth}, 5)};
  const absl::StatusOr<Tensors> states = RunFed("GRUBlockCell", in);
  ASSERT_TRUE(states.ok()) << states.status();
  const Tensor h_grad = Wave({1, kWidth}, 6);
  Tensors grad_in = in;
  grad_in.insert(grad_in.end(), states->begin(), states->end() - 1);
  grad_in.push_back(h_grad);
  const absl::StatusOr<Tensors> grads = RunFed("GRUBlockCellGrad", grad_in);
  ASSERT_TRUE(grads.ok()) << grads.status();
  Gru g = GruOf(in);
  const auto loss = [&] { return Dot(g.Run()[3], h_grad); };
  Vec* const by[] = {&g.x, &g.h, &g.b_c, &g.b_ru};
  const char* const names[] = {"x", "h_prev", "c", "r and u"};
  for (int k = 0; k < 4; ++k) ExpectNear((*grads)[k], Differences(by[k], loss), names[k]);
}

TEST(Rnn, RejectsIncompatibleShapes) {
  for (int k = 0; k < 8; ++k) {
    Tensors in = LstmInputs(2, 2, 3, 4);
    in.insert(in.begin(), Tensor::Scalar<int64_t>(2));
    in[1 + k] = Wave({2, 2, 2}, 0);
    EXPECT_EQ(RunFed("BlockLSTM", in).status().code(), absl::StatusCode::kInvalidArgument) << k;
  }
  Tensors in = LstmInputs(2, 2, 3, 4);
  in.insert(in.begin(), Tensor::Scalar<int64_t>(3));
  EXPECT_EQ(RunFed("BlockLSTM", in).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace

}  // namespace weir
