"""Writes a call of every builder that the public headers declare, for failed_graph_builders_test.cc.

Usage: failed_graph_calls.py OUTPUT WEIR_H HEADER...
Only headers that WEIR_H includes are read.

Builders are the functions, and the methods of public classes, that return tensors, operations, variables, or lists or
structs of them. Each is called once with arguments chosen by its parameters' types. A missing parameter type, a class
without an object expression, or a list of unknown length fails the build. A new builder needs a line here only if its
types do not determine the call.
"""

import re
import sys

# Maps the types of parameters without a default to expressions. `x` is the tensor and `v` the variable of the call.
ARGUMENTS = {
    "Output": "x",
    "const Output&": "x",
    "const TensorArg&": "x",
    "const Ints&": "Ints{1}",
    "Graph&": "graph",
    "const Graph&": "graph",
    "const Outputs&": "Outputs{x, x}",
    "const SparseTensor&": "SparseTensor{x, x, x}",
    "absl::string_view": '"text"',
    "const char*": '"text"',
    "std::string": '"text"',
    "const std::string&": '"text"',
    "DataType": "DT_FLOAT",
    "int64_t": "2",
    "int32_t": "2",
    "int": "1",
    "float": "1",
    "double": "1",
    "bool": "true",
    "std::initializer_list<double>": "std::initializer_list<double>{1.0}",
    "Tensor": "Tensor::Scalar(1.0f)",
    "const Tensor&": "Tensor::Scalar(1.0f)",
    "const Shape&": "Shape({2})",
    "const Variable&": "v",
    "Variable": "v",
    "const Variables&": "Variables{v}",
    "const std::vector<int64_t>&": "std::vector<int64_t>{1}",
    "std::vector<int64_t>": "std::vector<int64_t>{1}",
    "const std::vector<float>&": "std::vector<float>{0.5f}",
    "std::vector<float>": "std::vector<float>{0.5f}",
    "const std::vector<std::string>&": 'std::vector<std::string>{"text"}',
    "const DataTypes&": "DataTypes{DT_FLOAT, DT_FLOAT}",
    "const FunctionRef&": 'FunctionRef{"missing"}',
    "const std::vector<FunctionRef>&": 'std::vector<FunctionRef>{{"missing"}}',
    "const Grads&": "Grads{Grad(x), Grad(x)}",
    "const Grad&": "Grad(x)",
    "const IndexedSlices&": "IndexedSlices{x, x, x}",
    "const GradientSources&": "GradientSources{x, x}",
    "const GradsAndVariables&": "GradsAndVariables{{Grad(x), v}}",
    "const BranchFn&": "[x] { return x; }",
    "const BranchListFn&": "[x] { return Outputs{x, x}; }",
    "const std::function<Operation()>&": "[x] { return Operation(x); }",
    "const std::vector<std::pair<Output, BranchListFn>>&":
        "std::vector<std::pair<Output, BranchListFn>>{{x, [x] { return Outputs{x, x}; }}}",
    "const LoopCondFn&": "[](const Outputs& vars) { return Less(vars[0], 1.0f); }",
    "const LoopBodyFn&": "[](const Outputs& vars) { return vars; }",
    "const RowFn&": "[](const Outputs& row) { return row; }",
    "const ScanFn&": "[](const Outputs& state, const Outputs&) { return state; }",
    "const RnnCell&": "BasicLstmCell(2)",
    "const std::vector<TensorArg>&": "std::vector<TensorArg>{x, x}",
    "const std::vector<Operation>&": "std::vector<Operation>{Operation(x)}",
    "std::vector<Operation>": "std::vector<Operation>{Operation(x)}",
    "const Initializer&": "Zeros()",
    "const Literal&": "Literal(1)",
    "Literal": "Literal(1)",
    "const RaggedTensor&": "RaggedTensor{{x}, x}",
    "const std::vector<Index>&": "std::vector<Index>{0}",
    "const std::vector<SparseTensor>&": "std::vector<SparseTensor>(2, {x, x, x})",
    "const EmbeddingTables&": "x",
    "const FixedLength&": "Reader::FixedLength{}",
    "const Queue&": "Queue::Fifo(graph, 1, {DT_STRING})",
    "const Dataset&": "Dataset::FromTensors({x, x})",
    "const std::vector<Dataset>&": "std::vector<Dataset>(2, Dataset::FromTensors({x, x}))",
    "ElementSpec": "ElementSpec{{DT_FLOAT, DT_FLOAT}, {Shape(), Shape()}}",
    "const ElementSpec&": "ElementSpec{{DT_FLOAT, DT_FLOAT}, {Shape(), Shape()}}",
    "const ElementFn&": "[](const Outputs& element) { return element; }",
    "const PredicateFn&": "[](const Outputs& element) { return element[0]; }",
    "const KeyFn&": "[](const Outputs& element) { return element[0]; }",
    "const DatasetFn&": "Dataset::FromTensors",
    "const GroupFn&": "[](const Output&, const Dataset& group) { return group; }",
    "const StatefulFn&":
        "[](const Outputs& state, const Outputs& element) { return std::pair<Outputs, Outputs>(state, element); }",
    "const std::function<Output(Output key)>&": "[](Output key) { return key; }",
    "const std::vector<int32_t>&": "std::vector<int32_t>{1}",
    "const std::vector<FixedLenFeature>&": 'std::vector<FixedLenFeature>{{.key = "a", .dtype = DT_FLOAT}}',
    "const std::vector<VarLenFeature>&": 'std::vector<VarLenFeature>{{.key = "b", .dtype = DT_FLOAT}}',
    "const std::function<Output(const Variable&)>&": "[](const Variable& part) { return part.value(); }",
}

