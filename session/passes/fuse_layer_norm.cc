#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/fusion.h"

// Fuses a layer norm that is decomposed into small ops into one node, _FusedLayerNorm, which
// traverses memory once (kernels/nn/fused_layer_norm.cc). Two reductions separate its elementwise
// parts, so that small ops need at least four traversals.
//
// The pass looks for Rsqrt(Mean(square of (x - Mean(x))) + constant), with both means over x's last
// axes: the factor. What follows is written in many ways. tf.nn.batch_normalization makes
//
//   x * (factor * scale) + (offset - mean * (factor * scale)),
//
// others (x - mean) * factor * scale + offset, in any order, and without scale, offset or both. So
// the pass does not list forms. It multiplies out a node that uses the factor, and the nodes after
// it, as polynomials in x, the mean, the factor and any other inputs; all forms come to
//
//   x * factor [* scale] - mean * factor [* scale] [+ offset],
//
// and the last node of which that is true is the result. Every input must have the shape that its
// part requires: the mean and the factor have one element per row of x, scale and offset one per
// position in a row.
//
// In a training step gradients use the mean and the factor, which are then additional results.
// Other nodes in between that gradients use, mostly x - mean and the product of that and the
// factor, are not fused, and are computed from these results: in one more traversal instead of
// three. The nodes from the squares to the factor must have no other users. Results differ by
// rounding alone.
namespace weir {

namespace {

// A longer row would not stay in a core's cache, and the kernel gives each row to one thread.
constexpr int64_t kMaxRowElements = 1 << 18;
// The greatest distance from the factor to the result, and how many nodes up to there are tried.
constexpr int kMaxDepth = 8;
constexpr size_t kMaxCandidates = 24;
// How many ancestors of scale and offset are visited if the mean has other users: the mean must not
// be among them.
constexpr size_t kMaxVisited = 32;

// The symbols of a product, as bits; parameters follow.
enum : unsigned { kX = 1, kMean = 2, kFactor = 4, kFirstParameter = 8, kSecondParameter = 16 };
// Coefficients by product; a symbol occurs at most once in a product.
using Polynomial = std::map<unsigned, int>;

struct Statistics {
  PlanValue x;
  int mean = -1, factor = -1;  // nodes
  int first_axis = 0;          // of a row
  float epsilon = 0;
  std::set<int> nodes;
  std::set<int> to_factor;  // among `nodes`: from the squares to the node before the factor
};

// A value as a polynomial.
struct Expansion {
  Polynomial sum;
  std::vector<PlanValue> parameters;
  std::set<int> nodes;
};

class LayerNormFusion : public Fusion {
 public:
  using Fusion::Fusion;

  absl::Status Run() {
    for (size_t id = 0; id < plan_.nodes.size(); ++id) {
      if (plan_.nodes[id].removed || plan_.nodes[id].node->op_name() != "Rsqrt") continue;
      const std::optional<Statistics> s = MatchStatistics(static_cast<int>(id));
      if (!s) continue;
      const std::vector<int> candidates = CandidateResults(*s);
      const auto try_candidates = [&](bool outputs_statistics) {
        return absl::c_any_of(candidates,
                              [&](int c) { return FuseInto(*s, c, outputs_statistics); });
      };
      if (!try_candidates(false)) try_candidates(true);
    }
    return out_of_order_ ? SortTopologically(plan_) : absl::OkStatus();
  }

 private:
  const std::string& OpOf(int id) const { return plan_.nodes[id].node->op_name(); }
  bool IsSum(int id) const { return OpOf(id) == "AddV2" || OpOf(id) == "Add"; }
  bool IsFloat(int id) const { return plan_.nodes[id].type(0) == DT_FLOAT; }

  // ---- mean and factor

  // True if the node is a mean of x over the axes of a row.
  bool IsMean(int id, const Statistics& s) const {
    return IsFusable(plan_.nodes[id]) && OpOf(id) == "Mean" &&
           FirstReducedAxis(plan_.nodes[id], s.x) == s.first_axis;
  }

