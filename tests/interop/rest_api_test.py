#!/usr/bin/env python3
"""Models of weir serve over HTTP: clients, logs of requests, disconnects; and the configuration files.

Skipped without TensorFlow, or without TensorFlow Serving's API.
usage: rest_api_test.py WEIR_SERVE
"""

import concurrent.futures
import glob
import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import serving_api_test  # exits if there is no TensorFlow
from serving_api_test import grpc, np, prediction_log_pb2, prediction_service_pb2_grpc, tf, v1, write_half_plus

BATCHING = """max_batch_size { value: 8 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 100 }
num_batch_threads { value: 2 }
allowed_batch_sizes: [1, 8]
"""


def write_slow(directory):
    """y = x + the number of iterations of a loop, 10 per unit of x."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], "x")
        limit = tf.cast(10 * tf.reduce_max(x), tf.int64)
        count = tf.while_loop(lambda i: i < limit, lambda i: i + 1, [tf.constant(0, tf.int64)])
        v1.saved_model.simple_save(session, directory, {"x": x}, {"y": x + tf.cast(count, tf.float32)})


def within(seconds, holds):
    until = time.time() + seconds
    while not holds() and time.time() < until:
        time.sleep(0.05)
    return holds()


class Server:
    """A weir-serve process with REST, for the duration of a with statement."""

    def __init__(self, weir, log, *flags):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = log
        with open(log, "w") as err:
            self.process = subprocess.Popen(
                [weir, "serve", "--port", "0", "--rest_api_port", str(self.port), "--log-format", "json",
                 "--grace-seconds", "5", *flags], stdout=subprocess.PIPE, stderr=err, text=True)
        lines = [self.process.stdout.readline() for _ in range(2)]
        self.target = lines[0].split()[-1]
        self.status = None

    def __enter__(self):
        within(60, lambda: self.get("/readyz")[0] == 200)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.status = self.process.wait(timeout=60)
        self.process.stdout.close()

    def request(self, method, path, body=None, token=None, **headers):
        """Returns the status and the parsed body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        if token:
            headers["Authorization"] = "Bearer " + token
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read().decode()
        except OSError as e:
            return 0, str(e)
        finally:
            connection.close()
        return response.status, json.loads(text) if text.startswith("{") else text

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, value, **more):
        return self.request("POST", "/v1/models/" + path, json.dumps(value), **more)

    def half(self, x, **more):
        """x / 2 + the addend of the version that answers; or the status."""
        status, body = self.post("half:predict", {"instances": [x]}, **more)
        return body["predictions"][0]["y"] if status == 200 else status

    def events(self):
        with open(self.log) as f:
            return [json.loads(line) for line in f if line.startswith("{")]

    def calls(self, **fields):
        return [e for e in self.events() if e["event"] == "call" and fields.items() <= e.items()]

    def has_event(self, *words):
        return any(all(word in e.get("text", "") for word in words) for e in self.events())


