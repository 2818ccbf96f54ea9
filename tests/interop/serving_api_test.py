#!/usr/bin/env python3
"""TensorFlow Serving's Python client, unchanged, on weir serve with models that TensorFlow writes.

Skipped without TensorFlow, or without TensorFlow Serving's API (pip install --no-deps
tensorflow-serving-api).
usage: serving_api_test.py WEIR_SERVE
"""

import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

for name in ("http_proxy", "https_proxy", "grpc_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
try:
    import grpc
    import numpy as np
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2
except ImportError:
    print("SKIPPED: Python has no TensorFlow")
    sys.exit(0)
try:
    from tensorflow_serving.apis import classification_pb2, get_model_metadata_pb2
    from tensorflow_serving.apis import get_model_status_pb2, inference_pb2, model_management_pb2
    from tensorflow_serving.apis import model_service_pb2_grpc, predict_pb2, prediction_log_pb2
    from tensorflow_serving.apis import prediction_service_pb2_grpc, regression_pb2
except ImportError:
    print("SKIPPED: Python has no tensorflow-serving-api")
    sys.exit(0)

v1 = tf.compat.v1
CODE = grpc.StatusCode


def write_half_plus(directory, addend):
    """x / 2 + addend, with the signatures of TensorFlow Serving's example of that name."""
    with tf.Graph().as_default(), v1.Session() as session:
        a = v1.get_variable("a", initializer=0.5)
        b = v1.get_variable("b", initializer=float(addend))
        x = v1.placeholder(tf.float32, [None], "x")
        y = a * x + b
        serialized = v1.placeholder(tf.string, [None], "examples")
        features = v1.parse_example(serialized, {"x": tf.io.FixedLenFeature([1], tf.float32)})
        row = a * features["x"] + b
        labels = tf.fill(tf.shape(row), "half")
        utils = v1.saved_model.signature_def_utils
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(directory)
        builder.add_meta_graph_and_variables(session, ["serve"], {
            "serving_default": utils.predict_signature_def({"x": x}, {"y": y, "minus": -y}),
            "regress": utils.regression_signature_def(serialized, row),
            "classify": utils.classification_signature_def(serialized, labels, row),
        })
        builder.save()


def write_mlp(directory):
    """A Keras 3 model, exported. Returns the function."""
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.Input([4]), tf.keras.layers.Dense(8, "relu"),
                                 tf.keras.layers.Dense(3, "softmax")])
    model.export(directory, verbose=False)
    return model


