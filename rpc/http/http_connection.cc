#include "weir/rpc/http/http_connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "weir/rpc/http/certificate_names.h"

namespace weir::rpc {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Clock = std::chrono::steady_clock;
using Error = boost::system::error_code;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

constexpr uint32_t kMaxHeaderBytes = 8192;
constexpr size_t kReadBytes = size_t{16} << 10;
constexpr int64_t kBytesPerSecond = 64 << 10;  // the least rate of a transfer
// What the client still sends after an error response is read and dropped: if a socket is closed
// with unread data, the system discards the response.
constexpr std::chrono::seconds kLingerTime{2};
constexpr size_t kMaxLingerBytes = size_t{1} << 20;

absl::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

// The HTTP status for an error of Beast's parser; 0 for any other error (the client has gone, or is
// too slow), which needs no answer.
int StatusOfError(const Error& error) {
  if (error == http::error::header_limit) return 431;
  if (error == http::error::body_limit) return 413;
  const bool is_end = error == http::error::end_of_stream || error == http::error::partial_message;
  const bool is_syntax =
      error.category() == http::make_error_code(http::error::bad_method).category();
  return is_syntax && !is_end ? 400 : 0;
}

// A chain of asynchronous operations, each of which starts the next one when it has completed:
//
//   [handshake] -> header -> body, in pieces -> handler -> response -> header ...
//                                                                   -> linger -> end
//
// While the handler runs and the response is sent, one read notices that the client has gone. What
// it reads otherwise is the beginning of the next request. That request is read when this one has
// ended, which is when the response has been sent.
//
// Every operation has a deadline, after which Beast closes the socket. The operations own the
// object: when none is left, it is destroyed.
template <class Stream>
class Connection final : public HttpConnection,
                         public std::enable_shared_from_this<Connection<Stream>> {
 public:
  template <class... Args>
  explicit Connection(HttpHost& host, Args&&... args)
      : host_(host), options_(host.options()), stream_(std::forward<Args>(args)...) {}

  ~Connection() override {
    EndRequest();
    host_.Ended(*this);
  }

  void Start() override {
    host_.Waits(*this);
    Socket().expires_after(options_.header_timeout);
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      stream_.async_handshake(asio::ssl::stream_base::server, [self = Self()](Error error) {
        if (error) return;
        self->certificate_names_ = CertificateNames(self->stream_.native_handle());
        self->ReadHeader();
      });
    } else {
      ReadHeader();
    }
  }

  void Close() override { Socket().close(); }

  void Respond(HttpResponse response) override {
    // Does not fail for a response that is too large: the requests that follow do.
    CountBytes(static_cast<int64_t>(response.body.size()));
    Send(std::move(response), keeps_alive_ && !host_.is_draining());
  }

 private:
  std::shared_ptr<Connection> Self() { return this->shared_from_this(); }
  beast::tcp_stream& Socket() { return beast::get_lowest_layer(stream_); }

  bool CountBytes(int64_t more) {
    counted_ += more;
    return host_.CountBytes(more);
  }

  // The deadline of a transfer of which so many bytes are done.
  Clock::time_point Deadline(size_t bytes) const {
    const auto earned =
        std::chrono::milliseconds(static_cast<int64_t>(bytes) * 1000 / kBytesPerSecond);
    return transfer_begin_ + options_.transfer_timeout + earned;
  }

  // ---- header