class Test(serving_api_test.Test):
    def write(self, name, text):
        path = self.folder(name)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)
        return path

    def model(self, name, folder, more=""):
        return 'config {\n name: "%s"\n base_path: "%s"\n model_platform: "tensorflow"\n%s}\n' % (
            name, self.folder(folder), more)

    def config(self, *models, name="models.config"):
        return self.write(name, "model_config_list {\n%s}\n" % "".join(models))

    def clients(self, *lines):
        return self.write("clients", "".join(
            "%s token-sha256=%s %s\n" % (name, hashlib.sha256(token.encode()).hexdigest(), quotas)
            for name, token, quotas in lines))

    def test_clients(self):
        path = self.clients(("alice", "sesame", "request-mb=1"), ("bob", "mellon", ""))
        with Server(self.weir, self.log, "--model", "half=" + self.folder("half"), "--clients", path) as server:
            got = [server.half(2, token=token) for token in (None, "guess", "sesame", "mellon")]
            self.expect(got == [401, 401, 3, 3], "tokens: %s" % got)
            got = [server.get(p)[0] for p in ("/", "/healthz", "/readyz", "/v1/models/half")]
            self.expect(got == [401, 200, 200, 401], "pages for strangers: %s" % got)
            done = subprocess.run(
                ["curl", "-s", "-H", "Authorization: Bearer sesame", "-d", '{"instances": [1.0, 2.0, 5.0]}',
                 "http://127.0.0.1:%d/v1/models/half:predict" % server.port], capture_output=True, text=True)
            self.expect([row["y"] for row in json.loads(done.stdout)["predictions"]] == [2.5, 3, 4.5], "curl")
            status, body = server.post("half:predict", {"instances": [1.0] * 300000}, token="sesame")
            self.expect(status == 429 and "Client alice has reached its quota of 1 MB" in body["error"],
                        "a quota: %d %s" % (status, body))
            self.clients(("alice", "changed", ""))
            server.process.send_signal(signal.SIGHUP)
            self.expect(within(10, lambda: server.half(2, token="changed") == 3), "SIGHUP reloads the clients")
            self.expect(server.half(2, token="sesame") == 401, "and an old token is worth nothing")
            self.expect(within(5, lambda: server.calls(client_name="bob", method="Predict", entrypoint="REST")),
                        "the log names the client")
            with open(self.log) as f:
                text = f.read()
            self.expect(not any(t in text for t in ("sesame", "mellon", "guess", "changed")), "the log has no token")
        self.expect(server.status == 0, "status %d" % server.status)

    def test_limits(self):
        option = "a response is limited to 1048576 bytes (weir serve --max-response-mb)"
        path = self.clients(("alice", "sesame", "memory-mb=10"), ("bob", "mellon", ""))
        flags = ["--model", "half=" + self.folder("half"), "--max-response-mb", "1", "--clients", path]
        with Server(self.weir, self.log, *flags) as server:
            values = {"instances": [1.0] * 200000}
            status, body = server.post("half:predict", values, token="mellon")
            self.expect(status == 429 and "weir serve --max-response-mb" in body["error"], "a response of 8 MB: %s" % body)
            channel = grpc.insecure_channel(server.target.split("//")[1])
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            request = self.request("half", x=np.ones([200000], np.float32))
            try:
                got = stub.Predict(request, timeout=60, metadata=[("authorization", "Bearer mellon")])
            except grpc.RpcError as e:
                got = e.details()
            self.expect(option in str(got), "1.6 MB over gRPC: %s" % str(got)[:200])
            values = {"instances": [1.0] * 2000000}
            status, body = server.post("half:predict", values, token="sesame")
            self.expect(status == 429 and "client alice (memory-mb in weir serve --clients)" in body["error"],
                        "a request that takes 20 MB: %s" % body)
            self.expect(server.half(2, token="sesame") == 3, "others succeed")

    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.root, check=True, capture_output=True)

    def certificate(self, name, *extension):
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + name, "-keyout", name + ".key",
                     "-out", name + ".csr")
        self.write("extension", "\n".join(extension))
        self.openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                     "-days", "1", "-extfile", "extension", "-out", name + ".pem")

    def test_certificates(self):
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ca", "-days", "1",
                     "-keyout", "ca.key", "-out", "ca.pem")
        self.certificate("server", "subjectAltName=IP:127.0.0.1")
        self.certificate("bob", "subjectAltName=DNS:bob.example.com")
        self.certificate("eve", "subjectAltName=DNS:eve.example.com")
        path = self.write("clients", "bob certificate=bob.example.com\n")
        flags = ["--tls-cert", self.folder("server.pem"), "--tls-key", self.folder("server.key"),
                 "--tls-client-ca", self.folder("ca.pem"), "--clients", path]
        server = Server(self.weir, self.log, "--model", "half=" + self.folder("half"), *flags)

        def curl(*own):
            done = subprocess.run(["curl", "-s", "-o", "-", "-w", " %{http_code}", "--cacert", self.folder("ca.pem"),
                                   *own, "-d", '{"instances": [2.0]}',
                                   "https://127.0.0.1:%d/v1/models/half:predict" % server.port],
                                  capture_output=True, text=True)
            return int(done.stdout.split()[-1])

        def with_own(name):
            return curl("--cert", self.folder(name + ".pem"), "--key", self.folder(name + ".key"))
        self.expect(within(60, lambda: with_own("bob") == 200), "a certificate that the list has")
        self.expect(with_own("eve") == 401, "one that it has not")
        self.expect(curl() == 0, "none")
        server.__exit__()

    def test_log_of_requests(self):
        prefix = self.folder("requests")
        logging = ('logging_config { log_collector_config { filename_prefix: "%s" }\n'
                   'sampling_config { sampling_rate: 1 } }\n' % prefix)
        config = self.config(self.model("half", "half", logging))
        with Server(self.weir, self.log, "--model_config_file", config) as server:
            server.half(2)
            server.post("half:classify", {"signature_name": "classify", "examples": [{"x": 4.0}]})
            server.post("half:regress", {"signature_name": "regress", "examples": [{"x": 6.0}]})
            server.post("half:predict", {"instances": ["no number"]})
        (path,) = glob.glob(prefix + ".*.tfrecord")
        logs = [prediction_log_pb2.PredictionLog.FromString(r.numpy()) for r in tf.data.TFRecordDataset(path)]
        kinds = [log.WhichOneof("log_type") for log in logs]
        self.expect(kinds == ["predict_log", "classify_log", "regress_log"], "the log of requests: %s" % kinds)
        predict = logs[0].predict_log
        self.expect(tf.make_ndarray(predict.request.inputs["x"]).tolist() == [2] and
                    tf.make_ndarray(predict.response.outputs["y"]).tolist() == [3], "with request and response")
        example = logs[2].regress_log.request.input.example_list.examples[0]
        self.expect(example.features.feature["x"].float_list.value[0] == 6, "with examples")
        warm = self.folder("warm", "1")
        shutil.copytree(self.folder("half", "1"), warm)
        os.makedirs(os.path.join(warm, "assets.extra"))
        shutil.copy(path, os.path.join(warm, "assets.extra", "tf_serving_warmup_requests"))
        with Server(self.weir, self.log, "--model", "half=" + self.folder("warm")) as server:
            self.expect(server.half(2) == 3, "which can warm up a model")

    def test_disconnects(self):
        with Server(self.weir, self.log, "--model", "slow=" + self.folder("slow"),
                    "--rest_api_timeout_in_ms", "600000") as server:
            status, body = server.post("slow:predict", {"instances": [1.0]})
            self.expect(status == 200 and body["predictions"] == [11.0], "a short call: %s" % body)
            body = json.dumps({"instances": [1e15]})
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(("POST /v1/models/slow:predict HTTP/1.1\r\nX-Request-Id: long\r\n"
                                    "Content-Length: %d\r\n\r\n%s" % (len(body), body)).encode())
                time.sleep(1)
                self.expect(not server.calls(request_id="long"), "a long call")
            self.expect(within(10, lambda: server.calls(request_id="long", code="CANCELLED")),
                        "ends when its client goes")
            status, _ = server.post("slow:predict", {"instances": [1.0]}, **{"X-Weir-Priority": "low"})
            self.expect(status == 200, "low priority")
            status, body = server.post("slow:predict", {"instances": [1.0]}, **{"X-Weir-Priority": "none"})
            self.expect(status == 400 and "expected high or low" in body["error"], "another: %s" % body)

    def test_batching(self):
        batching = self.write("batching.config", BATCHING)
        with Server(self.weir, self.log, "--model", "half=" + self.folder("half"), "--enable_batching",
                    "--batching_parameters_file", batching) as server:
            with concurrent.futures.ThreadPoolExecutor(32) as pool:
                got = list(pool.map(lambda i: server.half(2 * i) == i + 2, range(400)))
            self.expect(all(got), "400 calls that share steps")
            status, body = server.post("half:predict", {"instances": list(range(50))})
            self.expect(status == 200 and len(body["predictions"]) == 50, "a call of more rows than a batch")

    def test_config_is_followed(self):
        """--model_config_file is polled, SIGHUP reads it, and nothing is served half configured."""
        first, second = self.model("half", "half"), self.model("other", "half3")
        config = self.config(first)
        with Server(self.weir, self.log, "--model_config_file", config,
                    "--model_config_file_poll_wait_seconds", "1") as server:
            def has(model):
                return server.get("/v1/models/%s/metadata" % model)[0] == 200
            self.expect(has("half") and not has("other"), "the first file")
            self.config(first, second)
            self.expect(within(20, lambda: has("other")), "a model is added")
            self.config(second, first.replace("name", "nam"))
            self.expect(within(10, lambda: server.has_event("line 8", 'no field named "nam"')), "a mistake is reported")
            self.expect(has("half") and has("other"), "and changes nothing")
            self.config(first, self.model("late", "late"))
            self.expect(within(10, lambda: server.has_event("line 9", "late is not a directory")), "a missing directory")
            self.expect(has("other"), "which changes nothing either")
            shutil.copytree(self.folder("half"), self.folder("late"))
            self.expect(within(20, lambda: has("late")) and not has("other"), "and is tried again")
        config = self.config(first)
        with Server(self.weir, self.log, "--model_config_file", config) as server:
            self.config(second)
            time.sleep(2)
            self.expect(has("half") and not has("other"), "without polling the file is not read")
            server.process.send_signal(signal.SIGHUP)
            self.expect(within(20, lambda: has("other") and not has("half")), "SIGHUP reads it")
            self.config(second + "config {")
            server.process.send_signal(signal.SIGHUP)
            self.expect(within(10, lambda: server.has_event("models.config: line")), "and reports mistakes")
            self.expect(has("other") and server.process.poll() is None, "the server goes on")

    def refused(self, words, *flags):
        """Whether a server with these flags neither starts nor passes --check, with these words."""
        for more in (["--check"], []):
            try:
                done = subprocess.run([self.weir, "serve", "--port", "0", *flags, *more], capture_output=True,
                                      text=True, timeout=20)
            except subprocess.TimeoutExpired:
                return self.expect(False, "%s: it is served" % words)
            good = done.returncode == 1 and all(word in done.stderr for word in words)
            self.expect(good and "Serving" not in done.stdout, "%s: %s" % (" ".join(more), done.stderr.strip()))
        return None

    def test_mistakes_have_lines(self):
        good = self.model("half", "half")
        for line, words, text in (
                (3, ["no field named", "Expected one of: name"], good.replace(" name", " nam")),
                (2, ["model_platform"], good.replace(' model_platform: "tensorflow"\n', "")),
                (5, ["expected \"tensorflow\""], good.replace('"tensorflow"', '"torch"')),
                (4, ["absolute"], good.replace(self.folder("half"), "half")),
                (4, ["is not a directory", "expected one with"], good.replace(self.folder("half"), "/no/such")),
                (3, ["name"], good.replace('"half"', '"a/b"', 1)),
                (8, ["half"], good + good),
                (6, ["version"], self.model("half", "half", "model_version_policy { specific {} }\n")),
                (6, ["label"], self.model("half", "half", 'version_labels { key: "" value: 1 }\n')),
                (7, ["twice"], self.model("half", "half", 2 * 'version_labels { key: "a" value: 1 }\n')),
                (7, ["is not a directory"], self.model(
                    "half", "half", 'logging_config {\nlog_collector_config { filename_prefix: "/no/such/x" }\n}\n')),
                (6, ["rate"], self.model(
                    "half", "half", 'logging_config { log_collector_config { filename_prefix: "/tmp/x" }\n'
                    "sampling_config { sampling_rate: 2 } }\n"))):
            path = self.config(text, name="wrong.config")
            self.refused(["%s: line %d: " % (path, line)] + words, "--model_config_file", path)
        model = ["--model", "half=" + self.folder("half"), "--enable_batching", "--batching_parameters_file"]
        for line, words, text in (
                (1, ["max_batch_size is 0", "from 1 to"], BATCHING.replace("8 }", "0 }")),
                (2, ["batch_timeout_micros", "from 0 to"], BATCHING.replace("2000", "-1")),
                (3, ["max_enqueued_batches", "from 1 to"], BATCHING.replace("100 }", "0 }")),
                (4, ["num_batch_threads", "from 1 to"], BATCHING.replace("2 }\nall", "5000 }\nall")),
                (5, ["expected 8"], BATCHING.replace("[1, 8]", "[1, 7]")),
                (5, ["increasing"], BATCHING.replace("[1, 8]", "[8, 8]")),
                (1, ["no field named", "Expected one of: max_batch_size"], BATCHING.replace("max_batch_s", "batch_s"))):
            path = self.write("wrong.config", text)
            self.refused(["%s: line %d: " % (path, line)] + words, *model, path)
        path = self.write("wrong.config", 'prometheus_config {\n enable: true\n path: "metrics"\n}\n')
        self.refused(["%s: line 3: " % path, "expected an absolute path"], *model[:2], "--monitoring_config_file", path)

    def test_all(self):
        write_half_plus(self.folder("half", "1"), 2)
        write_half_plus(self.folder("half3", "1"), 3)
        write_slow(self.folder("slow", "1"))
        for name in ("clients", "limits", "certificates", "log_of_requests", "disconnects", "batching", "config_is_followed",
                     "mistakes_have_lines"):
            getattr(self, "test_" + name)()
        return 1 if self.faults else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        status = Test(sys.argv[1], folder).test_all()
    sys.exit(status)
