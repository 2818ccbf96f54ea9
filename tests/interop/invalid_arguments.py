"""Random search for calls that only one of TensorFlow and Weir rejects, or whose results differ.

    python3 invalid_arguments.py RUN_MARKED_GRAPHS VALID_CALLS [--calls 200] [--seed 1] [--ops RE] [--kinds dies,...]

VALID_CALLS (valid_calls.bin.gz) contains graphs with valid calls of each op, most of them from Weir's tests; op_calls.py builds
random ones of other ops. mutations.py mutates them to invalid calls, and both runtimes run each of them (peers.py). Differences
are printed by op and kind, with the seed of the first one, unless a line `OP KIND /TEXT/ reason` of explained_differences.txt
matches: OP is a file name pattern, TEXT a regular expression that is searched in the output. valid_arguments.py compares valid
calls.

Kinds: `accepts` (TensorFlow rejects the call or crashes, Weir does not), `refuses` (the reverse), `values`, `code` (both
reject it with different codes), `words` (both reject it with the same code, but the messages have almost no words in common),
`dies` (Weir crashes or hangs, regardless of TensorFlow).
"""

import argparse
import collections
import fnmatch
import gzip
import itertools
import os
import random
import re
import shutil
import struct
import sys
import tempfile
import warnings

try:
    import op_calls
    import peers
    from tensorflow.python.framework import op_def_registry
    from mutations import Call
except ImportError as error:
    print('skipped: this Python has no TensorFlow (%s)' % error)
    sys.exit(0)

np = peers.np
_NAMES = {1: 'CANCELLED', 3: 'INVALID_ARGUMENT', 4: 'DEADLINE_EXCEEDED', 5: 'NOT_FOUND', 6: 'ALREADY_EXISTS', 8: 'RESOURCE_EXHAUSTED',
          9: 'FAILED_PRECONDITION', 10: 'ABORTED', 11: 'OUT_OF_RANGE', 12: 'UNIMPLEMENTED', 13: 'INTERNAL'}


def read_calls(path):
    """{op: [bytes of a GraphDef]}."""
    calls = collections.defaultdict(list)
    with gzip.open(path) as file:
        while head := file.read(4):
            data = file.read(*struct.unpack('<I', head))
            for op in {node.op for node in peers.tf.compat.v1.GraphDef.FromString(data).node}:
                calls[op].append(data)
    return calls


def error_of(answer):
    """(code, message), code 0 for none."""
    if 'died' in answer:
        return -1, answer['died']
    if 'import' in answer:
        return answer['import']
    return answer['steps'][-1][:2] if answer['steps'] else (0, '')


def _same_value(a, b):
    if a is None or b is None:
        return True
    if a.shape != b.shape:
        return False
    if a.dtype == object or b.dtype == object:
        return a.tolist() == b.tolist()
    if a.dtype.kind in 'biu' or a.dtype.names:
        return a.tobytes() == b.tobytes()
    tolerance = {'float64': 1e-7, 'complex128': 1e-7, 'float32': 1e-3, 'complex64': 1e-3}.get(a.dtype.name, 5e-2)
    a, b = (x.astype(np.complex128) for x in (a, b))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        parts = [np.allclose(x, y, tolerance, tolerance, equal_nan=True) for x, y in ((a.real, b.real), (a.imag, b.imag))]
    return all(parts)


def _first_differences(a, b):
    """The first differing elements, as text."""
    if a is None or b is None or a.shape != b.shape or a.dtype == object:
        return ''
    a, b = a.reshape(-1), b.reshape(-1)
    differ = (i for i in range(a.size) if not _same_value(a[i:i + 1], b[i:i + 1]))
    return ', '.join('[%d] %s and %s' % (i, a[i], b[i]) for i in itertools.islice(differ, 4))


_NO_WORDS = set("""node op for with the and but are not was has must from input inputs shape shapes got value valueerror error
    graph execution this that have can cannot only should expected received dimension dimensions tensor""".split())

# Synonyms in the messages of shape functions and kernels about shapes and numbers.
_SYNONYMS = [(re.compile(pattern), word) for pattern, word in (
    (r'rank|scalar|vector|\bvec\b|matri|\d-?d(imensional)?\b|elements?\b|spatial dimensions|ndims|single (string|integer)'
     r'|equal|same (number|size|shape|outer|depth)|(in|not )compatible'
     r'|match\b|mismatch|(have|with|as|of|to) shape|shape to be|incorrect size|size of'
     r'|square|broadcastable|cannot (broadcast|be assigned)|(start|starts) with|no prefix|not a prefix|must be \d but|[!=]='
     r'|must have \w+\.shape|wrong shape|first dimension|as many biases|is \d+ while|divisible'
     r'|fully defined|\d dimensions|dims? to', 'shape'),
    (r'out of (range|bounds)|in the range|within the range|is not in \[|in (range )?\[-?\d|does not index|must be [<>]=?|<= \w+ <|negative'
     r'|invalid (value|reduction)|must be positive|too big|no greater|missing from|duplicated|at least', 'range'),
    (r'must not be empty|non-zero size|have pixels|dimension cannot be 0', 'empty'))]