# Options and other types that are passed by default.
DEFAULTED = re.compile(r"^(const )?(\w+Options|LstmWeights|FeatureColumns|QuantizedTensor|DataLayout|"
                       r"TextFileTable|NamedVariables|MirrorMode|WindowShape|UniformQuantization)&?$")

# Expressions that create the object of a method.
OBJECTS = {
    "ConditionalAccumulator": "ConditionalAccumulator(graph, DT_FLOAT)",
    "SparseConditionalAccumulator": "SparseConditionalAccumulator(graph, DT_FLOAT)",
    "ExponentialMovingAverage": "ExponentialMovingAverage(0.5f)",
    "Optimizer": "Momentum(0.1f, 0.9f)",
    "Dataset": "Dataset::FromTensors({x, x})",
    "Iterator": "MakeInitializableIterator(Dataset::FromTensors({x, x}))",
    "Queue": "Queue::Fifo(graph, 3, {DT_FLOAT, DT_FLOAT}, {.shapes = {Shape({2}), Shape({2})}})",
    "Reader": "Reader::TextLine(graph)",
    "Table": "MutableHashTable(DT_STRING, x)",
    "StaticHashTable": "StaticHashTable(x, x, x)",
    "MutableHashTable": "MutableHashTable(DT_STRING, x)",
    "TensorArray": "TensorArray(graph, DT_FLOAT, 2)",
    "Variable": "v",
    "VariableSlice": "v.Slice({0})",
    "Module": "Module(graph)",
}
# Argument types and plain structs, whose methods do not add nodes.
NO_OBJECTS = {"Ints", "Index", "Literal", "TensorArg", "Initializer", "Training"}
# Functions that are skipped, with the reason.
LEFT_OUT = {
    "function.h CallGradient": "a gradient rule, for ops",
    "math.h FunctionOperator": "operators of C++",
    "mirrored_variable.h WriteReplicas": "for variables",
    "variables.h FindVariable": "looks a node up",
}
# The number of tensors in the list that a function returns.
COUNTS = {
    "array.h IdentityN": 2,
    "array.h ShapeN": 2,
    "array.h ConcatOffset": 2,
    "array.h Split": 2,
    "array.h SplitV": 1,
    "array.h Unstack": 1,
    "clip.h ClipByGlobalNorm": 2,
    "cond.h Cond": 2,
    "control_flow.h Tuple": 2,
    "ctc.h CtcGreedyDecoder": 1,
    "ctc.h CtcBeamSearchDecoder": 1,
    "data_flow.h DynamicPartition": 2,
    "function.h Call": 0,
    "function.h FunctionalIf": 0,
    "function.h FunctionalCase": 0,
    "function.h FunctionalWhile": 2,
    "function.h FunctionalFor": 2,
    "dataset.h Dataset::Reduce": 2,
    "dataset.h Dataset::GetSingleElement": 2,
    "dynamic_rnn.h DynamicRnn": 2,
    "functional.h MapFn": 2,
    "functional.h Scan": 2,
    "functional.h Case": 2,
    "gradient_util.h GateGrads": 2,
    "gradients.h Gradients": 2,
    "gradients.h DenseGradients": 2,
    "io.h RestoreV2": 2,
    "iterator.h Iterator::GetNext": 2,
    "losses.h GetLosses": 0,
    "losses.h GetRegularizationLosses": 0,
    "optimizer.h Optimizer::ComputeGradients": 0,
    "parsing.h DecodeCsv": 2,
    "parsing.h ParseExample": 2,
    "proto_fields.h DecodeProto": 2,
    "queue.h Queue::Dequeue": 2,
    "queue.h Queue::DequeueMany": 2,
    "queue.h Queue::DequeueUpTo": 2,
    "ragged.h RaggedGather": 1,
    "ragged.h RaggedRange": 1,
    "sparse.h SparseSplit": 2,
    "variable.h Variable::AssignParts": 1,
    "variable.h Variable::AssignAddParts": 1,
    "variable.h Variable::AssignSubParts": 1,
    "while_loop.h WhileLoop": 2,
}
# Result types that contain no list, or one whose length COUNTS has.
RESULTS = re.compile(r"^(const )?(Output|Operation|Outputs|Grads?|Variables?|Metric|SparseTensor|IndexedSlices|Queue|Reader|"
                     r"RaggedTensor|TensorArray|VariableSlice|Dataset|Iterator|Candidates|DecodedWav|CSRComponents|CtcDecoded|ClippedGrads|RnnStep|ParsedExamples|"
                     r"DecodedProto|GradsAndVariables|LabelsAndPredictions|AccidentalHits|Neighbors|FilledRows|VocabRemapping|"
                     r"QuantizedTensor|BroadcastReductions|std::pair<Output, Output>|std::vector<SparseTensor>|"
                     r"\w+(Result|States))&?$")
