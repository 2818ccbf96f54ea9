#include "weir/tools/serve/options.h"

namespace weir::tools {

namespace {

constexpr double kMaxMinutes = 1e6, kMaxSeconds = 60 * kMaxMinutes;

}  // namespace

void DeclareServeOptions(Command& serve, ServeOptions& options) {
  rpc::ServerOptions& server = options.server;
  Command what = serve.OneOf();
  what.Value("--port", &server.port, "port to listen on; 0: any free port (it is printed)")
      .Range(0, 65535);
  what.Value("--status", &options.status_of,
             "do not serve; print the status of the server at grpc://HOST:PORT")
      .Word("TARGET");
  what.Value("--cluster", &options.cluster.cluster,
             "serve a task of this cluster, on the port that it has there, to TensorFlow's servers "
             "and Weir's: jobs separated by ',', tasks by ';'")
      .Word("'JOB|HOST:PORT;HOST:PORT,...'");
  serve.Value("--job", &options.cluster.job, "with --cluster: the job of this task").Word("JOB");
  serve.Value("--task", &options.cluster.task, "with --cluster: its number in the job; default: 0")
      .AtLeast(0);
  serve
      .Value("--peer-timeout", &options.cluster.peer_seconds,
             "with --cluster: end steps that wait for a task which has not answered for N seconds; "
             "default: 60; 0: never")
      .Range(0, kMaxSeconds);
  serve
      .Value("--bind", &server.address,
             "address to listen on; default: 127.0.0.1 (this machine only)")
      .Word("ADDRESS");
  serve
      .Repeated("--allow-path", &options.allowed,
                "a directory that clients may read and write; repeatable; default: no file access")
      .Word("DIR");
  serve
      .Value("--max-sessions", &server.master.max_sessions,
             "maximum number of sessions; default: 1000")
      .AtLeast(1);
  serve
      .Value("--max-calls", &server.max_calls,
             "maximum number of concurrent calls over gRPC; default: 1000. Closing sessions and "
             "--status work beyond it")
      .AtLeast(1);
  serve
      .Value("--max-connections", &server.max_connections,
             "maximum number of connections; default: 0: as many as file descriptors allow")
      .AtLeast(0);
  serve
      .Value("--max-client-connections", &server.max_client_connections,
             "maximum number of connections from one address; default: 0: half of all")
      .AtLeast(0);
  serve
      .Value(
          "--max-connection-calls", &server.max_connection_calls,
          "maximum number of concurrent calls on one connection; default: 0: no limit of its own")
      .AtLeast(0);
  serve
      .Value("--transfer-seconds", &options.transfer_seconds,
             "cancel calls whose request does not arrive, or whose response is not read, within N "
             "seconds; default: 300; 0: never")
      .Range(0, kMaxSeconds);
  serve
      .Value(
          "--max-message-mb", &options.max_message_mb,
          "maximum size of a request in MB; default: 64 for models only, or if other machines can "
          "connect without a certificate; otherwise 2047")
      .Range(1, 2047);
  serve
      .Value("--max-request-mb", &options.max_request_mb,
             "memory in MB that a request may take when it is parsed, if that is more than 3 times "
             "its size; default: 256, or 64 if other machines can connect without a certificate")
      .Range(1, 1e6);
  serve
      .Value("--max-response-mb", &options.max_response_mb,
             "maximum size of a response in MB, of a step with its trace or of a model, over gRPC "
             "and REST; default: 0: 2 GB")
      .Range(0, 2047);
  serve
      .Value("--max-memory-mb", &options.max_memory_mb,
             "maximum memory of all tensors and large messages in MB; default: 0: what the system, "
             "its container and the limits of the process leave")
      .Range(0, 1e9);
  serve
      .Value("--idle-minutes", &options.idle_minutes,
             "close sessions that have been idle for N minutes; default: 1440; 0: never")
      .Range(0, kMaxMinutes);
  serve
      .Value("--orphan-minutes", &options.orphan_minutes,
             "close sessions whose connections have all been closed for N minutes; default: 10; 0: "
             "never")
      .Range(0, kMaxMinutes);
  serve
      .Value("--keepalive-seconds", &options.keepalive_seconds,
             "ping clients every N seconds, and close connections that do not answer for as long; "
             "default: 60")
      .Range(1, 3600);
  serve
      .Value("--grace-seconds", &options.grace_seconds,
             "seconds that calls may take to finish after SIGTERM; default: 30")
      .AtLeast(0);
  serve
      .Value("--step-seconds", &options.step_seconds,
             "time limit of steps for which the client sets none; default: 0: none")
      .Range(0, kMaxSeconds);
  serve
      .Value("--max-step-seconds", &options.max_step_seconds,
             "the longest time limit of a step; default: 0: any")
      .Range(0, kMaxSeconds);
  serve
      .Value("--device-name", &server.master.session.task,
             "the server's task, such as '/job:worker/replica:0/task:1', for graphs that name a "
             "task; default: /job:localhost/replica:0/task:0")
      .Word("TASK");
  serve
      .Value("--threads", &server.master.session.num_threads,
             "number of threads; default: one per processor")
      .AtLeast(0);
  serve.Value("--tls-cert", &options.certificate_file, "use TLS with this certificate")
      .Word("FILE");
  serve.Value("--tls-key", &options.key_file, "the private key of the certificate").Word("FILE");
  serve
      .Value("--tls-client-ca", &options.client_authority_file,
             "accept only clients with a certificate from this authority")
      .Word("FILE");
  serve
      .Value(
          "--tls-server-ca", &options.server_authority_file,
          "with --status: the authority that signed the server's certificate; with --cluster and "
          "--tls-cert: those of the tasks; default: --tls-client-ca")
      .Word("FILE");
  serve
      .Value("--token-file", &options.token_file,
             "with --status: a file with the token of a client in the server's --clients; with "
             "--cluster: in those of the other tasks")
      .Word("FILE");
  AddSafetyOptions(serve, &options.safety);
  serve
      .Value("--metrics-port", &options.metrics_port,
             "export Prometheus metrics at /metrics on this port")
      .Range(0, 65535);
  serve
      .Value("--metrics-bind", &options.metrics_address,
             "address to export metrics on, without TLS; default: 127.0.0.1 (this machine only)")
      .Word("ADDRESS");
  serve.Flag("--sessions", &options.sessions,
             "with models: serve sessions too, for clients that send graphs");
  serve
      .Value("--rest_api_port", &options.rest_port,
             "serve the models over HTTP on this port too; default: 0: do not")
      .Range(0, 65535);
  serve
      .Value("--rest_api_timeout_in_ms", &options.rest_timeout_ms,
             "time limit of a call over HTTP; default: 30000")
      .AtLeast(1);
  serve
      .Value("--rest_api_num_threads", &options.rest_threads,
             "number of calls over HTTP that run at once; default: 64")
      .Range(1, 10'000);
  serve
      .Value("--monitoring_config_file", &options.monitoring_file,
             "a MonitoringConfig in text format, as TensorFlow Serving's: the path of the metrics")
      .Word("FILE");
  serve
      .Value("--log-format", &options.log_format,
             "log calls and events to standard error, one line each: text or json")
      .Word("FORMAT");
  serve
      .Value("--log-calls", &options.logged_calls,
             "with --log-format, the calls to log: all (default), errors or none")
      .Word("WHICH");
  serve.Flag("--check", &options.check,
             "check the options and the files that they name, and exit without serving");
}

void DeclareModelOptions(Command& serve, ModelOptions& options) {
  serve
      .Repeated("--model", &options.models,
                "serve the model in this directory, which has a sub-directory for each version; "
                "repeatable")
      .Word("NAME=DIR");
  serve
      .Value("--model_config_file", &options.config_file,
             "serve the models in this file (a "
             "ModelServerConfig in text format); SIGHUP reads it again")
      .Word("FILE");
  serve
      .Value("--model_config_file_poll_wait_seconds", &options.config_file_poll_seconds,
             "read --model_config_file again every N seconds; default: 0: only after SIGHUP")
      .AtLeast(0);
  serve
      .Value("--model_base_path", &options.base_path,
             "the same as --model NAME=DIR with "
             "--model_name")
      .Word("DIR");
  serve
      .Value("--model_name", &options.name,
             "the name of the model in --model_base_path; default: default")
      .Word("NAME");
  serve
      .Value("--file_system_poll_wait_seconds", &options.file_system_poll_seconds,
             "look for new versions every N seconds; default: 1; 0: only at the start")
      .AtLeast(0);
  serve.Flag("--allow_version_labels_for_unavailable_models",
             &options.allow_labels_of_unavailable_versions,
             "labels may name versions that are not loaded yet");
  serve.Flag("--enable_batching", &options.enable_batching,
             "run requests of several clients in one step");
  serve
      .Value("--batching_parameters_file", &options.batching_file,
             "with --enable_batching: BatchingParameters in text format")
      .Word("FILE");
  serve
      .Value("--max_num_load_retries", &options.max_load_retries,
             "try to load a version so many times again; default: 5")
      .AtLeast(0);
  serve
      .Value("--load_retry_interval_micros", &options.load_retry_micros,
             "microseconds between these tries; default: 60000000")
      .AtLeast(0);
  serve
      .Value("--model-memory-mb", &options.memory_mb,
             "maximum memory of the loaded versions of each model in MB; default: 0: any")
      .Range(0, 1e9);
}

}  // namespace weir::tools
