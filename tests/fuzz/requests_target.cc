#include <memory>
#include <string>
#include <type_traits>

#include "weir/core/io/graph_io.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/master.pb.h"
#include "weir/rpc/master.h"
#include "weir/tests/fuzz/targets.h"

// Requests to a server: several per input, in one session. Each produces a response or an error,
// and a plain step succeeds afterward.
namespace weir::fuzz {

namespace {

class Client {
 public:
  Client() {
    auto master = rpc::Master::Create({});
    Require(master.ok(), "a server is created");
    master_ = *std::move(master);
  }

  void SendRequests(Input in) {
    Open();
    for (int requests = 0; !in.empty() && requests < 20; ++requests) {
      const uint8_t method = in.Byte();
      Send(method % 7, in.NextBytes());
    }
    Require(PlainStepSucceeds(), "a plain step succeeds afterward");
    proto::CloseSessionRequest close;
    close.set_session_handle(handle_);
    proto::CloseSessionResponse closed;
    master_->CloseSession(close, none_, &closed).IgnoreError();
  }

 private:
  void Open() {
    Graph g;
    const Output x = Placeholder(g, DT_FLOAT, Shape::UnknownRank(), "x");
    Multiply(x, Const(g, 2.f, "two"), "y");
    proto::CreateSessionRequest request;
    request.mutable_config()->set_isolate_session_state(true);
    ExportGraphDef(g, request.mutable_graph_def());
    proto::CreateSessionResponse response;
    Require(master_->CreateSession(request, none_, &response).ok(), "a session is created");
    handle_ = response.session_handle();
  }

  bool PlainStepSucceeds() {
    proto::RunStepRequest request;
    request.set_session_handle(handle_);
    proto::NamedTensorProto* feed = request.add_feed();
    feed->set_name("x:0");
    TensorToProto(Tensor::Scalar(3.f), feed->mutable_tensor());
    request.add_fetch("y:0");
    proto::RunStepResponse response;
    return master_->RunStep(request, none_, &response).ok() && response.tensor_size() == 1;
  }

  void Send(int method, absl::string_view bytes) {
    switch (method) {
      case 0:
        return Call(bytes, &rpc::Master::RunStep);
      case 1:
        return Call(bytes, &rpc::Master::ExtendSession);
      case 2:
        return Call(bytes, &rpc::Master::PartialRunSetup);
      case 3:
        return Call(bytes, &rpc::Master::MakeCallable);
      case 4:
        return Call(bytes, &rpc::Master::RunCallable);
      case 5:
        return Call(bytes, &rpc::Master::ReleaseCallable);
      default:
        return Create(bytes);
    }
  }

  template <class RequestArg, class Response>
  void Call(absl::string_view bytes,
            absl::Status (rpc::Master::*method)(RequestArg&, rpc::Call&, Response*)) {
    using Request = std::remove_const_t<RequestArg>;
    Request request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    request.set_session_handle(handle_);
    // A blocked step must not wait forever.
    if constexpr (std::is_same_v<Request, proto::RunStepRequest>)
      request.mutable_options()->set_timeout_in_ms(500);
    if constexpr (std::is_same_v<Request, proto::MakeCallableRequest>)
      request.mutable_options()->mutable_run_options()->set_timeout_in_ms(500);
    Response response;
    const absl::Status status = (master_.get()->*method)(request, none_, &response);
    Require(status.ok() || !status.message().empty(), "an error has a message");
  }

  void Create(absl::string_view bytes) {
    proto::CreateSessionRequest request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    request.mutable_config()->set_isolate_session_state(true);
    proto::CreateSessionResponse response;
    if (!master_->CreateSession(request, none_, &response).ok()) return;
    proto::CloseSessionRequest close;
    close.set_session_handle(response.session_handle());
    proto::CloseSessionResponse closed;
    Require(master_->CloseSession(close, none_, &closed).ok(), "an opened file can be closed");
  }

  std::unique_ptr<rpc::Master> master_;
  rpc::Call none_;
  std::string handle_;
};

}  // namespace

void Requests(absl::string_view bytes) {
  static Client* const client = new Client;
  client->SendRequests(Input(bytes));
}

std::vector<Row> Rows() { return {{"requests", Requests, 1000}}; }

}  // namespace weir::fuzz
