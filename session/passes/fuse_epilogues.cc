#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/fusion.h"
#include "weir/session/plan/make_kernels.h"

// Fuses epilogues into GEMM and convolution. Networks multiply, and then do something small to each
// element of the result: add a bias, normalize, add a shortcut, clip. As single nodes, each of
// these traverses memory once more, and for a convolution of few channels they take as long as the
// convolution itself. Here Conv2D, DepthwiseConv2dNative or MatMul becomes TensorFlow's
// _FusedConv2D, _FusedDepthwiseConv2dNative or _FusedMatMul, whose kernels apply the epilogue to
// each tile of the result while it is in the cache.
//
// Starting at the convolution or matrix product, the pass follows values that have a single user,
// and fuses, in this order, if they are present (the bias may also follow the sum):
//
//   FusedBatchNorm in inference  y = (x - mean) * scale / sqrt(variance + epsilon) + offset. If
//     all its parameters are constants, the factor is folded into the filter and the rest is a
//     bias (Jacob et al. 2018, section 3.2), so that the batch norm costs nothing
//   BiasAdd, or Add of a vector  the bias
//   Add, AddN of two             of a tensor of the same shape: the sum overwrites that tensor if
//     nothing else needs it
//   Relu, Relu6, Elu, ...        an activation
//
// The fused node replaces the last node that it includes and takes that node's name; the others are
// removed. Results differ by rounding alone: that of a folded factor, and that of sums, which start
// with the bias, or with the tensor that they overwrite. Nodes that have control edges, are fetched
// or are on an accelerator are not fused. In a branch that may not be taken the fused node is dead
// when one of its inputs is dead, as the last node would have been.
namespace weir {

namespace {

struct RootOp {
  absl::string_view op, fused;
  bool is_conv;
};
constexpr RootOp kRootOps[] = {{"Conv2D", "_FusedConv2D", true},
                               {"DepthwiseConv2dNative", "_FusedDepthwiseConv2dNative", true},
                               {"MatMul", "_FusedMatMul", false}};
constexpr absl::string_view kActivations[] = {"Relu",      "Relu6", "Elu",
                                              "LeakyRelu", "Tanh",  "Sigmoid"};

// An input of a fused node: a value of the plan, or a constant that the pass has computed.
struct Argument {
  PlanValue value;
  Tensor computed;
};

// A convolution or matrix product with the epilogue found so far.
struct EpilogueMatch {
  const RootOp* root = nullptr;
  int first = -1, last = -1;  // nodes: the root op, and the node that the fused node replaces
  std::vector<int> intermediates = {};  // the other nodes, from `first` on
  Argument filter = {};
  std::optional<Argument> bias = {}, addend = {};
  std::string activation = {};
  float alpha = 0;
};

class EpilogueFusion : public Fusion {
 public:
  using Fusion::Fusion;

  void Run() {
    std::vector<EpilogueMatch> matches;
    for (size_t id = 0; id < plan_.nodes.size(); ++id) {
      const PlanNode& n = plan_.nodes[id];
      const auto* root =
          absl::c_find_if(kRootOps, [&](const RootOp& p) { return p.op == n.node->op_name(); });
      if (root == std::end(kRootOps) || !IsFusableFloat(n)) continue;
      const int node = static_cast<int>(id);
      matches.push_back({.root = root, .first = node, .last = node});
      matches.back().filter.value = n.inputs[1];
    }
    if (matches.empty()) return;
    for (EpilogueMatch& match : matches) {
      while (ExtendMatch(&match)) {
      }
      if (match.bias || match.addend || IsMatMulInLoop(match)) Replace(match);
    }
  }

 private:
  bool IsFusableFloat(const PlanNode& n) const {
    return IsFusable(n) && n.node->output_type(0) == DT_FLOAT;
  }
  // Null if the value is not known.
  const Tensor* ConstantOf(const Argument& a) const {
    return a.computed.initialized() ? &a.computed : Fusion::ConstantOf(a.value);
  }
  static std::string FormatOf(const PlanNode& n) {
    return n.node->attr_or<std::string>("data_format", "NHWC");
  }