def _key_words(message, names):
    """The key words of a message, without the names of nodes and the shapes."""
    message = re.split(r" for '\{\{node| \[\[\{\{node|; NodeDef:| for node ", ' '.join(message.lower().split()))[0]
    meant = {word for pattern, word in _SYNONYMS if pattern.search(message)}
    words = re.findall('[a-z]{3,}', re.sub('[_`]', ' ', message))
    return {word.rstrip('s') for word in words} - _NO_WORDS - {name.lower() for name in names}, meant


def _say_the_same(theirs, ours, names):
    (theirs, meant), (ours, also_meant) = _key_words(theirs, names), _key_words(ours, names)
    common = len(theirs & ours)
    return not theirs or meant & also_meant or common >= 2 or 2 * common >= len(theirs)


def difference(tensorflow, weir, names=()):
    """The kind of the difference and its description; (None, '') if there is none. `names` of nodes and ops are ignored in messages."""
    theirs, ours = error_of(tensorflow), error_of(weir)
    said = 'TensorFlow: %s %s\n      Weir: %s %s' % (_NAMES.get(theirs[0], theirs[0]), theirs[1][:300].replace('\n', ' '),
                                                  _NAMES.get(ours[0], ours[0]), ours[1][:300])
    if ours[0] == -1:
        return 'dies', said
    if theirs == (-1, peers.NO_ANSWER) or (theirs[0] == 4 and ours[0] in (0, 11)):
        return None, ''  # it may merely be slow
    if theirs[0] and ours[0]:
        if theirs[0] not in (-1, ours[0]):
            return 'code', said
        same = theirs[0] in (-1, 4) or _say_the_same(theirs[1], ours[1], names)  # 4: DEADLINE_EXCEEDED
        if not same:
            return 'words', said
        return _different_values(tensorflow, weir) if theirs[0] == 11 else (None, '')  # 11: OUT_OF_RANGE
    if theirs[0] or ours[0]:
        return ('accepts' if theirs[0] else 'refuses'), said
    return _different_values(tensorflow, weir)


def _different_values(tensorflow, weir):
    theirs, ours = tensorflow.get('steps', []), weir.get('steps', [])
    if len(theirs) != len(ours):
        return 'values', 'TensorFlow has run %d steps, Weir %d' % (len(theirs), len(ours))
    for (_, _, a), (_, _, b) in zip(theirs, ours):
        for name in sorted(a):
            x, y = a[name], b.get(name)
            if not _same_value(x, y):
                texts = [' '.join(repr(v).split())[:300] + str(v.shape) for v in (x, y)]
                return 'values', 'TensorFlow: %s\n      Weir: %s\n      %s' % (*texts, _first_differences(x, y))
    return None, ''


def mutated(op, calls, seed):
    """Returns (bytes of a graph, number of changes), deterministic in the arguments."""
    rng = random.Random('%s %d' % (op, seed))
    valid = rng.choice(calls)
    built = callable(valid)
    call = Call(op_calls.build(op, valid, seed) if built else valid, op, rng, whole=built)
    changes = call.change()
    return call.bytes(), changes


class Explained:
    """The lines `OP KIND /TEXT/ reason` of a file."""

    def __init__(self, path):
        lines = [line for line in open(path) if line.strip() and not line.startswith('#')]
        self.rules = [re.fullmatch(r'(\S+) (\S+) /(.*)/ (.+)\n?', line).groups()[:3] for line in lines]

    def has(self, op, kind, text):
        return any(kind == k and fnmatch.fnmatchcase(op, pattern) and re.search(words, text) for pattern, k, words in self.rules)


def names_in(data):
    return [name for node in peers.tf.compat.v1.GraphDef.FromString(data).node for name in (node.name, node.op)]


def _special_numbers(array):
    """Infinities, NaN and 1e30 among an array's numbers, as text."""
    if array.dtype == object or array.dtype.kind in 'biu' or array.dtype.names:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return sorted({str(x) for part in (array.astype(np.complex128).real, array.astype(np.complex128).imag)
                       for x in part.reshape(-1).tolist() if not abs(x) < 1e29})


