#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "weir/session/fusion.h"

// Layer norm, spelled out in small ops, becomes one node, _FusedLayerNorm, which walks memory once
// (kernels/fused_layer_norm.cc). Two reductions stand between its element-wise parts, so that as
// small ops it takes four walks at least.
//
// The pass looks for Rsqrt(Mean(square of (x - Mean(x))) + constant), with both means over x's last
// axes: the factor. What follows is written in many ways. tf.nn.batch_normalization makes
//
//   x * (factor * scale) + (offset - mean * (factor * scale)),
//
// others (x - mean) * factor * scale + offset, in any order, and with scale, offset or both left
// out. So no forms are listed. A node that uses the factor and those behind it are multiplied out,
// as polynomials in x, the mean, the factor and whatever else goes in; all forms come to
//
//   x * factor [* scale] - mean * factor [* scale] [+ offset],
//
// and the last node of which that is true is the result. Every value that goes in must lie along
// x's axes as its part asks for: the mean and the factor have an extent for each row, scale and
// offset for each position in it.
//
// In a training step gradients take the mean and the factor, which are further results then. Others
// of the nodes in between that they take, mostly x - mean and the product of that and the factor,
// stay as they are, and are computed of these results: by one more walk instead of three. A node on
// the way to the factor must be needed nowhere else. Results differ by rounding alone.
namespace weir {

namespace {

// A longer row would not stay in a core's cache, and the kernel leaves a row to one thread.
constexpr int64_t kMostRowElements = 1 << 18;
// How far the result may be behind the factor, and how many nodes there are asked.
constexpr int kMostSteps = 8;
constexpr size_t kMostCandidates = 24;
// Nodes that scale and offset may be made of, where others take the mean: they must not.
constexpr size_t kMostFollowed = 32;

// The symbols of a product; parameters follow.
enum : unsigned { kX = 1, kMean = 2, kFactor = 4, kFirstParameter = 8, kSecondParameter = 16 };
// Coefficients by product; a symbol occurs once in it.
using Polynomial = std::map<unsigned, int>;

struct Statistics {
  PlanValue x;
  int mean = -1, factor = -1;  // nodes
  int first_axis = 0;          // of a row
  float epsilon = 0;
  std::set<int> nodes;
  std::set<int> to_factor;  // of these: from the squares to what is before the factor
};

// A value multiplied out.
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
      if (users_.empty()) FindUsers();
      const std::optional<Statistics> s = StatisticsOf(static_cast<int>(id));
      if (!s) continue;
      const std::vector<int> candidates = ResultsOf(*s);
      const auto take = [&](bool gives_statistics) {
        return absl::c_any_of(candidates, [&](int c) { return Take(*s, c, gives_statistics); });
      };
      if (!take(false)) take(true);
    }
    return out_of_order_ ? SortTopologically(plan_) : absl::OkStatus();
  }

 private:
  const std::string& OpOf(int id) const { return plan_.nodes[id].node->op_name(); }
  bool IsSum(int id) const { return OpOf(id) == "AddV2" || OpOf(id) == "Add"; }
  bool IsFloat(int id) const { return plan_.nodes[id].type(0) == DT_FLOAT; }

  // ---- mean and factor

  // The node is a mean of x over the axes of a row.
  bool IsMean(int id, const Statistics& s) const {
    return IsFusable(plan_.nodes[id]) && OpOf(id) == "Mean" &&
           FirstReducedAxis(plan_.nodes[id], s.x) == s.first_axis;
  }

  std::optional<Statistics> StatisticsOf(int factor) const {
    Statistics s;
    s.factor = factor;
    const PlanNode& root = plan_.nodes[factor];
    if (!IsFusable(root) || !IsFloat(factor)) return std::nullopt;
    const int sum = BeforeReshapes(root.inputs[0], &s.nodes);
    if (!IsFusable(plan_.nodes[sum]) || !IsSum(sum)) return std::nullopt;
    const auto& terms = plan_.nodes[sum].inputs;
    const int epsilon = ConstantOf(terms[0]) != nullptr ? 0 : 1;
    const Tensor* const constant = ConstantOf(terms[epsilon]);
    if (constant == nullptr || constant->num_elements() != 1) return std::nullopt;
    s.epsilon = constant->data<float>()[0];
    const int variance = BeforeReshapes(terms[1 - epsilon], &s.nodes);
    if (!IsFusable(plan_.nodes[variance]) || OpOf(variance) != "Mean") return std::nullopt;
    const PlanValue squares = plan_.nodes[variance].inputs[0];
    const std::optional<int> axis = FirstReducedAxis(plan_.nodes[variance], squares);
    if (!axis || squares.output != 0) return std::nullopt;
    s.first_axis = *axis;
    if (!FindMean(squares.node, &s)) return std::nullopt;
    s.nodes.insert({factor, sum, variance, squares.node, s.mean});
    s.to_factor = {sum, variance, squares.node};
    const Shape& x = ShapeOf(s.x);
    if (ShapeOf(squares) != x || RowLength(s) > kMostRowElements) return std::nullopt;
    return s;
  }

  // x and its mean, from the square of their difference.
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
      std::set<int> passed;
      s->mean = BeforeReshapes(mean, &passed);
      if (!ShapeOf(s->x).IsFullyDefined() || !IsMean(s->mean, *s) || !IsOfRows(mean, *s)) continue;
      s->nodes.merge(passed);
      return true;
    }
    return false;
  }

  bool IsOfRows(const PlanValue& v, const Statistics& s) const {
    return ShapeOf(v).rank() == ShapeOf(s.x).rank() &&
           HasOnlyDims(ShapeOf(v), ShapeOf(s.x), 0, s.first_axis);
  }
  int64_t RowLength(const Statistics& s) const {
    return ShapeOf(s.x).Sub(s.first_axis).num_elements();
  }

  // ---- the result

  // Nodes behind the factor that have x's shape, the last ones first.
  std::vector<int> ResultsOf(const Statistics& s) const {
    std::set<int> reached = {s.factor}, last = reached;
    for (int step = 0; step < kMostSteps && reached.size() < kMostCandidates; ++step) {
      std::set<int> next;
      for (const int id : last) {
        for (const int user : users_[id]) {
          if (user >= 0 && IsFusable(plan_.nodes[user]) && reached.insert(user).second)
            next.insert(user);
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

  // Becomes the node for the whole, if it computes that.
  bool Take(const Statistics& s, int result, bool gives_statistics) {
    const PlanNode& n = plan_.nodes[result];
    std::optional<Expansion> e = Expand({result, 0}, s, kMostSteps);
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
    if (gives_statistics ? !CanGiveStatistics(s, result, inputs) || !Keep(s, result, &e->nodes)
                         : !AreNeededOnlyFor(e->nodes, result)) {
      return false;
    }
    const Node* const node = Make(n.node->name(), s, *scale_and_offset, gives_statistics);
    if (node == nullptr || !Replace(result, *node, inputs, e->nodes)) return false;
    if (gives_statistics) GiveStatistics(s, result);
    return true;
  }

  // ---- mean and factor for others

  bool CanGiveStatistics(const Statistics& s, int result,
                         const std::vector<PlanValue>& inputs) const {
    const auto is_row_value = [&](int id) { return IsOfRows({id, 0}, s) && MayMove(id); };
    return is_row_value(s.mean) && is_row_value(s.factor) && !plan_.nodes[result].may_be_dead &&
           AreMadeWithout(s.mean, absl::MakeSpan(inputs).subspan(1));
  }

  // The values do not depend on the node, as far as a short search can tell.
  bool AreMadeWithout(int node, absl::Span<const PlanValue> values) const {
    std::set<int> seen;
    std::vector<int> stack;
    const auto add = [&](int id) {
      if (seen.insert(id).second) stack.push_back(id);
    };
    for (const PlanValue& v : values) add(v.node);
    while (!stack.empty()) {
      const PlanNode& n = plan_.nodes[stack.back()];
      stack.pop_back();
      for (const PlanValue& v : n.inputs) add(v.node);
      absl::c_for_each(n.controls, add);
      if (seen.contains(node) || seen.size() > kMostFollowed) return false;
    }
    return !seen.contains(node);
  }

  // Takes those that others need out of the nodes that will not be run. False if one of them is on
  // the way to the factor.
  bool Keep(const Statistics& s, int result, std::set<int>* nodes) const {
    const std::set<int> all = *nodes;
    for (auto id = all.rbegin(); id != all.rend(); ++id) {
      if (*id == result || *id == s.mean || *id == s.factor) continue;
      const bool is_needed = uses_others_[*id] || absl::c_any_of(users_[*id], [&](int user) {
                               return !nodes->contains(user) && user != result;
                             });
      if (!is_needed) continue;
      if (s.to_factor.contains(*id)) return false;
      nodes->erase(*id);
    }
    return true;
  }

  // Who took the mean or the factor takes a result.
  void GiveStatistics(const Statistics& s, int result) {
    Give({s.mean, 0}, {result, 1});
    Give({s.factor, 0}, {result, 2});
    out_of_order_ = true;
  }

  // ---- products

  // Node -1 for one that is left out. Nothing if the polynomial is not that of a layer norm.
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

  // The value as a polynomial; nothing if it is none, or has a part of a wrong shape.
  std::optional<Expansion> Expand(const PlanValue& v, const Statistics& s, int depth) const {
    if (v == s.x) return Expansion{{{kX, 1}}, {}, {}};
    Expansion e;
    const int id = BeforeReshapes(v, &e.nodes);
    if (id == s.mean || id == s.factor) {
      if (!IsOfRows(v, s)) return std::nullopt;
      e.sum[id == s.mean ? kMean : kFactor] = 1;
      return e;
    }
    if (v.output == 0 && depth > 0 && IsFusable(plan_.nodes[v.node])) {
      std::optional<Expansion> computed = ExpandNode(v.node, s, depth);
      if (computed && DependsOnRows(computed->sum)) return computed;
    }
    // A parameter, whatever it is made of.
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
    if (!b || !Rename(&*b, &a->parameters)) return std::nullopt;
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
  // Nothing if terms cancel: of an infinity, and of what is large beside the rest, the small ops
  // leave something.
  static std::optional<Polynomial> Sum(const Polynomial& a, const Polynomial& b, int factor) {
    Polynomial sum = a;
    for (const auto& [product, coefficient] : b) {
      if ((sum[product] += factor * coefficient) == 0) return std::nullopt;
    }
    return sum;
  }
  // Nothing if it has squares, or terms cancel.
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
  // The expansion's parameters join `all`, and its symbols are those of their places there. False
  // if there are more than a layer norm has.
  static bool Rename(Expansion* e, std::vector<PlanValue>* all) {
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

  Node* Make(const std::string& name, const Statistics& s,
             const std::vector<PlanValue>& scale_and_offset, bool gives_statistics) {
    const auto stands = [&](const PlanValue& v) {
      return Outputs(v.node < 0 ? 0 : 1, MakePlaceholder(DT_FLOAT));
    };
    NodeBuilder builder(made(), "_FusedLayerNorm");
    builder.Name(name)
        .Input(MakePlaceholder(DT_FLOAT))
        .InputList(stands(scale_and_offset[0]))
        .InputList(stands(scale_and_offset[1]))
        .Attr("T", DT_FLOAT)
        .Attr("num_statistics", int64_t{gives_statistics ? 2 : 0})
        .Attr("axes", static_cast<int64_t>(ShapeOf(s.x).rank() - s.first_axis))
        .Attr("epsilon", s.epsilon);
    Node* const node = builder.Build();
    return made().TakeStatus().ok() ? node : nullptr;
  }

  bool out_of_order_ = false;  // who takes a mean may stand before it now
};

}  // namespace

absl::Status FuseLayerNorms(PlanGraph& plan, const PlanEnvironment& env) {
  return LayerNormFusion(plan, env).Run();
}

}  // namespace weir