  // Adds the node after the last one to the match. Returns false if it does not fit.
  bool ExtendMatch(EpilogueMatch* match) {
    const int id = uses().OnlyUser(match->last);
    if (id < 0 || !match->activation.empty()) return false;
    const PlanNode& n = plan_.nodes[id];
    const PlanNode& root = plan_.nodes[match->first];
    if (!IsFusableFloat(n) || uses().UsesOtherOutputs(id) || !n.controls.empty() ||
        !n.runs_with(root))
      return false;
    const std::string& op = n.node->op_name();
    const bool is_add = op == "Add" || op == "AddV2" || IsSumOfTwo(n);
    bool is_fused = false;
    if (n.traits().rows == RowRule::kNorm) {
      is_fused = FoldBatchNorm(n, match);
    } else if (op == "BiasAdd" || op == "BiasAddV1") {
      is_fused = FormatOf(n) == FormatOf(root) && n.inputs[0] == PlanValue{match->last, 0} &&
                 FuseBias(n.inputs[1], match);
    } else if (is_add) {
      is_fused = FuseAddend(n, match);
    } else if (absl::c_linear_search(kActivations, op) && (match->bias || match->addend)) {
      match->activation = op;
      match->alpha = n.node->attr_or<float>("alpha", 0);
      is_fused = true;
    }
    if (!is_fused) return false;
    match->intermediates.push_back(match->last);
    match->last = id;
    return true;
  }

  // True for an AddN of two, which accepts no shapes but that of its result.
  bool IsSumOfTwo(const PlanNode& n) const {
    return n.Is("AddN") && n.inputs.size() == 2 && ShapeOf(n.inputs[0]) == ShapeOf(n.inputs[1]);
  }

  // In a loop the kernel may find that one of the matrices is the same in each iteration, and keep
  // it packed.
  bool IsMatMulInLoop(const EpilogueMatch& match) const {
    return !match.root->is_conv && plan_.nodes[match.first].loop >= 0;
  }

  // Fuses a bias vector that is known to have one element per channel; for any other vector BiasAdd
  // itself reports the error.
  bool FuseBias(const PlanValue& bias, EpilogueMatch* match) const {
    const Shape& shape = plan_.nodes[match->last].shapes[0];
    if (match->bias || !shape.has_rank() || shape.rank() < 2) return false;
    const bool first = FormatOf(plan_.nodes[match->first]) == "NCHW";
    const int64_t channels = shape.dim(first ? 1 : -1);
    if (channels < 0 || ShapeOf(bias) != Shape({channels})) return false;
    match->bias = Argument{bias, {}};
    return true;
  }

  bool FuseAddend(const PlanNode& n, EpilogueMatch* match) const {
    if (FormatOf(plan_.nodes[match->first]) != "NHWC") return false;
    const PlanValue& other = n.inputs[n.inputs[0].node == match->last ? 1 : 0];
    const Shape &before = plan_.nodes[match->last].shapes[0], &shape = ShapeOf(other);
    if (shape.has_rank() && shape.rank() == 1) return FuseBias(other, match);
    if (match->addend || !shape.IsFullyDefined() || shape != before) return false;
    match->addend = Argument{other, {}};
    return true;
  }

  bool FoldBatchNorm(const PlanNode& n, EpilogueMatch* match) const {
    const PlanNode& root = plan_.nodes[match->first];
    if (!match->root->is_conv || match->addend || n.node->attr<bool>("is_training") ||
        n.inputs[0] != PlanValue{match->last, 0} || FormatOf(n) != FormatOf(root)) {
      return false;
    }
    const Tensor* const filter = ConstantOf(match->filter);
    if (filter == nullptr || filter->rank() != 4) return false;
    const bool depthwise = match->root->op != "Conv2D";
    const int64_t channels = depthwise ? filter->dim(2) * filter->dim(3) : filter->dim(3);
    const float* params[4];  // scale, offset, mean, variance
    for (int i = 0; i < 4; ++i) {
      const Tensor* const t = ConstantOf({n.inputs[1 + i], {}});
      if (t == nullptr || t->dtype() != DT_FLOAT || t->num_elements() != channels) return false;
      params[i] = t->data<float>();
    }
    const Tensor* const bias = match->bias ? ConstantOf(*match->bias) : nullptr;
    if (match->bias && (bias == nullptr || bias->num_elements() != channels)) return false;

    const double epsilon = n.node->attr<float>("epsilon");
    std::vector<double> factor(static_cast<size_t>(channels));
    Tensor folded_bias(DT_FLOAT, Shape({channels})), folded(DT_FLOAT, filter->shape());
    for (int64_t c = 0; c < channels; ++c) {
      factor[c] = params[0][c] / std::sqrt(params[3][c] + epsilon);
      const double shift = bias != nullptr ? bias->data<float>()[c] : 0.0;
      folded_bias.data<float>()[c] =
          static_cast<float>(params[1][c] + (shift - params[2][c]) * factor[c]);
    }
    const float* const from = filter->data<float>();
    float* const to = folded.data<float>();
    const int64_t rows = channels == 0 ? 0 : filter->num_elements() / channels;
    env_.pool.ParallelFor(rows, static_cast<double>(channels), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * channels; at < end * channels; at += channels) {
        for (int64_t c = 0; c < channels; ++c)
          to[at + c] = static_cast<float>(from[at + c] * factor[static_cast<size_t>(c)]);
      }
    });
    match->filter.computed = folded;
    match->bias = Argument{{}, folded_bias};
    return true;
  }