LISTS = re.compile(r"^(Outputs|Grads|RaggedTensor|CtcDecoded|ClippedGrads|RnnStep|ParsedExamples|DecodedProto|GradsAndVariables|"
                   r"std::vector<SparseTensor>)$")
OTHERS = re.compile(r"^(bool|void|double|int|std::(string|map|optional|shared_ptr|vector)\b.*|absl::StatusOr<.*|absl::Status|"
                    r"const .*|Initializer|\w*Partitioner|PsStrategy|Graph::DeviceFn|NormRegularizer|RnnCell|NamedVariables|"
                    r"VariableScopeRef|Window|Attrs|Shape|DataType|Kind|CallSite|SaverDef|Variable\w+|Graph&|explicit)$")

FUNCTION = re.compile(r"^(?:virtual |inline |static |explicit |constexpr )*([\w:<>, ]+?)([ &*]+)(\w+)\((.*)\)"
                      r"( const)?( override)?( = 0)?$")


def code_of(path):
    text = open(path).read()
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"^#.*$", "", text, flags=re.M)


def matching(text, begin):
    """Returns the position after the brace that closes the one at `begin`."""
    depth, at = 1, begin + 1
    while depth:
        depth += (text[at] == "{") - (text[at] == "}")
        at += 1
    return at


