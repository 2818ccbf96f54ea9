#!/usr/bin/env python3
"""The models of served_models_test.py on one server, called by TensorFlow Serving's Python client and by curl.

Skipped without TensorFlow, or without TensorFlow Serving's API (pip install --no-deps tensorflow-serving-api).
usage: served_models_api_test.py WEIR_SERVE
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile

import rest_api_test  # exits if there is no TensorFlow, or no API of TensorFlow Serving
from serving_api_test import grpc, np, tf
from served_models_test import MODELS, Model, difference
from tensorflow_serving.apis import classification_pb2, predict_pb2, prediction_service_pb2_grpc, regression_pb2


def as_json(value):
    """Returns a value as TensorFlow Serving's documents write it."""
    if isinstance(value, list):
        return [as_json(v) for v in value]
    if isinstance(value, str):
        value = value.encode()
    return {"b64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def is_text(value):
    try:
        return value.dtype.kind not in "OS" or all(v.decode() is not None for v in value.reshape(-1))
    except UnicodeDecodeError:
        return False


class Callers:
    def __init__(self, server):
        self.server = server
        channel = grpc.insecure_channel(server.target.split("//")[1])
        self.stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

    def predict(self, model, signature, inputs):
        request = predict_pb2.PredictRequest()
        request.model_spec.name = model
        request.model_spec.signature_name = signature
        for name, value in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
        outputs = self.stub.Predict(request, timeout=60).outputs
        return {name: tf.make_ndarray(value) for name, value in outputs.items()}

    @staticmethod
    def examples(request, model, signature, inputs):
        request.model_spec.name = model
        request.model_spec.signature_name = signature
        for example in inputs["inputs"]:
            request.input.example_list.examples.add().ParseFromString(example)
        return request

    def classify(self, model, signature, inputs):
        request = self.examples(classification_pb2.ClassificationRequest(), model, signature, inputs)
        rows = self.stub.Classify(request, timeout=60).result.classifications
        return {"classes": np.array([[c.label.encode() for c in row.classes] for row in rows], object),
                "scores": np.array([[c.score for c in row.classes] for row in rows], np.float32)}

    def regress(self, model, signature, inputs):
        request = self.examples(regression_pb2.RegressionRequest(), model, signature, inputs)
        values = self.stub.Regress(request, timeout=60).result.regressions
        return {"outputs": np.array([v.value for v in values], np.float32)}

    def curl(self, model, signature, inputs):
        """Returns the HTTP status, and the outputs by name or the error."""
        body = {"inputs": {name: as_json(np.asarray(value).tolist()) for name, value in inputs.items()}}
        if signature:
            body["signature_name"] = signature
        done = subprocess.run(["curl", "-s", "-w", "\n%{http_code}", "-d", json.dumps(body),
                               "http://localhost:%d/v1/models/%s:predict" % (self.server.port, model)],
                              capture_output=True, text=True, check=True)
        text, status = done.stdout.rsplit("\n", 1)
        return int(status), json.loads(text)


def arrays(outputs, want):
    """The outputs of a REST response as arrays of the types of `want`."""
    if len(want) == 1:
        outputs = {next(iter(want)): outputs}
    values = {}
    for name, value in outputs.items():
        array = np.array(value, object if want[name].dtype.kind in "OS" else want[name].dtype)
        values[name] = np.vectorize(str.encode, [object])(array) if array.dtype == object and array.size else array
    return values


class Test:
    def __init__(self):
        self.faults = 0

    def expect(self, why, text):
        print("%s  %s%s" % ("FAIL" if why else "ok  ", text, ": %s" % why if why else ""), flush=True)
        self.faults += bool(why)

    def call(self, callers, name, signature, method, inputs, want):
        try:
            why = difference(getattr(callers, method)(name, signature, inputs), want)
        except grpc.RpcError as e:
            why = e.details()
        self.expect(why, "%s %s of %s" % (method, signature or "serving_default", name))
        if method != "predict" or shutil.which("curl") is None:
            return
        status, body = callers.curl(name, signature, inputs)
        if all(is_text(value) for value in want.values()):
            why = difference(arrays(body["outputs"], want), want) if status == 200 else body["error"]
        else:
            why = None if status == 400 and "UTF-8" in body["error"] else "status %d" % status
        self.expect(why, "curl %s of %s" % (signature or "serving_default", name))


def main():
    test, root = Test(), tempfile.mkdtemp()
    try:
        models = []
        for make in MODELS:
            models.append(Model(os.path.join(root, make.__name__)))
            os.mkdir(models[-1].base)
            make(models[-1])
        if shutil.which("curl") is None:
            print("without curl, REST is not tested here")
        flags = ["--model=%s=%s" % (os.path.basename(m.base), m.base) for m in models]
        with rest_api_test.Server(os.path.abspath(sys.argv[1]), os.path.join(root, "log"), *flags) as server:
            callers = Callers(server)
            for model in models:
                for call in model.calls:
                    test.call(callers, os.path.basename(model.base), *call)
    finally:
        shutil.rmtree(root)
    print("%d models, %d faults" % (len(MODELS), test.faults))
    return 1 if test.faults else 0


if __name__ == "__main__":
    sys.exit(main())
