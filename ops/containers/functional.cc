#include "weir/ops/containers/functional.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/containers/tensor_array.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"

namespace weir {

namespace {

// Returns the number of rows of the tensors, as a literal if it is static. If there are no rows or
// the numbers differ, fails the graph and returns nullopt.
std::optional<Ints> RowCount(Graph& g, const Outputs& elems, const std::string& name) {
  int64_t rows = -1;
  for (const Output& e : elems) {
    if (!e.valid()) return std::nullopt;
    if (e.shape().rank() == 0) {
      g.Fail(InvalidArgument("'", name, "': Elements in elems must be 1+ dimensional Tensors, ",
                             "not scalars: ", e.name()));
      return std::nullopt;
    }
    const absl::StatusOr<int64_t> merged = MergeDims(rows, e.dim(0));
    if (!merged.ok()) {
      g.Fail(InvalidArgument("'", name, "': Dimensions ", rows, " and ", e.dim(0),
                             " are not compatible: all elems must have the same number of rows"));
      return std::nullopt;
    }
    rows = *merged;
  }
  const int64_t first = elems[0].dim(0);
  if (first >= 0) return Ints(first);
  const Output count = StridedSlice(ShapeTensor(elems[0]), {0});
  return count.valid() ? std::optional<Ints>(Ints(count)) : std::nullopt;
}

Shape RowShape(const Output& e) {
  return e.shape().rank() > 0 ? e.shape().Sub(1) : Shape::UnknownRank();
}

using Arrays = std::vector<TensorArray>;

Outputs Flows(const Arrays& arrays) {
  Outputs flows;
  for (const TensorArray& a : arrays) flows.push_back(a.flow());
  return flows;
}

Arrays WithFlows(Arrays arrays, absl::Span<const Output> flows) {
  for (size_t i = 0; i < arrays.size(); ++i) arrays[i] = arrays[i].WithFlow(flows[i]);
  return arrays;
}

Outputs ReadAll(const Arrays& arrays, const Ints& i) {
  Outputs out;
  for (const TensorArray& a : arrays) out.push_back(a.Read(i));
  return out;
}

// Returns false if the function returned a different number of tensors.
bool WriteAll(Graph& g, Arrays* arrays, const Ints& i, const Outputs& values) {
  if (values.size() != arrays->size()) {
    g.Fail(InvalidArgument("The function returned ", values.size(), " tensors; expected ",
                           arrays->size()));
    return false;
  }
  for (size_t k = 0; k < values.size(); ++k) (*arrays)[k] = (*arrays)[k].Write(i, values[k]);
  return g.status().ok();
}

// Stacks the arrays; the first dimension of each result is that of `like`.
Outputs StackAll(Graph& g, const Arrays& arrays, const Output& like) {
  Outputs out;
  for (const TensorArray& a : arrays) out.push_back(a.Stack());
  for (const Output& o : out) {
    if (!o.valid() || o.shape().rank() < 1) continue;
    Shape shape = o.shape();
    shape.set_dim(0, like.dim(0));
    g.Fail(g.RefineShape(o, shape));
  }
  return g.status().ok() ? out : Outputs();
}

Graph* GraphOf(const Outputs& outputs) {
  const auto valid =
      std::find_if(outputs.begin(), outputs.end(), [](const Output& o) { return o.valid(); });
  return valid == outputs.end() ? nullptr : &valid->graph();
}

// Returns an empty list on failure.
Outputs BuildMap(const RowFn& fn, const Outputs& elems, const MapOptions& options) {
  Graph* const graph = GraphOf(elems);
  if (graph == nullptr) return {};
  Graph& g = *graph;
  const NameScope scope(g, options.name);
  const std::optional<Ints> n = RowCount(g, elems, options.name);
  if (!n) return {};
  Arrays rows, results;
  for (const Output& e : elems) rows.push_back(TensorArray(g, e.dtype(), *n));
  for (size_t i = 0; i < elems.size(); ++i) rows[i] = rows[i].Unstack(elems[i]);
  const Output zero = Const(g, 0);
  DataTypes dtypes;
  for (const Output& e : elems) dtypes.push_back(e.dtype());
  for (const DataType type : options.dtypes.value_or(dtypes))
    results.push_back(TensorArray(g, type, *n, {.infer_shape = options.infer_shape}));
  Outputs vars = Flows(results);
  vars.insert(vars.begin(), zero);
  const auto body = [&](const Outputs& v) {
    Arrays written = WithFlows(results, absl::MakeSpan(v).subspan(1));
    const Outputs values = fn(ReadAll(rows, v[0]));
    if (!WriteAll(g, &written, v[0], values)) return Outputs();
    Outputs next = Flows(written);
    next.insert(next.begin(), v[0] + 1);
    return next;
  };
  const auto below = [&](const Outputs& v) {
    return n->is_tensor() ? Less(v[0], n->tensor()) : v[0] < static_cast<int32_t>(n->values()[0]);
  };
  const Outputs last =
      WhileLoop(below, body, vars,
                {.parallel_iterations = options.parallel_iterations, .maximum_iterations = *n});
  if (!g.status().ok()) return {};
  return StackAll(g, WithFlows(results, absl::MakeSpan(last).subspan(1)), elems[0]);
}

}  // namespace

Outputs MapFn(const RowFn& fn, const Outputs& elems, const MapOptions& options) {
  Outputs results;
  if (fn != nullptr) {
    results = BuildMap(fn, elems, options);
  } else if (Graph* const graph = GraphOf(elems)) {
    graph->Fail(InvalidArgument("'", options.name, "': the function is empty"));
  }
  results.resize(options.dtypes ? options.dtypes->size() : elems.size());
  return results;
}

namespace {

// Builds the loop of Scan over the rows that remain after the initial state.
class Scanner {
 public:
  Scanner(Graph& graph, const ScanFn& fn, const Outputs& elems, const Ints& n,
          const ScanOptions& options)
      : g_(graph), fn_(fn), elems_(elems), n_(n), options_(options) {}