def declarations(text):
    """Yields the text before each ';' or body at this depth, and the body or None."""
    head, at = "", 0
    while at < len(text):
        if text[at] == ";":
            yield " ".join(head.split()), None
            head = ""
        elif text[at] == "{":
            end = matching(text, at)
            if head.count("(") > head.count(")") or head.rstrip().endswith("="):
                head += text[at:end]
            else:
                yield " ".join(head.split()), text[at + 1:end - 1]
                head = ""
            at = end - 1
        else:
            head += text[at]
        at += 1


def split(text):
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "(<{[") - (c in ")>}]")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return parts + [part.strip()] if part.strip() else parts


def public_part(kind, body):
    section, public = "public" if kind == "struct" else "private", ""
    for part in re.split(r"\b(public|private|protected):", body):
        if part in ("public", "private", "protected"):
            section = part
        elif section == "public":
            public += part
    return public


def argument(parameter, where):
    """Returns the expression for a parameter, or None if it has a default."""
    if re.search(r"[^=]=[^=]", parameter):
        return None
    kind = re.sub(r"\s+\w+$", "", parameter) if parameter not in ARGUMENTS else parameter
    if kind in ARGUMENTS:
        return "static_cast<%s>(%s)" % (kind, ARGUMENTS[kind]) if kind in ("int64_t", "int32_t") else ARGUMENTS[kind]
    if DEFAULTED.match(kind):
        return kind.replace("const ", "").replace("&", "") + "{}"
    sys.exit("%s: no argument of type '%s' is known" % (where, kind))


def calls(namespace, text, header, class_name=None):
    """Yields (name, statement, length) for every builder."""
    for head, body in declarations(text):
        match = re.match(r"(?:inline )?namespace (?:WEIR_API )?([\w:]*)$", head)
        if match and body is not None:
            yield from calls(namespace + match.group(1) + "::", body, header)
            continue
        match = re.match(r"(class|struct) (\w+)[^()]*$", head)
        if match and body is not None:
            if class_name is None and match.group(2) not in NO_OBJECTS:
                yield from calls(namespace, public_part(match.group(1), body), header, match.group(2))
            continue
        match = FUNCTION.match(head)
        if not match or re.match(r"template|using|friend|extern|operator", head) or "operator" in head:
            continue
        result, name = (match.group(1) + match.group(2)).strip(), match.group(3)
        where = header.split("/")[-1] + " " + (class_name + "::" if class_name else "") + name
        if where in LEFT_OUT or (OTHERS.match(result) and not RESULTS.match(result)):
            continue
        if not RESULTS.match(result):
            sys.exit("%s: is '%s' a result of builders?" % (where, result))
        if LISTS.match(result) and where not in COUNTS:
            sys.exit("%s: how many tensors are in its result?" % where)
        arguments = [argument(p, where) for p in split(match.group(4))]
        arguments = ", ".join(a for a in arguments if a is not None)
        if class_name is None:
            callee = namespace + name
        elif head.startswith("static "):
            callee = namespace + class_name + "::" + name
        elif class_name in OBJECTS:
            callee = "(" + OBJECTS[class_name] + ")." + name
        else:
            sys.exit("%s: no object to call it on" % where)
        yield where, "%s(%s)" % (callee, arguments), COUNTS.get(where, -1)


def main():
    output, public, headers = sys.argv[1], open(sys.argv[2]).read(), sys.argv[3:]
    lines = []
    for header in headers:
        if '#include "weir/%s"' % header not in public:
            continue
        for where, call, count in calls("", code_of(header), header):
            lines.append('    {"%s", [](Graph& graph, Output x, Variable v) { return Length(%s); }, %d},' %
                         (where, call, count))
    with open(output, "w") as out:
        out.write("// Made by failed_graph_calls.py.\n" + "\n".join(lines) + "\n")


main()