  std::optional<Statistics> MatchStatistics(int factor) const {
    Statistics s;
    s.factor = factor;
    const PlanNode& root = plan_.nodes[factor];
    if (!IsFusable(root) || !IsFloat(factor)) return std::nullopt;
    const int sum = StripReshapes(root.inputs[0], &s.nodes);
    if (!IsFusable(plan_.nodes[sum]) || !IsSum(sum)) return std::nullopt;
    const auto& terms = plan_.nodes[sum].inputs;
    const int epsilon = ConstantOf(terms[0]) != nullptr ? 0 : 1;
    const Tensor* const constant = ConstantOf(terms[epsilon]);
    if (constant == nullptr || constant->num_elements() != 1) return std::nullopt;
    s.epsilon = constant->data<float>()[0];
    const int variance = StripReshapes(terms[1 - epsilon], &s.nodes);
    if (!IsFusable(plan_.nodes[variance]) || OpOf(variance) != "Mean") return std::nullopt;
    const PlanValue squares = plan_.nodes[variance].inputs[0];
    const std::optional<int> axis = FirstReducedAxis(plan_.nodes[variance], squares);
    if (!axis || squares.output != 0) return std::nullopt;
    s.first_axis = *axis;
    if (!FindMean(squares.node, &s)) return std::nullopt;
    s.nodes.insert({factor, sum, variance, squares.node, s.mean});
    s.to_factor = {sum, variance, squares.node};
    const Shape& x = ShapeOf(s.x);
    if (ShapeOf(squares) != x || RowLength(s) > kMaxRowElements) return std::nullopt;
    return s;
  }

  // Finds x and its mean, given the square of their difference.
  bool FindMean(int squares, Statistics* s) const {
    const PlanNode* difference = &plan_.nodes[squares];
    if (!IsFusable(*difference)) return false;
    if (OpOf(squares) != "SquaredDifference") {
      const bool squared =
          OpOf(squares) == "Square" ||
          (OpOf(squares) == "Mul" && difference->inputs[0] == difference->inputs[1]);
      if (!squared) return false;
      const PlanValue v = difference->inputs[0];
      if (!IsFusable(plan_.nodes[v.node]) || OpOf(v.node) != "Sub") return false;
      s->nodes.insert(v.node);
      difference = &plan_.nodes[v.node];
    }
    for (const int side : {0, 1}) {
      s->x = difference->inputs[side];
      const PlanValue mean = difference->inputs[1 - side];
      std::set<int> reshapes;
      s->mean = StripReshapes(mean, &reshapes);
      if (!ShapeOf(s->x).IsFullyDefined() || !IsMean(s->mean, *s) || !IsPerRow(mean, *s)) continue;
      s->nodes.merge(reshapes);
      return true;
    }
    return false;
  }

  bool IsPerRow(const PlanValue& v, const Statistics& s) const {
    return ShapeOf(v).rank() == ShapeOf(s.x).rank() &&
           HasOnlyDims(ShapeOf(v), ShapeOf(s.x), 0, s.first_axis);
  }
  int64_t RowLength(const Statistics& s) const {
    return ShapeOf(s.x).Sub(s.first_axis).num_elements();
  }

  // ---- the result

  // Returns the nodes after the factor that have x's shape, the last ones first.
  std::vector<int> CandidateResults(const Statistics& s) {
    std::set<int> reached = {s.factor}, last = reached;
    for (int step = 0; step < kMaxDepth && reached.size() < kMaxCandidates; ++step) {
      std::set<int> next;
      for (const int id : last) {
        for (const PlanUse& use : uses().Of(id)) {
          if (use.is_input() && IsFusable(plan_.nodes[use.user]) && reached.insert(use.user).second)
            next.insert(use.user);
        }
      }
      last = std::move(next);
    }
    std::vector<int> results;
    for (auto id = reached.rbegin(); id != reached.rend(); ++id) {
      if (ShapeOf({*id, 0}) == ShapeOf(s.x)) results.push_back(*id);
    }
    return results;
  }

  // Makes `result` the fused node, if it computes a layer norm.
  bool FuseInto(const Statistics& s, int result, bool outputs_statistics) {
    const PlanNode& n = plan_.nodes[result];
    std::optional<Expansion> e = Expand({result, 0}, s, kMaxDepth);
    if (!e) return false;
    const std::optional<std::vector<PlanValue>> scale_and_offset = ScaleAndOffset(*e);
    if (!scale_and_offset) return false;
    e->nodes.insert(s.nodes.begin(), s.nodes.end());
    std::vector<PlanValue> inputs = {s.x};
    for (const PlanValue& v : *scale_and_offset) {
      if (v.node >= 0) inputs.push_back(v);
    }
    const bool fits = absl::c_all_of(e->nodes, [&](int id) {
      return CanDisappear(plan_.nodes[id], n) && IsFloat(id) &&
             absl::c_none_of(inputs, [id](const PlanValue& v) { return v.node == id; });
    });
    if (!fits) return false;
    if (outputs_statistics
            ? !CanOutputStatistics(s, result, inputs) || !ExcludeUsedElsewhere(s, result, &e->nodes)
            : !AreUsedOnlyBy(e->nodes, result)) {
      return false;
    }
    const Node* const node = MakeNode(n.node->name(), s, *scale_and_offset, outputs_statistics);
    if (node == nullptr || !Replace(result, *node, inputs, e->nodes)) return false;
    if (outputs_statistics) RedirectStatistics(s, result);
    return true;
  }

