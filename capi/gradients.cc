#include "weir/ops/framework/gradients.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "weir/capi/objects.h"

namespace weir::capi {

namespace {

// Returns an error, with the newest one, if nodes are in the scope of the prefix.
absl::Status CheckPrefix(const Graph& graph, absl::string_view prefix) {
  const std::string scope = absl::StrCat(prefix, "/");
  const auto nodes = graph.nodes();
  const auto newest = std::find_if(nodes.rbegin(), nodes.rend(), [&](const auto& node) {
    return node->name() == prefix || absl::StartsWith(node->name(), scope);
  });
  if (newest == nodes.rend()) return absl::OkStatus();
  return InvalidArgument("prefix [", prefix, "] conflicts with existing node in the graph named [",
                         (*newest)->name(), "]");
}

// Clears the marks of products as gradients of an argument, which TensorFlow's C++ gradients lack.
void ClearMarks(Graph& graph, int num_before) {
  for (const auto& node : graph.nodes().subspan(num_before)) {
    for (const char* mark : {"grad_a", "grad_b", "grad_x", "grad_y"}) {
      if (node->attr_or<bool>(mark, false)) graph.SetAttr(node.get(), mark, false);
    }
  }
}

absl::Status AddGradients(Graph& graph, const char* prefix, const TF_Output* y, int ny,
                          const TF_Output* x, int nx, const TF_Output* dx, TF_Output* dy) {
  WEIR_ASSIGN_OR_RETURN(const Outputs ys, OutputsOf(y, ny, graph));
  WEIR_ASSIGN_OR_RETURN(const Outputs xs, OutputsOf(x, nx, graph));
  if (dy == nullptr && nx > 0) return InvalidArgument("the array for the gradients is null");
  GradientsOptions options;
  if (dx != nullptr) {
    WEIR_ASSIGN_OR_RETURN(const Outputs initial, OutputsOf(dx, ny, graph));
    options.grad_ys.assign(initial.begin(), initial.end());
  }
  const std::string scope(absl::StripSuffix(prefix == nullptr ? "gradients" : prefix, "/"));
  if (prefix != nullptr) WEIR_RETURN_IF_ERROR(CheckPrefix(graph, scope));
  options.name = scope;
  options.as_in_cpp = true;
  const int num_before = graph.num_nodes();
  const Outputs gradients = DenseGradients(ys, xs, options);
  WEIR_RETURN_IF_ERROR(graph.TakeStatus());
  ClearMarks(graph, num_before);
  for (int i = 0; i < nx; ++i) dy[i] = HandleOf(gradients[i]);
  return absl::OkStatus();
}

}  // namespace

}  // namespace weir::capi

void TF_AddGradients(TF_Graph* g, TF_Output* y, int ny, TF_Output* x, int nx, TF_Output* dx,
                     TF_Status* status, TF_Output* dy) {
  TF_AddGradientsWithPrefix(g, nullptr, y, ny, x, nx, dx, status, dy);
}

void TF_AddGradientsWithPrefix(TF_Graph* g, const char* prefix, TF_Output* y, int ny, TF_Output* x,
                               int nx, TF_Output* dx, TF_Status* status, TF_Output* dy) {
  if (dy != nullptr && x != nullptr) std::fill_n(dy, std::max(0, nx), TF_Output{nullptr, -1});
  if (!weir::capi::HaveAll("TF_AddGradientsWithPrefix", {g}, status)) return;
  weir::capi::SetStatus(status, g->Change([&](weir::Graph& graph) {
    return weir::capi::AddGradients(graph, prefix, y, ny, x, nx, dx, dy);
  }));
}