  // The deadline has been set.
  void ReadHeader() {
    is_head_ = is_sent_ = false;
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(options_.max_body_bytes);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = Self()](Error error, size_t) { self->HeaderRead(error); });
  }

  void HeaderRead(const Error& error) {
    if (error) return Fail(error);
    transfer_begin_ = Clock::now();
    const auto& header = parser_->get();
    is_head_ = header.method() == http::verb::head;
    keeps_alive_ = parser_->keep_alive() && options_.keep_alive;
    request_ = {};
    request_.method = is_head_ ? "GET" : std::string(View(header.method_string()));
    request_.target = std::string(View(header.target()));
    request_.client = client;
    request_.certificate_names = certificate_names_;
    for (const auto& field : header) {
      request_.headers[absl::AsciiStrToLower(View(field.name_string()))] =
          std::string(View(field.value()));
    }
    if (options_.admit != nullptr) {
      std::optional<HttpResponse> refusal = options_.admit(request_);
      if (refusal) return Send(*std::move(refusal), /*keeps_alive=*/false);
    }
    const std::string encoding = request_.Header("content-encoding");
    if (!encoding.empty() && !absl::EqualsIgnoreCase(encoding, "identity"))
      return Refuse(415, absl::StrCat("Content-Encoding ", encoding, " is not supported"));
    const std::string expectation = request_.Header("expect");
    if (expectation.empty()) return ReadBody();
    if (!absl::EqualsIgnoreCase(expectation, "100-continue"))
      return Refuse(417, absl::StrCat("Expect: ", expectation, " is not supported"));
    static constexpr absl::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    Socket().expires_at(Deadline(0));
    asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                      [self = Self()](Error failed, size_t) {
                        if (!failed) self->ReadBody();
                      });
  }

  // ---- body

  void ReadBody() {
    if (parser_->is_done()) return Handle();
    piece_.resize(kReadBytes);
    parser_->get().body().data = piece_.data();
    parser_->get().body().size = piece_.size();
    Socket().expires_at(Deadline(request_.body.size()));
    http::async_read_some(stream_, buffer_, *parser_,
                          [self = Self()](Error error, size_t) { self->PieceRead(error); });
  }

  void PieceRead(const Error& error) {
    if (error && error != http::error::need_buffer) return Fail(error);
    const size_t size = piece_.size() - parser_->get().body().size;
    if (!CountBytes(static_cast<int64_t>(size)))
      return Refuse(503, "The server has no memory left for requests: try again later");
    request_.body.append(piece_.data(), size);
    ReadBody();
  }

  void Fail(const Error& error) {
    const int status = StatusOfError(error);
    if (status != 0) Refuse(status, absl::StrCat("Malformed request: ", error.message()));
  }

  // ---- handler and response

  void Handle() {
    piece_ = {};
    host_.Works(*this);
    Socket().expires_never();
    method_ = request_.method;
    const auto cancellation = std::make_shared<Cancellation>();
    request_.cancellation = cancellation;
    is_handled_ = host_.Handle(Self(), std::move(request_));
    if (!is_handled_) return Refuse(503, "The server is busy: try again later");
    Watch(cancellation);
  }

  // Cancels the request if the client goes.
  void Watch(const std::shared_ptr<Cancellation>& cancellation) {
    if (buffer_.size() > 0) return;  // the client has sent its next request, so it is there
    is_watched_ = true;
    stream_.async_read_some(buffer_.prepare(kReadBytes),
                            [self = Self(), cancellation](Error error, size_t size) {
                              self->buffer_.commit(size);
                              self->is_watched_ = false;
                              if (error && error != asio::error::operation_aborted)
                                cancellation->Cancel(absl::CancelledError("The client has gone"));
                              if (self->is_sent_) self->Continue();
                            });
  }

  void Refuse(int status, absl::string_view message) {
    Send(HttpError(status, message), /*keeps_alive=*/false);
  }

  void Send(HttpResponse response, bool keeps_alive) {
    response_ = {};
    response_.version(11);
    response_.result(static_cast<unsigned>(response.status));
    response_.set(http::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) response_.set(name, value);
    response_.keep_alive(keeps_alive);
    const size_t size = response.body.size();
    response_.content_length(size);
    if (!is_head_) response_.body() = std::move(response.body);
    response_memory_ = std::move(response.memory);
    transfer_begin_ = Clock::now();
    Socket().expires_at(Deadline(size));
    http::async_write(stream_, response_, [self = Self(), keeps_alive](Error error, size_t) {
      self->Sent(error, keeps_alive);
    });
  }

  void Sent(const Error& error, bool keeps_alive) {
    EndRequest();
    if (error) return Close();
    is_sent_ = true;
    keeps_alive_ = keeps_alive;
    if (!is_watched_) return Continue();
    Socket().cancel();
  }

  // Goes on after a response, when no operation is pending.
  void Continue() {
    host_.Waits(*this);
    if (!keeps_alive_) return Linger();
    Socket().expires_after(options_.idle_timeout);
    ReadHeader();
  }

  // The memory and the place of a request that was handled are free.
  void EndRequest() {
    response_ = {};
    response_memory_ = nullptr;
    request_ = {};
    host_.CountBytes(-std::exchange(counted_, 0));
    if (std::exchange(is_handled_, false)) host_.Handled(method_);
  }

  // ---- end

  void Linger() {
    Socket().expires_after(kLingerTime);
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      stream_.async_shutdown([self = Self()](Error) { self->Discard(0); });
    } else {
      Discard(0);
    }
  }

  void Discard(size_t discarded) {
    Error ignored;
    if (discarded == 0) Socket().socket().shutdown(asio::socket_base::shutdown_send, ignored);
    if (discarded > kMaxLingerBytes) return;
    piece_.resize(kReadBytes);
    Socket().async_read_some(asio::buffer(piece_),
                             [self = Self(), discarded](Error error, size_t n) {
                               if (!error) self->Discard(discarded + n);
                             });
  }

  HttpHost& host_;
  const HttpServerOptions& options_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::buffer_body>> parser_;
  std::vector<char> piece_;  // of a body
  Clock::time_point transfer_begin_;
  std::vector<std::string> certificate_names_;
  HttpRequest request_;
  std::string method_;  // of the request that is handled
  bool is_head_ = false, keeps_alive_ = false, is_handled_ = false;
  bool is_watched_ = false;  // see Watch
  bool is_sent_ = false;     // the response of the current request
  int64_t counted_ = 0;      // see HttpHost::CountBytes
  http::response<http::string_body> response_;
  std::shared_ptr<const void> response_memory_;
};

}  // namespace

std::shared_ptr<HttpConnection> MakeHttpConnection(asio::ip::tcp::socket socket,
                                                   asio::ssl::context* tls, HttpHost& host) {
  if (tls == nullptr)
    return std::make_shared<Connection<beast::tcp_stream>>(host, std::move(socket));
  return std::make_shared<Connection<TlsStream>>(host, std::move(socket), *tls);
}

}  // namespace weir::rpc