  // ---- mean and factor for others

  bool CanOutputStatistics(const Statistics& s, int result, const std::vector<PlanValue>& inputs) {
    const auto is_row_value = [&](int id) {
      return IsPerRow({id, 0}, s) && uses().HasOnlyInputUses(id);
    };
    return is_row_value(s.mean) && is_row_value(s.factor) && !plan_.nodes[result].may_be_dead &&
           AreIndependentOf(s.mean, absl::MakeSpan(inputs).subspan(1));
  }

  // True if a short search shows that the values do not depend on the node.
  bool AreIndependentOf(int node, absl::Span<const PlanValue> values) const {
    std::set<int> visited;
    std::vector<int> stack;
    const auto add = [&](int id) {
      if (visited.insert(id).second) stack.push_back(id);
    };
    for (const PlanValue& v : values) add(v.node);
    while (!stack.empty()) {
      const PlanNode& n = plan_.nodes[stack.back()];
      stack.pop_back();
      for (const PlanValue& v : n.inputs) add(v.node);
      absl::c_for_each(n.controls, add);
      if (visited.contains(node) || visited.size() > kMaxVisited) return false;
    }
    return !visited.contains(node);
  }

  // Removes from `nodes` those that have other users and must still run. Returns false if one of
  // them is on the way to the factor.
  bool ExcludeUsedElsewhere(const Statistics& s, int result, std::set<int>* nodes) {
    const std::set<int> all = *nodes;
    for (auto id = all.rbegin(); id != all.rend(); ++id) {
      if (*id == result || *id == s.mean || *id == s.factor) continue;
      const bool is_needed = absl::c_any_of(uses().Of(*id), [&](const PlanUse& use) {
        return !use.is_input() || use.output != 0 ||
               (!nodes->contains(use.user) && use.user != result);
      });
      if (!is_needed) continue;
      if (s.to_factor.contains(*id)) return false;
      nodes->erase(*id);
    }
    return true;
  }

  // Redirects users of the mean and the factor to the results of the fused node.
  void RedirectStatistics(const Statistics& s, int result) {
    RedirectUses({s.mean, 0}, {result, 1});
    RedirectUses({s.factor, 0}, {result, 2});
    out_of_order_ = true;
  }

  // ---- products

  // Returns scale and offset, with node -1 for one that is absent; nullopt if the polynomial is not
  // that of a layer norm.
  static std::optional<std::vector<PlanValue>> ScaleAndOffset(const Expansion& e) {
    std::vector<PlanValue> found(2);
    Polynomial rest = e.sum;
    unsigned scale = 0;
    for (const auto& [product, coefficient] : e.sum) {
      if ((product & (kX | kMean | kFactor)) == (kX | kFactor)) scale = product & ~(kX | kFactor);
    }
    if (rest[kX | kFactor | scale] != 1 || rest[kMean | kFactor | scale] != -1) return std::nullopt;
    rest.erase(kX | kFactor | scale);
    rest.erase(kMean | kFactor | scale);
    unsigned offset = 0;
    if (!rest.empty()) offset = rest.begin()->first;
    if (rest.size() > 1 || (offset != 0 && rest[offset] != 1)) return std::nullopt;
    const unsigned parts[] = {scale, offset};
    for (int i = 0; i < 2; ++i) {
      if (parts[i] != 0 && parts[i] != kFirstParameter && parts[i] != kSecondParameter)
        return std::nullopt;
      if (parts[i] != 0) found[i] = e.parameters[parts[i] == kFirstParameter ? 0 : 1];
    }
    return found;
  }

  // Returns the value as a polynomial; nullopt if it is none, or if a part has the wrong shape.
  std::optional<Expansion> Expand(const PlanValue& v, const Statistics& s, int depth) const {
    if (v == s.x) return Expansion{{{kX, 1}}, {}, {}};
    Expansion e;
    const int id = StripReshapes(v, &e.nodes);
    if (id == s.mean || id == s.factor) {
      if (!IsPerRow(v, s)) return std::nullopt;
      e.sum[id == s.mean ? kMean : kFactor] = 1;
      return e;
    }
    if (v.output == 0 && depth > 0 && IsFusable(plan_.nodes[v.node])) {
      std::optional<Expansion> computed = ExpandNode(v.node, s, depth);
      if (computed && DependsOnRows(computed->sum)) return computed;
    }
    // A parameter, however it is computed.
    if (!HasOnlyDims(ShapeOf(v), ShapeOf(s.x), s.first_axis, ShapeOf(s.x).rank()))
      return std::nullopt;
    return Expansion{{{kFirstParameter, 1}}, {v}, {}};
  }