  Outputs Run(const Outputs& initial) {
    for (const Output& e : elems_)
      rows_.push_back(TensorArray(g_, e.dtype(), n_, {.element_shape = RowShape(e)}));
    for (size_t i = 0; i < elems_.size(); ++i) rows_[i] = rows_[i].Unstack(elems_[i]);
    const bool from_row = initial.empty();
    Outputs state = from_row ? ReadAll(rows_, options_.reverse ? FromEnd(1) : Ints(0)) : initial;
    for (const Output& s : state) {
      if (!s.valid()) return {};
      TensorArrayOptions array;
      array.infer_shape = options_.infer_shape;
      if (options_.infer_shape) array.element_shape = s.shape();
      results_.push_back(TensorArray(g_, s.dtype(), n_, array));
    }
    if (from_row && !WriteAll(g_, &results_, options_.reverse ? FromEnd(1) : Ints(0), state))
      return {};
    const int start = from_row ? 1 : 0;
    return Loop(options_.reverse ? FromEnd(start + 1) : Ints(start), state);
  }

 private:
  // Returns n - k.
  Ints FromEnd(int k) const {
    if (!n_.is_tensor()) return Ints(n_.values()[0] - k);
    return Ints(n_.tensor() - k);
  }

  Outputs Loop(const Ints& start, const Outputs& state) {
    Outputs vars = {start.In(g_, "Const", DT_INT32)};
    vars.insert(vars.end(), state.begin(), state.end());
    for (const Output& flow : Flows(results_)) vars.push_back(flow);
    const size_t first_flow = 1 + state.size();
    const auto body = [&](const Outputs& v) {
      Arrays written = WithFlows(results_, absl::MakeSpan(v).subspan(first_flow));
      const Outputs row = ReadAll(rows_, v[0]);
      Outputs next = fn_({v.begin() + 1, v.begin() + static_cast<int64_t>(first_flow)}, row);
      if (!WriteAll(g_, &written, v[0], next)) return Outputs();
      next.insert(next.begin(), options_.reverse ? v[0] - 1 : v[0] + 1);
      for (const Output& flow : Flows(written)) next.push_back(flow);
      return next;
    };
    const auto cond = [&](const Outputs& v) {
      if (options_.reverse) return v[0] >= 0;
      return n_.is_tensor() ? Less(v[0], n_.tensor()) : v[0] < static_cast<int32_t>(n_.values()[0]);
    };
    const Outputs last =
        WhileLoop(cond, body, vars,
                  {.parallel_iterations = options_.parallel_iterations, .maximum_iterations = n_});
    if (!g_.status().ok()) return {};
    return StackAll(g_, WithFlows(results_, absl::MakeSpan(last).subspan(first_flow)), elems_[0]);
  }

