"""Runs graphs with marks (tests/fuzz/mutate.h) on TensorFlow and on Weir, each in a child process.

Each returns {'import': (code, message)} if the graph is rejected, else {'steps': [(code, message, {tensor: value}), ...]},
which ends at the first failing step. A value is an array, or None for handles and large values. A child that crashes, or that does
not answer within three seconds, returns {'died': how} and is replaced by a new one.
"""

import json
import os
import pickle
import re
import resource
import select
import signal
import struct
import subprocess

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')  # TensorFlow's default on most processors; with 0 other kernels run

import numpy as np
import tensorflow as tf
from tensorflow.python.ops.session_ops import TensorHandle

_MARK = re.compile(r'_(feed|fetch|target)\.(\d+)(?:\.(\d+))?$')
_PATIENCE = 3  # seconds
NO_ANSWER = 'no answer'
_MOST_BYTES = 1 << 16  # size limit of compared values


def marked_steps(graph_def):
    """Removes the marks and returns {step: ({tensor: value}, [fetched tensor], [target])}."""
    steps = {}
    for node in graph_def.node:
        for key in sorted(node.attr):
            match = _MARK.match(key)
            if not match:
                continue
            feeds, fetches, targets = steps.setdefault(int(match[2]), ({}, [], []))
            tensor = '%s:%s' % (node.name, match[3])
            if match[1] == 'feed':
                feeds[tensor] = node.attr[key].tensor
            elif match[1] == 'fetch':
                fetches.append(tensor)
            else:
                targets.append(node.name)
            del node.attr[key]
    return steps


def _error(error):
    if isinstance(error, tf.errors.OpError):
        return error.error_code, error.message.split('Node: ')[-1]
    return 3, '%s: %s' % (type(error).__name__, error)


def _config():
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


def _value(value):
    if isinstance(value, TensorHandle):
        return None
    value = np.asarray(value, object if isinstance(value, bytes) else None)
    return value if value.nbytes <= _MOST_BYTES else None


def _is_there(graph, tensor):
    name, index = tensor.split(':')
    return int(index) < len(graph.get_operation_by_name(name).outputs)


def _run_steps(graph, steps):
    results = []
    options = tf.compat.v1.RunOptions(timeout_in_ms=1000)
    with tf.compat.v1.Session(graph=graph, config=_config()) as session:
        for _, (feeds, fetches, targets) in sorted(steps.items()):
            try:
                fetches = [name for name in fetches if _is_there(graph, name)]
                known = [name for name in fetches
                         if graph.get_tensor_by_name(name).dtype.base_dtype not in (tf.resource, tf.variant)]
                rest = [name.split(':')[0] for name in fetches if name not in known] + targets
                rest = [graph.get_operation_by_name(name) for name in rest]
                fed = {name: tf.make_ndarray(proto) for name, proto in feeds.items()}
                values = session.run([known, rest], fed, options)[0]
                results.append((0, '', {n: _value(v) for n, v in zip(known, values)}))
            except Exception as error:  # any exception is a result
                results.append(_error(error) + ({},))
                break
    return {'steps': results}


def _run_by_tensorflow(graph_bytes):
    graph_def = tf.compat.v1.GraphDef.FromString(graph_bytes)
    steps = marked_steps(graph_def)
    graph = tf.Graph()
    try:
        with graph.as_default():
            tf.import_graph_def(graph_def, name='')
    except Exception as error:
        return {'import': _error(error)}
    return _run_steps(graph, steps)


