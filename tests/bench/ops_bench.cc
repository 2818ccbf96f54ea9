// W10 of the suite: single ops, and a chain of elementwise ops, on variables. The result is
// computed and not copied.

#include <cstdio>

#include "absl/flags/flag.h"
#include "weir/session/weir.h"
#include "weir/tests/bench/timing.h"

ABSL_FLAG(std::string, only, "", "only cases whose names contain this");
ABSL_FLAG(double, budget, 2, "seconds per measurement");
ABSL_FLAG(int, threads, 2, "number of threads of the session");
ABSL_FLAG(std::vector<std::string>, disable, {}, "optimizations to disable");

namespace weir::bench {
namespace {

struct Case {
  std::string name;
  std::function<Output(const Outputs&)> op;
  std::vector<Shape> shapes;
  // The compulsory memory traffic, or otherwise the arithmetic.
  double bytes = 0, flops = 0;
  DataType dtype = DT_FLOAT;
};

Output Chain10(const Outputs& in) {
  const Output x = in[0];
  const Output y = Sqrt(Square(Maximum(x * 1.1f + 0.5f, 0.f)) + x);
  return -(Minimum(y * 0.9f, 6.f) - x);
}

// A layer norm decomposed as by tf.nn.moments and the formula.
Output LayerNorm(const Outputs& in) {
  const MomentsResult m = Moments(in[0], {-1}, /*keep_dims=*/true);
  return (in[0] - m.mean) * Rsqrt(m.variance + 1e-5f) * in[1] + in[2];
}

// The gradient of a factor that all rows share.
Output FactorGradient(const Outputs& in) { return ReduceSum(in[0] * in[1], {0}); }

std::vector<Case> Cases() {
  constexpr int64_t n = 16 << 20, rows = 16384, columns = 1024, side = 4096;
  const Shape flat({n}), square({side, side}), images({32, 56, 56, 64});
  const double images_bytes = 8. * 32 * 56 * 56 * 64;
  const auto row_sums = [](const Outputs& in) { return ReduceSum(in[0], {1}); };
  const auto column_sums = [](const Outputs& in) { return ReduceSum(in[0], {0}); };
  const auto to_nchw = [](const Outputs& in) { return Transpose(in[0], {0, 3, 1, 2}); };
  const auto product = [](const Outputs& in) { return MatMul(in[0], in[1]); };
  const auto conv = [](const Outputs& in) {
    return Conv2D(in[0], in[1],
                  {.padding = "EXPLICIT", .explicit_paddings = {0, 0, 1, 1, 1, 1, 0, 0}});
  };
  std::vector<Case> out = {
      {"elt10_16M", Chain10, {flat}, 8. * n},
      {"add_16M", [](const Outputs& in) { return in[0] + in[1]; }, {flat, flat}, 12. * n},
      {"tanh_16M", [](const Outputs& in) { return Tanh(in[0]); }, {flat}, 8. * n},
      {"exp_16M", [](const Outputs& in) { return Exp(in[0]); }, {flat}, 8. * n},
      {"softmax_16384x1024",
       [](const Outputs& in) { return Softmax(in[0]); },
       {Shape({rows, columns})},
       8. * n},
      {"layernorm_16384x1024",
       LayerNorm,
       {Shape({rows, columns}), Shape({columns}), Shape({columns})},
       8. * n},
      {"reduce_rows_4096x4096", row_sums, {square}, 4. * n},
      {"reduce_cols_4096x4096", column_sums, {square}, 4. * n},
      {"squared_error_16M",
       [](const Outputs& in) { return ReduceMean(SquaredDifference(in[0], in[1])); },
       {flat, flat},
       8. * n},
      {"factor_gradient_16384x1024",
       FactorGradient,
       {Shape({rows, columns}), Shape({rows, columns})},
       8. * n},
      {"transpose_4096x4096", [](const Outputs& in) { return Transpose(in[0]); }, {square}, 8. * n},
      {"nhwc_to_nchw_32x56x56x64", to_nchw, {images}, images_bytes},
  };
  for (const DataType dtype : {DT_FLOAT, DT_BFLOAT16}) {
    for (const int64_t m : {256, 1024, 4096}) {
      if (dtype == DT_BFLOAT16 && m == 256) continue;
      const char* type = dtype == DT_FLOAT ? "f32" : "bf16";
      out.push_back({absl::StrCat("matmul_", type, "_", m),
                     product,
                     {Shape({m, m}), Shape({m, m})},
                     0,
                     2. * static_cast<double>(m * m * m),
                     dtype});
    }
  }
  for (const int64_t batch : {1, 16}) {
    for (const auto& [c, hw] : {std::pair{64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
      for (const DataType dtype : {DT_FLOAT, DT_BFLOAT16}) {
        out.push_back({absl::StrCat("conv3x3_", dtype == DT_FLOAT ? "" : "bf16_", "n", batch, "_c",
                                    c, "_hw", hw),
                       conv,
                       {Shape({batch, hw, hw, c}), Shape({3, 3, c, c})},
                       0,
                       2. * static_cast<double>(batch * hw * hw * c * c) * 9,
                       dtype});
      }
    }
  }
  return out;
}

absl::Status Run(const Case& c) {
  Graph g;
  Outputs in;
  for (const Shape& shape : c.shapes) {
    const Variable v =
        GetVariable(g, absl::StrCat("x", in.size()), shape,
                    {.initializer = RandomUniformInitializer(0, 1, 20), .dtype = c.dtype});
    in.push_back(v.value());
  }
  const Output out = c.op(in);
  const Operation init = GlobalVariablesInitializer(g);
  WEIR_RETURN_IF_ERROR(g.status());
  SessionOptions options{.num_threads = absl::GetFlag(FLAGS_threads)};
  for (const std::string& name : absl::GetFlag(FLAGS_disable)) options.disable.insert(name);
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g, std::move(options)));
  WEIR_RETURN_IF_ERROR(session.Run(Feeds{}, Outputs{}, {init}).status());
  WEIR_ASSIGN_OR_RETURN(const Step step, session.Prepare({}, Outputs{}, {Operation(out.node)}));
  Tensors none;
  WEIR_ASSIGN_OR_RETURN(
      const std::vector<double> seconds,
      TimeCalls([&] { return step.Run({}, &none); }, absl::GetFlag(FLAGS_budget)));
  const double work = (c.flops > 0 ? c.flops : c.bytes) * 1e-9;
  Emit("W10." + c.name, c.flops > 0 ? "GFLOPs" : "GBs", seconds, c.flops > 0 ? "GFLOP/s" : "GB/s",
       [&](double s) { return work / s; });
  return absl::OkStatus();
}

absl::Status RunAll() {
  for (const Case& c : Cases()) {
    if (!absl::StrContains(c.name, absl::GetFlag(FLAGS_only))) continue;
    if (const absl::Status status = Run(c); !status.ok()) return Annotate(status, c.name);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  weir::bench::ParseFlags(argc, argv, "Times single ops.\nExample: ops_bench --only=softmax");
  return weir::bench::ExitCode(weir::bench::RunAll());
}
