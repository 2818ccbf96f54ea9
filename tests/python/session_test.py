#!/usr/bin/env python3
"""Sessions: feeds, fetches, arrays that are not copied, threads and errors."""

import gc
import threading
import time
import unittest

import cases
import numpy as np

import weir
from weir._arrays import shared

TYPES = (
    "float32",
    "float64",
    "float16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
)


class SessionTest(cases.Case):
    def setUp(self):
        super().setUp()
        self.g = weir.Graph()
        self.x = self.g.placeholder("float32", [None], name="x")
        self.y = self.g.op("Mul", self.x, 2.0, name="y")
        self.session = weir.Session(self.g)
        self.addCleanup(self.session.close)

    def test_fetches_have_the_form_of_the_request(self):
        noop = self.g.op("NoOp", name="noop")
        got = self.session.run({"a": self.y, "b": ["y:0", ("noop", noop)]}, {"x": [1, 2]})
        self.assertEqual(list(got["a"]), [2, 4])
        self.assertEqual(list(got["b"][0]), [2, 4])
        self.assertEqual(got["b"][1], (None, None))
        self.assertIsNone(self.session.run(noop))

    def test_all_types_pass_unchanged(self):
        for dtype in TYPES:
            t = self.g.placeholder(dtype, None)
            same = self.g.op("Identity", t)
            value = np.array([[0, 1], [1, 0]], dtype)
            got = self.session.run(same, {t: value})
            self.assertEqual(got.dtype, value.dtype)
            np.testing.assert_array_equal(got, value)
            for shape in ((), (0,), (3, 0, 2)):
                got = self.session.run(same, {t: np.zeros(shape, dtype)})
                self.assertEqual((got.shape, got.dtype), (shape, value.dtype))

    def test_strings(self):
        t = self.g.placeholder("string", None)
        joined = self.g.op("StringJoin", [t, t])
        got = self.session.run(joined, {t: [["a", "\u00e9"], [b"\0\xff", "x" * 40]]})
        self.assertEqual(
            got.tolist(), [[b"aa", "\u00e9\u00e9".encode()], [b"\0\xff\0\xff", b"x" * 80]]
        )
        self.assertEqual(self.session.run(joined, {t: "one"}).item(), b"oneone")
        self.assertEqual(
            self.session.run(joined, {t: np.array(["a", "bc"])}).tolist(), [b"aa", b"bcbc"]
        )
        with self.assertRaisesRegex(TypeError, "expected a string or bytes, got 'int'"):
            self.session.run(joined, {t: [1]})

    def test_views_and_other_orders_are_fed(self):
        base = np.arange(12, dtype="float32").reshape(3, 4)
        t = self.g.placeholder("float32", None)
        same = self.g.op("Identity", t)
        for value in (base.T, base[::-1], base[:, 1:3], base.astype(">f4").astype("float32")):
            np.testing.assert_array_equal(self.session.run(same, {t: value}), value)
        big = np.arange(40000, dtype="float32")[1::2]
        np.testing.assert_array_equal(self.session.run(same, {t: big}), big)

    def test_large_arrays_are_shared_and_released(self):
        array = np.ones(1 << 20, "float32")
        self.session.run(self.y, {self.x: array})
        gc.collect()
        shared.sweep()
        self.assertEqual(len(shared), 0)
        fetched = self.session.run(self.y, {self.x: array})
        self.assertFalse(fetched.flags.writeable)
        self.session.close()
        self.assertEqual(fetched[-1], 2)  # the tensor lives as long as the array

    def test_a_variable_does_not_change_with_the_array_it_was_assigned(self):
        v = self.g.variable("v", [1 << 20], initializer="zeros")
        assign = v.assign(self.x)
        array = np.ones(1 << 20, "float32")
        self.session.run([], {self.x: array}, targets=assign)
        array[:] = 5
        self.assertEqual(self.session.run(v)[0], 1)

    def test_steps_are_called_with_values_in_order(self):
        step = self.session.step(self.y, [self.x])
        self.assertEqual(list(step(np.array([3], "float32"))), [6])
        with self.assertRaisesRegex(TypeError, "the step has 1 feeds, got 2"):
            step(1, 2)

    def test_errors_have_codes_and_messages(self):
        with self.assertRaisesRegex(weir.InvalidArgumentError, "placeholder tensor 'x'") as caught:
            self.session.run(self.y)
        self.assertEqual(caught.exception.code, 3)
        with self.assertRaisesRegex(TypeError, "feed of x:0: expected an array of float32"):
            self.session.run(self.y, {self.x: np.ones(2)})
        with self.assertRaises(weir.InvalidArgumentError):
            self.session.run(self.y, {self.x: np.ones([2, 2], "float32")})
        with self.assertRaises(weir.NotFoundError):
            self.session.run("absent")
        self.session.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            self.session.run(self.y, {self.x: [1]})

    def test_threads_run_at_the_same_time(self):
        threads, results = [], [None] * 4

        def work(i):
            results[i] = [float(self.session.run(self.y, {self.x: [k]})[0]) for k in range(100)]

        for i in range(4):
            threads.append(threading.Thread(target=work, args=(i,)))
            threads[-1].start()
        for k in range(50):
            self.g.constant(k)  # the graph grows meanwhile
        for thread in threads:
            thread.join()
        self.assertEqual(results, [[2.0 * k for k in range(100)]] * 4)

    def test_the_interpreter_is_free_while_a_step_runs(self):
        queue = self.g.op("FIFOQueueV2", component_types=["float32"], capacity=1)
        take = self.g.op("QueueDequeueV2", queue, component_types=["float32"])
        put = self.g.op("QueueEnqueueV2", queue, [1.5])
        got = []
        thread = threading.Thread(target=lambda: got.append(self.session.run(take)))
        thread.start()
        time.sleep(0.05)
        self.session.run(put)
        thread.join(10)
        self.assertEqual(got, [1.5])
        with self.assertRaises(weir.DeadlineExceededError):
            self.session.run(take, timeout=0.1)

    def test_traces(self):
        values, trace = self.session.trace(self.y, {self.x: [1, 2]})
        self.assertEqual(list(values), [2, 4])
        self.assertIn("y", [node["name"] for node in trace.nodes()])
        self.assertIn("Mul", [row["op"] for row in trace.ops()])
        trace.save(self.path("trace.json"))
        with open(self.path("trace.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), trace.json)


if __name__ == "__main__":
    unittest.main()