class _Peer:
    """A child process that runs graphs in sequence. `write` and `read` are ends of pipes."""

    def __init__(self):
        self.pid = None

    def run(self, graph_bytes):
        if self.pid is None:
            self.start()
        try:
            os.write(self.write, struct.pack('<I', len(graph_bytes)))
            sent = 0
            while sent < len(graph_bytes):
                sent += os.write(self.write, graph_bytes[sent:])
            return self.parse(self._answer())
        except (EOFError, BrokenPipeError):
            return {'died': self.stop()}
        except TimeoutError:
            self.stop()
            return {'died': NO_ANSWER}

    def _answer(self):
        answer = bytearray()
        while not self.complete(answer):
            if not select.select([self.read], [], [], _PATIENCE)[0]:
                raise TimeoutError
            more = os.read(self.read, 1 << 20)
            if not more:
                raise EOFError
            answer += more
        return answer

    def stop(self):
        """Terminates the child. Returns how it ended if it was already dead."""
        if self.pid is None:
            return ''
        os.close(self.write)
        ended = 0
        for _ in range(100):  # a crashed child may not have exited yet
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                break
            select.select([], [], [], 0.01)
        if not ended:
            os.kill(self.pid, signal.SIGKILL)
            status = os.waitpid(self.pid, 0)[1]
        os.close(self.read)
        self.pid = None
        return 'signal %d' % os.WTERMSIG(status) if os.WIFSIGNALED(status) else 'exit %d' % os.WEXITSTATUS(status)


class TensorFlow(_Peer):
    """A fork of this process, which has loaded TensorFlow and never created a session: a new child takes milliseconds. A crash
    counts if a new child crashes as well: one that has had many sessions may just be out of memory.
    """

    def run(self, graph_bytes):
        answer = super().run(graph_bytes)
        return super().run(graph_bytes) if answer.get('died') not in (None, NO_ANSWER) else answer

    def start(self):
        requests, self.write = os.pipe()
        self.read, answers = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(requests)
            os.close(answers)
            return
        try:
            os.close(self.write)
            os.close(self.read)
            self._serve(os.fdopen(requests, 'rb'), answers)
        finally:
            os._exit(0)

    @staticmethod
    def _serve(requests, answers):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 1)
        os.dup2(devnull, 2)
        used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 30),) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        while True:
            head = requests.read(4)
            if len(head) < 4:
                return
            answer = pickle.dumps(_run_by_tensorflow(requests.read(*struct.unpack('<I', head))))
            answer = struct.pack('<I', len(answer)) + answer
            while answer:
                answer = answer[os.write(answers, answer):]

    @staticmethod
    def complete(answer):
        return len(answer) >= 4 and len(answer) - 4 >= struct.unpack('<I', answer[:4])[0]

    @staticmethod
    def parse(answer):
        return pickle.loads(answer[4:])


class Weir(_Peer):
    """`program` is tests/interop:run_marked_graphs. Its steps have a time limit, so a missing answer is a fault; on a busy machine
    a second attempt decides."""

    def __init__(self, program, folder):
        super().__init__()
        self.program, self.folder = program, folder

    def run(self, graph_bytes):
        answer = super().run(graph_bytes)
        return super().run(graph_bytes) if answer == {'died': NO_ANSWER} else answer

    def start(self):
        child = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 cwd=self.folder)
        self.pid = child.pid
        self.write, self.read = os.dup(child.stdin.fileno()), os.dup(child.stdout.fileno())
        child.stdin.close()
        child.stdout.close()
        child.returncode = 0  # `stop` waits for it

    @staticmethod
    def complete(answer):
        return answer.endswith(b'\n')

    @staticmethod
    def parse(answer):
        said = json.loads(answer)
        if 'import' in said:
            return {'import': (said['import']['code'], said['import']['message'])}
        return {'steps': [(s['code'], s['message'], {n: _array(v) for n, v in (s.get('values') or {}).items()}) for s in said['steps']]}


def _array(value):
    shape = value['shape']
    if 'strings' in value:
        array = np.empty(len(value['strings']), object)
        array[:] = [bytes.fromhex(s) for s in value['strings']]
        return array.reshape(shape)
    if 'hex' not in value or not value['hex'] and np.prod([max(n, 1) for n in shape], dtype=float) > 2**60:
        return None  # NumPy has no empty arrays of such shapes
    return np.frombuffer(bytes.fromhex(value['hex']), tf.as_dtype(value['dtype']).as_numpy_dtype).reshape(shape)
