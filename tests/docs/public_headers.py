"""The headers that an installed Weir has, for the tests that read them.

tools/install/BUILD lists the headers that programs include; the headers that these include are
installed too.
"""

import ast
import os
import re

INCLUDE = re.compile(r'^\s*#\s*include\s*"weir/([^"]+)"', re.MULTILINE)
TOP_HEADERS = {"weir.h": "session/weir.h", "proto.h": "proto/proto.h"}  # as "weir/weir.h"

# Headers that are installed only because public headers include them. The formulas of random numbers
# and of optimizers (kernels/) are of use to the authors of backends.
DETAILS = {"core/tensor/api.h", "core/tensor/memory_quota.h", "core/tensor/mutex.h",
           "core/graph/name_index.h", "core/graph/per_thread.h",
           "kernels/lib/philox.h", "kernels/lib/training-inl.h", "kernels/lib/training.h", "rpc/cluster/cluster_spec.h",
           "rpc/lib/call.h", "rpc/lib/graph_policy.h", "rpc/lib/master_options.h", "rpc/lib/memory_reservation.h",
           "rpc/lib/request_numbers.h", "rpc/lib/response_limit.h",
           "rpc/lib/server_device.h", "rpc/lib/tls_files.h", "rpc/master.h"}

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def path_of(name):
    """The file of a header: of "core/tensor/tensor.h", which is included as "weir/core/tensor/tensor.h". A header
    that is generated has a template."""
    path = os.path.join(ROOT, TOP_HEADERS.get(name, name))
    return path if os.path.exists(path) else path + ".in"


def read(name):
    with open(path_of(name), encoding="utf-8") as header:
        return header.read()


def includes(name):
    """The headers of Weir that a header includes itself, without those of messages."""
    return [h for h in INCLUDE.findall(read(name)) if not h.endswith(".pb.h")]


def listed():
    """The headers that tools/install/BUILD lists, of all libraries but the C APIs."""
    with open(os.path.join(ROOT, "tools/install/BUILD"), encoding="utf-8") as build:
        calls = [node for node in ast.walk(ast.parse(build.read())) if isinstance(node, ast.Call)]
    targets = [{word.arg: word.value for word in call.keywords} for call in calls]
    lists = [t["headers"] for t in targets if "headers" in t and t["name"].value != "weir_capi"]
    return [h.removeprefix("weir/") for names in lists for h in ast.literal_eval(names)]


def installed():
    """All installed headers."""
    found, queue = set(), listed()
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue += includes(name)
    return sorted(found)
