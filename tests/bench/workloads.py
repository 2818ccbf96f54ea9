"""The workloads of the suite whose graphs are files: the arguments of Weir's graph_bench and of the
suite's driver of TensorFlow's C API, and the names of the measurements among the peers."""

import make_bert
import model_graphs

CHAIN = ["--init=init_all", "--per=1000"]
TRAIN = ["--init=init_all", "--fetch=loss", "--target=train"]
IMAGES = "224,224,3"


def training(batch, image):
    return TRAIN + ["--feed=x:%d,%s" % (batch, image), "--feed=labels:%d" % batch]


def embedding(vocabulary):
    ids = ["--feed=c:1024", "--feed=o:1024", "--feed=n:64"]
    return TRAIN + ids + ["--int-range=%d" % vocabulary]


def bert(batch, length):
    """The feeds of make_bert.py, which only that script's graphs have."""
    bounds = make_bert.RANGES.items()
    return ["--feed=%s:%d,%d:%d" % (name, batch, length, bound) for name, bound in bounds]


# Weir recomputes values that depend only on variables when a variable has changed, so most steps of
# a chain or of the wide graph would compute nothing.
NO_STEP_CACHE = ["--disable=cache_step_invariants"]
# Options that make each program run a graph node by node: TensorFlow's optimizer turns a chain of
# sums into one sum, and Weir's into a few fused nodes.
NODE_BY_NODE = (["--disable=cache_step_invariants,fusion"], ["--noopt"])
REWRITTEN = (NO_STEP_CACHE, [])
# TensorFlow's optimizer takes half a minute for the large graph, and gains nothing.
NOOPT = ([], ["--noopt"])
AS_IT_IS = ([], [])

# name, graph, arguments of both programs, Weir's and TensorFlow's alone, unit
WORKLOADS = [
    ("W1.read", "w1_read", ["--init=init_all"], AS_IT_IS, "us/step"),
    ("W1.feed1k", "w1_feed1k", ["--feed=x:256"], AS_IT_IS, "us/step"),
    ("W1.chain1000", "w1_chain1000", CHAIN, NODE_BY_NODE, "ns/node"),
    ("W1.chain1000 rewritten", "w1_chain1000", CHAIN, REWRITTEN, "ns/node"),
    ("W1.wide10000", "w1_wide10000", ["--init=init_all", "--per=10000"], (NO_STEP_CACHE, ["--noopt"]), "ns/node"),
    ("W1.while100k", "w1_while100k", ["--per=100000"], AS_IT_IS, "ns/iteration"),
    ("random chain 1", "chain1", CHAIN, NODE_BY_NODE, "ns/node"),
    ("random chain 2", "chain2", CHAIN, NODE_BY_NODE, "ns/node"),
    ("random chain 1 rewritten", "chain1", CHAIN, REWRITTEN, "ns/node"),
    ("W2.mlp_b32", "w2_mlp_b32", training(32, "784"), AS_IT_IS, "us/step"),
    ("W2.mlp_b256", "w2_mlp_b256", training(256, "784"), AS_IT_IS, "us/step"),
    ("W3.lenet_b64", "w3_lenet_b64", training(64, "28,28,1"), AS_IT_IS, "us/step"),
    ("W3.resnet20_b32", "w3_resnet20_b32", training(32, "32,32,3"), AS_IT_IS, "us/step"),
    ("W4.resnet50_b1", "w4_resnet50", ["--feed=x:1," + IMAGES], AS_IT_IS, "us/step"),
    ("W4.resnet50_b16", "w4_resnet50", ["--feed=x:16," + IMAGES], AS_IT_IS, "us/step"),
    ("W4.mobilenet_v2_b1", "w4_mobilenet_v2", ["--feed=x:1," + IMAGES], AS_IT_IS, "us/step"),
    ("W4.mobilenet_v2_b16", "w4_mobilenet_v2", ["--feed=x:16," + IMAGES], AS_IT_IS, "us/step"),
    ("W5.lstm", "w5_lstm", TRAIN + ["--feed=x:32,64,256"], AS_IT_IS, "us/step"),
    ("W5.encoder", "w5_encoder", TRAIN + ["--feed=x:8,128,256"], AS_IT_IS, "us/step"),
    ("W6.sgd_v1000000", "w6_sgd_v1000000", embedding(1000000), AS_IT_IS, "us/step"),
    ("W6.sgd_v10000", "w6_sgd_v10000", embedding(10000), AS_IT_IS, "us/step"),
    ("W6.adagrad_v1000000", "w6_adagrad_v1000000", embedding(1000000), AS_IT_IS, "us/step"),
    ("W8.graph100000", "w8_graph100000", ["--feed=x:4", "--per=100000"], NOOPT, "ns/node"),
]
# W12, whose graphs make_bert.py writes and whose peers peer_bert.py runs.
BERT = [
    ("W12.bert_%dx%d" % size, "w12_bert", ["--fetch=pooled"] + bert(*size), AS_IT_IS, "us/step")
    for size in make_bert.SIZES
] + [
    ("W12.bert_train_%dx%d" % size, "w12_bert_train",
     TRAIN + bert(*size) + ["--feed=labels:%d:%d" % (size[0], make_bert.CLASSES)], AS_IT_IS, "us/step")
    for size in [make_bert.TRAINING_SIZE]
]  # fmt: skip
# W13 to W17, whose graphs the scripts of model_graphs.SCRIPTS write.
MODELS = [
    (model.workload(), model.name, model_graphs.arguments(model), AS_IT_IS, "us/step")
    for family in model_graphs.SCRIPTS
    for model in model_graphs.models(family)
]


def for_weir(arguments):
    """Returns arguments for Weir's program, which takes feeds unchanged and uses Abseil's flags."""
    return [a.removeprefix("--feed=").replace("--int-range", "--int_range") for a in arguments]


def for_peers(row):
    """Renames a line of graph_bench as the suite's other peers name it."""
    row = dict(row)
    family = row["workload"].split(".")[0]
    trains = family in ("W2", "W3", "W5", "W6") or "_train_" in row["workload"]
    if row["metric"] == "first_run" and trains:
        row["metric"] = "first_step"
    if row["metric"] != "steady_run":
        return row
    if family == "W1":
        row["metric"] = row["workload"]
        row["unit"] = "ns/iter" if "while" in row["workload"] else row["unit"]
    elif family == "W4":
        images = int(row["workload"].rsplit("_b", 1)[1])
        row["metric"], row["unit"] = "images_per_s", "img/s"
        row["value"], row["median"] = (images * 1e6 / row[key] for key in ("value", "median"))
    elif family in ("W2", "W3", "W5", "W6", "W12") or family in model_graphs.SCRIPTS:
        row["metric"], row["unit"] = "steps_per_s", "steps/s"
        row["value"], row["median"] = 1e6 / row["value"], 1e6 / row["median"]
    return row