  // ---- the fused node

  // Returns a placeholder for an argument in internal_graph(), or a Const for an argument that the
  // pass has computed.
  Output MakePlaceholder(const Argument& a) {
    if (!a.computed.initialized()) return Fusion::MakePlaceholder(DT_FLOAT);
    return MakeConst("fused/argument", a.computed)->output(0);
  }

  Node* MakeNode(const EpilogueMatch& match) {
    const Node& root = *plan_.nodes[match.first].node;
    Outputs args;
    std::vector<std::string> ops;
    if (match.bias) {
      args.push_back(MakePlaceholder(*match.bias));
      ops.push_back("BiasAdd");
    }
    if (match.addend) {
      args.push_back(MakePlaceholder(*match.addend));
      ops.push_back("Add");
    }
    if (!match.activation.empty()) ops.push_back(match.activation);
    NodeBuilder builder(internal_graph(), match.root->fused);
    builder.Name(plan_.nodes[match.last].node->name())
        .Input(MakePlaceholder({plan_.nodes[match.first].inputs[0], {}}))
        .Input(MakePlaceholder(match.filter))
        .InputList(args);
    if (match.root->op == "Conv2D") builder.InputList({});  // no host_args
    for (const auto& [name, value] : root.attrs()) {
      const bool is_copied = name[0] != '_' && name != "T" && name != "grad_a" && name != "grad_b";
      if (is_copied) builder.Attr(name, value);
    }
    builder.Attr("num_args", static_cast<int64_t>(args.size()))
        .Attr("fused_ops", ops)
        .Attr("leakyrelu_alpha", match.alpha);
    if (IsMatMulInLoop(match)) builder.Attr("_in_loop", true);
    Node* node = builder.Build();
    return internal_graph().TakeStatus().ok() ? node : nullptr;
  }

  void Replace(const EpilogueMatch& match) {
    // Without a known rank, the root's own kernel may refuse its attributes, and must report it.
    if (!plan_.nodes[match.first].shapes[0].has_rank()) return;
    const Node* const node = MakeNode(match);
    const KernelDef* const def = node == nullptr ? nullptr : env_.kernels.Find(*node, kCpu);
    if (def == nullptr) return;
    std::vector<const Argument*> arguments = {&match.filter};
    if (match.bias) arguments.push_back(&*match.bias);
    if (match.addend) arguments.push_back(&*match.addend);
    absl::InlinedVector<PlanValue, 3> inputs = {plan_.nodes[match.first].inputs[0]};
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& a = *arguments[i];
      inputs.push_back(a.computed.initialized()
                           ? AddConstant(*node->input(static_cast<int>(i) + 1).node, a.computed)
                           : a.value);
    }
    PlanNode& n = plan_.nodes[match.last];
    n.node = node;
    n.def = def;
    n.inputs = std::move(inputs);
    n.controls = plan_.nodes[match.first].controls;
    n.shapes.resize(1);
    n.kernel = Kernel();
    n.cost_ns = EstimateCost(plan_, n, env_);
    for (const int intermediates : match.intermediates) plan_.Fuse(intermediates);
  }
};

}  // namespace

void FuseEpilogues(PlanGraph& plan, const PlanEnvironment& env) { EpilogueFusion(plan, env).Run(); }

}  // namespace weir