  Graph& g_;
  const ScanFn& fn_;
  const Outputs& elems_;
  const Ints n_;
  const ScanOptions& options_;
  Arrays rows_, results_;
};

}  // namespace

Outputs Scan(const ScanFn& fn, const Outputs& elems, const Outputs& initial,
             const ScanOptions& options) {
  const Outputs failed(initial.empty() ? elems.size() : initial.size());
  Graph* const graph = GraphOf(elems.empty() ? initial : elems);
  if (graph == nullptr) return failed;
  if (elems.empty() || fn == nullptr) {
    graph->Fail(InvalidArgument(
        "'", options.name,
        "': ", elems.empty() ? "elems must not be empty" : "the function is empty"));
    return failed;
  }
  const NameScope scope(*graph, options.name);
  const std::optional<Ints> n = RowCount(*graph, elems, options.name);
  if (!n) return failed;
  Outputs results = Scanner(*graph, fn, elems, *n, options).Run(initial);
  results.resize(failed.size());
  return results;
}

namespace {

// Adds an assertion that fails the step if more than one predicate is true.
Operation AssertAtMostOne(Graph& g, const Outputs& preds) {
  const std::string names = absl::StrJoin(
      preds, ", ", [](std::string* text, const Output& p) { absl::StrAppend(text, p.name()); });
  const Output all = Stack(preds, 0, "preds_c");
  if (!all.valid()) return {};
  const Output count = ReduceSum(Cast(all, DT_INT32), {0}, false, "num_true_conds");
  const Output one = Const(g, 1, "n_true_conds");
  return AssertThat(LessEqual(count, one),
                    {absl::StrCat("Input error: exclusive=True: more than 1 conditions (", names,
                                  ") evaluated as True:"),
                     all});
}

Outputs BuildCase(const std::vector<std::pair<Output, BranchListFn>>& cases, size_t i,
                  const BranchListFn& otherwise) {
  if (i == cases.size()) return otherwise();
  return Cond(cases[i].first, cases[i].second, [&] { return BuildCase(cases, i + 1, otherwise); });
}

}  // namespace

Outputs Case(const std::vector<std::pair<Output, BranchListFn>>& cases,
             const BranchListFn& otherwise, const CaseOptions& options) {
  Outputs preds;
  for (const auto& [pred, fn] : cases) preds.push_back(pred);
  Graph* const graph = GraphOf(preds);
  if (graph == nullptr) {
    const Outputs outputs = otherwise != nullptr ? otherwise() : Outputs();
    Graph* const of_outputs = GraphOf(outputs);
    if (cases.empty() && of_outputs != nullptr) {
      of_outputs->Fail(InvalidArgument("'", options.name, "': needs at least one case"));
    }
    return Outputs(outputs.size());
  }
  if (otherwise == nullptr || absl::c_any_of(cases, [](const auto& c) { return !c.second; })) {
    graph->Fail(InvalidArgument("'", options.name, "': a branch's function is empty"));
    return {};
  }
  const NameScope scope(*graph, options.name);
  if (!options.exclusive) return BuildCase(cases, 0, otherwise);
  const ControlDependencies after(*graph, {AssertAtMostOne(*graph, preds)});
  return BuildCase(cases, 0, otherwise);
}

}  // namespace weir