  std::optional<Expansion> ExpandNode(int id, const Statistics& s, int depth) const {
    const PlanNode& n = plan_.nodes[id];
    const std::string& op = n.node->op_name();
    const bool is_product = op == "Mul", is_difference = op == "Sub" || op == "Neg";
    if (!is_product && !is_difference && !IsSum(id) && op != "Identity") return std::nullopt;
    std::optional<Expansion> a = Expand(n.inputs[0], s, depth - 1);
    if (!a) return std::nullopt;
    if (n.inputs.size() == 1) {
      if (op == "Neg") a->sum = *Sum({}, a->sum, -1);
      a->nodes.insert(id);
      return a;
    }
    std::optional<Expansion> b = Expand(n.inputs[1], s, depth - 1);
    if (!b || !RenumberParameters(&*b, &a->parameters)) return std::nullopt;
    a->nodes.merge(b->nodes);
    a->nodes.insert(id);
    if (!is_product) {
      const std::optional<Polynomial> sum = Sum(a->sum, b->sum, is_difference ? -1 : 1);
      if (!sum) return std::nullopt;
      a->sum = *sum;
      return a;
    }
    const std::optional<Polynomial> product = Product(a->sum, b->sum);
    if (!product) return std::nullopt;
    a->sum = *product;
    return a;
  }

  static bool DependsOnRows(const Polynomial& p) {
    return absl::c_any_of(p, [](const auto& term) { return term.first % kFirstParameter != 0; });
  }
  // nullopt if terms cancel: for an infinity, or a term much larger than the rest, the small ops
  // would leave a remainder.
  static std::optional<Polynomial> Sum(const Polynomial& a, const Polynomial& b, int factor) {
    Polynomial sum = a;
    for (const auto& [product, coefficient] : b) {
      if ((sum[product] += factor * coefficient) == 0) return std::nullopt;
    }
    return sum;
  }
  // nullopt if the product has squares, or terms cancel.
  static std::optional<Polynomial> Product(const Polynomial& a, const Polynomial& b) {
    Polynomial product;
    for (const auto& [p, i] : a) {
      for (const auto& [q, j] : b) {
        if ((p & q) != 0) return std::nullopt;
        if ((product[p | q] += i * j) == 0) return std::nullopt;
      }
    }
    return product;
  }
  // Adds the parameters of the expansion to `all`, and changes its symbols to their indices there.
  // Returns false if there are more than a layer norm has.
  static bool RenumberParameters(Expansion* e, std::vector<PlanValue>* all) {
    unsigned symbols[] = {0, 0};
    for (size_t i = 0; i < e->parameters.size(); ++i) {
      if (!absl::c_linear_search(*all, e->parameters[i])) all->push_back(e->parameters[i]);
      const bool is_first = e->parameters[i] == all->front();
      symbols[i] = is_first ? kFirstParameter : kSecondParameter;
    }
    Polynomial renamed;
    for (const auto& [product, coefficient] : e->sum) {
      unsigned symbol = product % kFirstParameter;
      if ((product & kFirstParameter) != 0) symbol |= symbols[0];
      if ((product & kSecondParameter) != 0) symbol |= symbols[1];
      renamed[symbol] = coefficient;
    }
    e->sum = std::move(renamed);
    return all->size() <= 2;
  }

  Node* MakeNode(const std::string& name, const Statistics& s,
                 const std::vector<PlanValue>& scale_and_offset, bool outputs_statistics) {
    const auto placeholders = [&](const PlanValue& v) {
      return Outputs(v.node < 0 ? 0 : 1, MakePlaceholder(DT_FLOAT));
    };
    NodeBuilder builder(internal_graph(), "_FusedLayerNorm");
    builder.Name(name)
        .Input(MakePlaceholder(DT_FLOAT))
        .InputList(placeholders(scale_and_offset[0]))
        .InputList(placeholders(scale_and_offset[1]))
        .Attr("T", DT_FLOAT)
        .Attr("num_statistics", int64_t{outputs_statistics ? 2 : 0})
        .Attr("axes", static_cast<int64_t>(ShapeOf(s.x).rank() - s.first_axis))
        .Attr("epsilon", s.epsilon);
    Node* const node = builder.Build();
    return internal_graph().TakeStatus().ok() ? node : nullptr;
  }

  bool out_of_order_ = false;  // a user of a mean may now come before it
};

}  // namespace

absl::Status FuseLayerNorm(PlanGraph& plan, const PlanEnvironment& env) {
  return LayerNormFusion(plan, env).Run();
}

}  // namespace weir