def describe(data, op):
    graph = peers.tf.compat.v1.GraphDef.FromString(data)
    arguments = {}
    for node in graph.node:
        tensors = [v.tensor for k, v in node.attr.items() if k.startswith('_feed') or k == 'value']
        if tensors:
            array = peers.tf.make_ndarray(tensors[0])
            rest = _special_numbers(array.reshape(-1)[8:])
            arguments[node.name] = '%s%s %s%s' % (peers.tf.as_dtype(tensors[0].dtype).name, list(array.shape),
                                                  array.reshape(-1)[:8].tolist(), rest and ' with ' + ', '.join(rest) or '')
    text = []
    for node in graph.node:
        if node.op != op:
            continue
        attrs = {k: ' '.join(str(v).split()) for k, v in node.attr.items() if k[0] != '_'}
        text.append('%s(%s) %s' % (op, ', '.join(arguments.get(i, i) for i in node.input), attrs))
    return '\n      '.join(text)[:900]


def parser():
    arguments = argparse.ArgumentParser()
    arguments.add_argument('program')
    arguments.add_argument('--calls', type=int, default=200)
    arguments.add_argument('--seed', type=int, default=1)
    arguments.add_argument('--ops', default='')
    arguments.add_argument('--kinds', default='accepts,refuses,values,code,words,dies')
    return arguments


class Files:
    """The files that calls read. Calls write and delete files; what one of them leaves must not be another one's input."""

    def __init__(self, kept, theirs, ours):
        shutil.copytree(theirs, kept)
        self.kept, self.folders = kept, (theirs, ours)
        self.listings = [self._listing(folder) for folder in self.folders]

    @staticmethod
    def _listing(folder):
        found = {}
        for path, folders, names in os.walk(folder):
            for name in folders + names:
                stat = os.lstat(os.path.join(path, name))
                found[os.path.relpath(os.path.join(path, name), folder)] = stat.st_mtime_ns if name in names else 0
        return found

    def restore(self):
        for i, folder in enumerate(self.folders):
            if self._listing(folder) == self.listings[i]:
                continue
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
            shutil.copytree(self.kept, folder, dirs_exist_ok=True)
            self.listings[i] = self._listing(folder)


def search(args, ops, graph_of):
    """Compares calls of `ops`; graph_of(op, seed) returns (bytes of a graph, number of changes). Prints the differences, and
    returns their number."""
    here = os.path.dirname(os.path.abspath(__file__))
    explained = Explained(os.path.join(here, 'explained_differences.txt'))
    program = os.path.abspath(args.program)
    found, kinds = collections.OrderedDict(), args.kinds.split(',')
    ops = [op for op in sorted(ops) if re.fullmatch(args.ops or '.*', op) and op_def_registry.get(op) is not None]
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = os.path.join(folder, 'tensorflow'), os.path.join(folder, 'weir')
        os.mkdir(theirs)
        os.chdir(theirs)
        tensorflow, weir = peers.TensorFlow(), peers.Weir(program, ours)
        op_calls.write_files(theirs, tensorflow)
        shutil.copytree(theirs, ours)
        files = Files(os.path.join(folder, 'files'), theirs, ours)
        for op in ops:
            for seed in range(args.seed, args.seed + args.calls):
                data, changes = graph_of(op, seed)
                kind, said = difference(tensorflow.run(data), weir.run(data), names_in(data))
                files.restore()
                if kind not in kinds or (kind == 'words' and changes > 1):
                    continue  # with several faults each runtime may report a different one
                text = '%s %s %d\n      %s\n      %s' % (op, kind, seed, describe(data, op), said)
                if not explained.has(op, kind, text):
                    found.setdefault((op, kind), []).append(seed)
                    if len(found[op, kind]) <= 3:
                        print(text, flush=True)
        tensorflow.stop()
        weir.stop()
        os.chdir('/')
    differences = sum(map(len, found.values()))
    print('%d ops, %d calls, %d differences of %d kinds' % (len(ops), len(ops) * args.calls, differences, len(found)))
    return differences


def main():
    arguments = parser()
    arguments.add_argument('valid_calls')
    args = arguments.parse_args()
    valid = read_calls(args.valid_calls)
    for op, functions in op_calls.all_calls().items():
        valid[op].extend(functions)
    return 1 if search(args, valid, lambda op, seed: mutated(op, valid[op], seed)) else 0


if __name__ == '__main__':
    sys.exit(main())