class Server:
    """A weir-serve process with models, for the duration of a with statement."""

    def __init__(self, weir, log, *flags):
        with open(log, "w") as err:
            self.process = subprocess.Popen(
                [weir, "serve", "--port", "0", "--metrics-port", "0", "--grace-seconds", "5", *flags],
                stdout=subprocess.PIPE, stderr=err, text=True)
        lines = [self.process.stdout.readline() for _ in range(2)]
        self.target, self.metrics = lines[0].split()[-1].split("//")[1], lines[1].split()[-1]
        channel = grpc.insecure_channel(self.target)
        self.predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(channel)
        self.health = channel.unary_unary("/grpc.health.v1.Health/Check",
                                          request_serializer=lambda x: x,
                                          response_deserializer=lambda x: x)

    def is_serving(self, service):
        return self.health(b"\x0a" + bytes([len(service)]) + service.encode()) == b"\x08\x01"

    def wait_until_ready(self):
        for _ in range(600):
            if self.is_serving("tensorflow.serving.PredictionService"):
                return
            time.sleep(0.1)
        raise TimeoutError("the models are not ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.status = self.process.wait(timeout=60)
        self.process.stdout.close()


class Test:
    def __init__(self, weir, root):
        self.weir, self.root, self.faults = weir, root, 0
        self.log = os.path.join(root, "log")

    def expect(self, holds, text):
        print("ok  " if holds else "BAD ", text, flush=True)
        self.faults += not holds

    def expect_error(self, call, code, *words):
        try:
            call()
            self.expect(False, "%s expected, but it succeeded" % code)
        except grpc.RpcError as e:
            good = e.code() == code and all(word in e.details() for word in words)
            self.expect(good, "%s: %s" % (e.code(), e.details()))

    def folder(self, *parts):
        return os.path.join(self.root, *parts)

    @staticmethod
    def request(name, **inputs):
        request = predict_pb2.PredictRequest()
        request.model_spec.name = name
        for key, value in inputs.items():
            request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
        return request

    @staticmethod
    def add_examples(request, *values):
        for value in values:
            example = request.input.example_list.examples.add()
            example.features.feature["x"].float_list.value.append(value)
        return request

    def write_models(self):
        write_half_plus(self.folder("half", "1"), 2)
        write_half_plus(self.folder("half", "2"), 3)
        self.mlp = write_mlp(self.folder("mlp", "1"))
        self.config = self.folder("models.config")
        with open(self.config, "w") as f:
            f.write('''model_config_list {
  config {
    name: "half" base_path: "%s" model_platform: "tensorflow"
    model_version_policy { all {} }
    version_labels { key: "stable" value: 1 }
    logging_config {
      log_collector_config { filename_prefix: "%s" }
      sampling_config { sampling_rate: 1 }
    }
  }
  config { name: "mlp" base_path: "%s" model_platform: "tensorflow" }
}
''' % (self.folder("half"), self.folder("requests"), self.folder("mlp")))

    def test_predict(self, server):
        predict = server.predictions.Predict
        request = self.request("half", x=np.float32([1, 2, 5]))
        response = predict(request)
        self.expect(list(response.outputs["y"].float_val) == [3.5, 4, 5.5], "typed fields")
        self.expect(tf.make_ndarray(response.outputs["minus"]).tolist() == [-3.5, -4, -5.5],
                    "make_ndarray")
        self.expect(response.model_spec.version.value == 2, "the latest version answers")
        request.output_filter.append("y")
        self.expect(list(predict(request).outputs) == ["y"], "output_filter")
        request.model_spec.version_label = "stable"
        response = predict(request, timeout=60)
        self.expect(list(response.outputs["y"].float_val) == [2.5, 3, 4.5] and
                    response.model_spec.version.value == 1, "a label")
        x = np.random.default_rng(1).normal(size=[64, 4]).astype(np.float32)
        metadata = server.predictions.GetModelMetadata(self.metadata_request("mlp"))
        signatures = get_model_metadata_pb2.SignatureDefMap()
        metadata.metadata["signature_def"].Unpack(signatures)
        (name,) = signatures.signature_def["serving_default"].inputs
        response = predict(self.request("mlp", **{name: x}))
        (value,) = response.outputs.values()
        difference = np.abs(tf.make_ndarray(value) - self.mlp(x).numpy()).max()
        self.expect(difference < 1e-6, "a Keras export, up to %.2g" % difference)

    def test_examples(self, server):
        request = classification_pb2.ClassificationRequest()
        request.model_spec.name, request.model_spec.signature_name = "half", "classify"
        result = server.predictions.Classify(self.add_examples(request, 2, 4)).result
        self.expect([(c.classes[0].label, c.classes[0].score) for c in result.classifications] ==
                    [("half", 4), ("half", 5)], "Classify")
        request = regression_pb2.RegressionRequest()
        request.model_spec.name, request.model_spec.signature_name = "half", "regress"
        result = server.predictions.Regress(self.add_examples(request, 2, 4)).result
        self.expect([r.value for r in result.regressions] == [4, 5], "Regress")
        request = inference_pb2.MultiInferenceRequest()
        for kind in ("regress", "classify"):
            task = request.tasks.add(method_name="tensorflow/serving/" + kind)
            task.model_spec.name, task.model_spec.signature_name = "half", kind
        results = server.predictions.MultiInference(self.add_examples(request, 2)).results
        self.expect(results[0].regression_result.regressions[0].value == 4 and
                    results[1].classification_result.classifications[0].classes[0].score == 4,
                    "MultiInference")

    @staticmethod
    def metadata_request(model):
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        request.model_spec.name = model
        return request

    def test_metadata(self, server):
        for model, version in (("half", "2"), ("mlp", "1")):
            response = server.predictions.GetModelMetadata(self.metadata_request(model))
            ours = get_model_metadata_pb2.SignatureDefMap()
            response.metadata["signature_def"].Unpack(ours)
            theirs = saved_model_pb2.SavedModel()
            with open(self.folder(model, version, "saved_model.pb"), "rb") as f:
                theirs.ParseFromString(f.read())
            for name, their in theirs.meta_graphs[0].signature_def.items():
                if name == "__saved_model_init_op":
                    continue
                our = ours.signature_def[name]
                same = our.method_name == their.method_name and all(
                    {k: (i.name, i.dtype, i.tensor_shape) for k, i in our_infos.items()} ==
                    {k: (i.name, i.dtype, i.tensor_shape) for k, i in their_infos.items()}
                    for our_infos, their_infos in ((our.inputs, their.inputs),
                                                   (our.outputs, their.outputs)))
                self.expect(same, "signature %s of %s is TensorFlow's" % (name, model))

    def versions(self, server, model):
        request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = model
        State = get_model_status_pb2.ModelVersionStatus.State
        return {v.version: State.Name(v.state)
                for v in server.models.GetModelStatus(request).model_version_status}

    def test_versions(self, server):
        self.expect(self.versions(server, "half") == {1: "AVAILABLE", 2: "AVAILABLE"}, "status")
        write_half_plus(self.folder("new"), 4)
        os.rename(self.folder("new"), self.folder("half", "7"))
        until = time.time() + 60
        while self.versions(server, "half").get(7) != "AVAILABLE" and time.time() < until:
            time.sleep(0.1)
        response = server.predictions.Predict(self.request("half", x=np.float32([1])))
        self.expect(list(response.outputs["y"].float_val) == [4.5], "a new version is served")

    def test_errors(self, server):
        predict, x = server.predictions.Predict, np.float32([1])
        self.expect_error(lambda: predict(predict_pb2.PredictRequest()), CODE.INVALID_ARGUMENT,
                          "Missing ModelSpec")
        self.expect_error(lambda: predict(self.request("none", x=x)), CODE.NOT_FOUND,
                          "Servable not found for request: Latest(none)")
        request = self.request("half", x=x)
        request.model_spec.version.value = 9
        self.expect_error(lambda: predict(request), CODE.NOT_FOUND,
                          "Servable not found for request: Specific(half, 9)")
        request.model_spec.version_label = "canary"
        self.expect_error(lambda: predict(request), CODE.INVALID_ARGUMENT, "canary")
        self.expect_error(lambda: predict(self.request("half", z=x)), CODE.INVALID_ARGUMENT, "z", "x")
        self.expect_error(lambda: predict(self.request("half", x=np.int32([1]))),
                          CODE.INVALID_ARGUMENT)
        request = self.request("half", x=x)
        request.model_spec.signature_name = "none"
        self.expect_error(lambda: predict(request), CODE.FAILED_PRECONDITION,
                          'Serving signature key "none" not found')
        request = self.request("half", x=x)
        request.output_filter.append("w")
        self.expect_error(lambda: predict(request), CODE.INVALID_ARGUMENT, "w", "y")
        request = regression_pb2.RegressionRequest()
        request.model_spec.name, request.model_spec.signature_name = "half", "regress"
        self.expect_error(lambda: server.predictions.Regress(request), CODE.INVALID_ARGUMENT,
                          "Input is empty")
        request.input.example_list.examples.add()
        self.expect_error(lambda: server.predictions.Regress(request), CODE.INVALID_ARGUMENT, "x")
        request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = "none"
        self.expect_error(lambda: server.models.GetModelStatus(request), CODE.NOT_FOUND, "none")

    def test_reload(self, server):
        request = model_management_pb2.ReloadConfigRequest()
        config = request.config.model_config_list.config.add(
            name="again", base_path=self.folder("half"), model_platform="tensorflow")
        config.model_version_policy.specific.versions.append(1)
        self.expect(server.models.HandleReloadConfigRequest(request).status.error_code == 0, "reload")
        response = server.predictions.Predict(self.request("again", x=np.float32([1])))
        self.expect(list(response.outputs["y"].float_val) == [2.5], "the new model is served")
        self.expect_error(lambda: server.predictions.Predict(self.request("mlp", x=np.float32([1]))),
                          CODE.NOT_FOUND)
        config.base_path = "/usr"
        self.expect_error(lambda: server.models.HandleReloadConfigRequest(request),
                          CODE.PERMISSION_DENIED, "/usr", "--allow-path")
        config.base_path = "relative"
        self.expect_error(lambda: server.models.HandleReloadConfigRequest(request),
                          CODE.INVALID_ARGUMENT)

    def test_logs(self, server, sent):
        with open(self.log) as f:
            lines = [json.loads(line) for line in f]
        call = next(line for line in lines if line.get("request_id") == sent)
        self.expect(call["model"] == "half" and call["code"] == "OK" and call["method"] == "Predict" and
                    call["trace_id"] == "0af7651916cd43dd8448eb211c80319c", "the access log")
        errors = [line for line in lines if line["level"] == "error" and line["event"] == "call"]
        self.expect(any("Missing ModelSpec" in line["error"] for line in errors), "errors in it")
        self.expect(any(line["event"] == "ready" for line in lines), "events in it")
        (path,) = glob.glob(self.folder("requests.*.tfrecord"))
        logs = [prediction_log_pb2.PredictionLog.FromString(r.numpy())
                for r in tf.data.TFRecordDataset(path)]
        kinds = {log.WhichOneof("log_type") for log in logs}
        self.expect(kinds == {"predict_log", "classify_log", "regress_log", "multi_inference_log"},
                    "the log of requests has %d records" % len(logs))
        first = logs[0]
        self.expect(list(first.predict_log.response.outputs["y"].float_val) == [3.5, 4, 5.5] and
                    tf.make_ndarray(first.predict_log.request.inputs["x"]).tolist() == [1, 2, 5] and
                    first.log_metadata.model_spec.version.value == 2, "with request and response")

    def test_check(self):
        def check(*flags):
            return subprocess.run([self.weir, "serve", "--port", "0", "--check", *flags],
                                  capture_output=True, text=True)
        done = check("--model_config_file", self.config)
        self.expect(done.returncode == 0 and "valid" in done.stdout, "--check: " + done.stdout)
        done = check("--model_base_path=" + self.folder("mlp"), "--model_name=mlp",
                     "--enable_batching=true", "--file_system_poll_wait_seconds=5")
        self.expect(done.returncode == 0 and "Model mlp" in done.stdout,
                    "TensorFlow Serving's spelling of options: " + done.stdout + done.stderr)
        with open(self.config) as f:
            text = f.read()
        wrong = self.folder("wrong.config")
        with open(wrong, "w") as f:
            f.write(text.replace("version_labels", "version_label"))
        done = check("--model_config_file", wrong)
        self.expect(done.returncode == 1 and wrong in done.stderr and "line 5" in done.stderr,
                    "--check: " + done.stderr.strip())
        for flags, words in ((["--model", "x=/does/not/exist"], "not a directory"),
                             (["--model", "x"], "NAME=DIR"),
                             (["--enable_batching"], "need models"),
                             (["--model_config_file", wrong, "--model", "x=/"], "either"),
                             (["--log-format", "xml"], "text or json"),
                             (["--tls-cert", self.config], "certificate")):
            done = check(*flags)
            self.expect(done.returncode == 1 and words in done.stderr, done.stderr.strip())

    def test_broken_model(self):
        os.makedirs(self.folder("broken", "1"))
        with open(self.folder("broken", "1", "saved_model.pb"), "w") as f:
            f.write("no model")
        done = subprocess.run([self.weir, "serve", "--port", "0", "--model",
                               "broken=" + self.folder("broken"), "--max_num_load_retries", "0"],
                              capture_output=True, text=True, timeout=60)
        self.expect(done.returncode == 1 and "broken" in done.stderr,
                    "a model that cannot be loaded ends the server: " + done.stderr.strip()[-200:])

    def test_all(self):
        self.write_models()
        with Server(self.weir, self.log, "--model_config_file", self.config,
                    "--log-format", "json") as server:
            self.expect(server.is_serving(""), "it lives")
            server.wait_until_ready()
            self.test_predict(server)
            self.test_examples(server)
            self.test_metadata(server)
            self.test_versions(server)
            self.test_errors(server)
            server.predictions.Predict(
                self.request("half", x=np.float32([1])), metadata=(
                    ("x-request-id", "mine-1"),
                    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")))
            with urllib.request.urlopen(server.metrics) as page:
                metrics = page.read().decode()
            self.expect('weir_model_calls_total{code="OK",method="Predict",model="half"}' in metrics and
                        ':tensorflow:serving:request_count{model_name="half",status="OK"}' in metrics,
                        "metrics")
            self.expect_error(lambda: grpc.insecure_channel(server.target).unary_unary(
                "/tensorflow.MasterService/ListDevices", request_serializer=lambda x: x,
                response_deserializer=lambda x: x)(b""), CODE.UNIMPLEMENTED)
            status = subprocess.run([self.weir, "serve", "--status", "grpc://" + server.target],
                                    capture_output=True, text=True)
            self.expect("is serving" in status.stdout, status.stdout.strip())
            self.test_reload(server)
        self.expect(server.status == 0, "SIGTERM ends it with status %d" % server.status)
        self.test_logs(server, "mine-1")
        self.test_check()
        self.test_broken_model()
        return 1 if self.faults else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        status = Test(sys.argv[1], folder).test_all()
    sys.exit(status)
