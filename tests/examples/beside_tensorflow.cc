// A program that exports its symbols (-rdynamic), links Weir, gRPC and protobuf's messages, and
// loads TensorFlow, which contains another protobuf and another Abseil: both runtimes work, before
// and after. beside_tensorflow_test.sh builds and runs it:
//   beside_tensorflow LIBTENSORFLOW.so FOLDER

#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "weir/proto.h"
#include "weir/rpc/client.h"
#include "weir/rpc/server.h"
#include "weir/weir.h"

namespace {

absl::Status UseWeir(const std::string& folder) {
  weir::Graph g;
  const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0}, {.name = "v"});
  const weir::Output twice = v * 2.f;
  WEIR_ASSIGN_OR_RETURN(weir::Saver saver, weir::Saver::Create(g));
  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(weir::GlobalVariablesInitializer(g)));
  WEIR_RETURN_IF_ERROR(saver.Save(session, folder + "/model").status());
  weir::Graph copy;
  WEIR_RETURN_IF_ERROR(weir::ImportMetaGraphFile(copy, folder + "/model.meta").status());
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors out, session.Run({twice}));
  if (out[0].flat<float>()[1] != 4) return weir::Internal("2 * 2 is wrong");

  weir::proto::GraphDef def;
  weir::ExportGraphDef(g, &def);
  weir::proto::MetaGraphDef meta;
  if (!meta.ParseFromString(weir::SerializeMetaGraph(g))) return weir::Internal("no MetaGraphDef");
  if (meta.graph_def().DebugString() != def.DebugString()) return weir::Internal("other graphs");
  weir::proto::Example example;
  (*example.mutable_features()->mutable_feature())["a"].mutable_float_list()->add_value(1);
  weir::proto::Example again(example);
  return again.SerializeAsString().empty() ? weir::Internal("no Example") : absl::OkStatus();
}

absl::Status Serve() {
  weir::rpc::EnableGrpcTargets();
  WEIR_ASSIGN_OR_RETURN(const auto server, weir::rpc::Server::Start({}));
  weir::Graph g;
  const weir::Output sum = weir::Const(g, 40.f) + 2.f;
  WEIR_ASSIGN_OR_RETURN(weir::Session session,
                        weir::Session::Create(g, {.target = server->target()}));
  return session.Run({sum}).status();
}

// Loads TensorFlow's C interface: its list of ops is a protobuf message, which it parses and
// prints.
absl::Status UseTensorFlow(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return weir::NotFound(dlerror());
  const auto call = [library](const char* name) {
    return reinterpret_cast<void* (*)(...)>(dlsym(library, name));
  };
  struct Buffer {
    const void* data;
    size_t length;
    void* deallocator;
  };
  const auto* ops = static_cast<const Buffer*>(call("TF_GetAllOpList")());
  if (ops == nullptr || ops->length < 100000) return weir::Internal("TensorFlow has no ops");
  weir::proto::OpList list;
  if (!list.ParseFromArray(ops->data, static_cast<int>(ops->length)) || list.op_size() < 1000) {
    return weir::Internal("TensorFlow's ops cannot be read");
  }
  void* const status = call("TF_NewStatus")();
  void* const graph = call("TF_NewGraph")();
  void* const session = call("TF_NewSession")(graph, call("TF_NewSessionOptions")(), status);
  return session == nullptr ? weir::Internal("TensorFlow makes no session") : absl::OkStatus();
}

absl::Status Run(char** argv) {
  WEIR_RETURN_IF_ERROR(UseWeir(argv[2]));
  WEIR_RETURN_IF_ERROR(UseTensorFlow(argv[1]));
  WEIR_RETURN_IF_ERROR(UseWeir(argv[2]));
  return Serve();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const absl::Status status = Run(argv);
  std::fprintf(stderr, "%s\n", status.ok() ? "both work" : status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
