// A program that own_project_test.sh links with libweir_rpc: a server in this process runs a graph
// for a session in this process.

#include <cstdio>

#include "weir/rpc/client.h"
#include "weir/rpc/server.h"
#include "weir/weir.h"

namespace {

absl::Status Serve() {
  weir::rpc::EnableGrpcTargets();
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<weir::rpc::Server> server,
                        weir::rpc::Server::Start({}));
  weir::Graph g;
  const weir::Output sum = weir::Const(g, 40.f) + 2.f;
  WEIR_ASSIGN_OR_RETURN(weir::Session session,
                        weir::Session::Create(g, {.target = server->target()}));
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors out, session.Run({sum}));
  if (out[0].scalar<float>() != 42) return weir::Internal("The sum is wrong");
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = Serve();
  if (!status.ok()) std::fprintf(stderr, "serving: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
