#include <algorithm>

#include "weir/tests/kernels/lib/pick.h"

// Ops that move elements. For each element of the result, their reference implementations say which
// element of which input it is.
namespace weir {

namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

Tensors Same(const Node&, const Tensors& x) { return {x[0]}; }
Tensors AllSame(const Node&, const Tensors& x) { return x; }

// ---- shapes

Tensor AsInts(const Shape& shape) { return Tensor::Vector<int64_t>(shape.dims()); }
Tensor Convert(const Tensor& ints, DataType type) {
  if (type == DT_INT64) return ints;
  Tensor out(DT_INT32, ints.shape());
  for (int64_t i = 0; i < ints.num_elements(); ++i)
    out.data<int32_t>()[i] = static_cast<int32_t>(ints.IntAt(i));
  return out;
}
Tensors ShapeReference(const Node& n, const Tensors& x) {
  Tensors out;
  for (const Tensor& t : x) out.push_back(Convert(AsInts(t.shape()), n.output_type(0)));
  return out;
}
Tensors SizeReference(const Node& n, const Tensors& x) {
  return {Convert(Tensor::Scalar(x[0].num_elements()), n.output_type(0))};
}
Tensors RankReference(const Node&, const Tensors& x) {
  return {Tensor::Scalar<int32_t>(x[0].rank())};
}

OpReference Reshaped(Shape shape) {
  return [shape](const Node&, const Tensors& x) -> Tensors { return {x[0].Reshaped(shape)}; };
}

Tensors FillReference(const Node&, const Tensors& x) {
  return {PickOne(x[1], Shape(absl::MakeConstSpan(pick::Ints(x[0]))),
                  [](const pick::Index&) { return 0; })};
}

Tensors ConstantReference(const Tensor& like, double value) {
  Tensor out = Tensor::Zeros(like.dtype(), like.shape());
  DispatchType(out.dtype(), List<double, complex128, bool>{}, [&]<class T>() {
    std::fill_n(out.data<T>(), out.num_elements(), value != 0 ? T(1) : T(0));
  });
  return {out};
}
Tensors ZerosReference(const Node&, const Tensors& x) { return ConstantReference(x[0], 0); }
Tensors OnesReference(const Node&, const Tensors& x) { return ConstantReference(x[0], 1); }

Tensors BroadcastToReference(const Node&, const Tensors& x) {
  const Shape shape(absl::MakeConstSpan(pick::Ints(x[1])));
  return {PickOne(x[0], shape, [&](const pick::Index& i) {
    pick::Index from;
    for (int d = 0; d < x[0].rank(); ++d) {
      from.push_back(x[0].dim(d) == 1 ? 0 : i[d + shape.rank() - x[0].rank()]);
    }
    return Flat(x[0].shape(), from);
  })};
}

// ---- slicing and concatenation

Tensors SliceReference(const Node&, const Tensors& x) {
  const pick::Index begin = pick::Ints(x[1]);
  pick::Index size = pick::Ints(x[2]);
  for (size_t d = 0; d < size.size(); ++d) {
    if (size[d] < 0) size[d] = x[0].dim(static_cast<int>(d)) - begin[d];
  }
  return {PickOne(x[0], Shape(absl::MakeConstSpan(size)), [&](const pick::Index& i) {
    pick::Index from = i;
    for (size_t d = 0; d < i.size(); ++d) from[d] += begin[d];
    return Flat(x[0].shape(), from);
  })};
}

// The expected result according to NumPy: the indices of each input dimension in order, and the
// shape of the result.
struct NumpySlice {
  std::vector<pick::Index> picked;
  Shape shape;
};
// x[1:4:2, ..., newaxis, 2, ::-1] for x of shape [5, 3, 4, 6].
NumpySlice MixedSlice() {
  return {{{1, 3}, {0, 1, 2}, {2}, {5, 4, 3, 2, 1, 0}}, Shape({2, 3, 1, 6})};
}
// x[-3:100, 4:1:-1] for x of shape [5, 6].
NumpySlice ClippedSlice() { return {{{2, 3, 4}, {4, 3, 2}}, Shape({3, 3})}; }

int64_t SourceIndex(const NumpySlice& s, const Shape& in, int64_t flat) {
  pick::Index from(s.picked.size());
  for (size_t d = s.picked.size(); d-- > 0;) {
    const int64_t n = static_cast<int64_t>(s.picked[d].size());
    from[d] = s.picked[d][flat % n];
    flat /= n;
  }
  return Flat(in, from);
}

OpReference StridedSliceReference(NumpySlice s) {
  return [s](const Node&, const Tensors& x) -> Tensors {
    return {PickOne(x[0], s.shape, [&](const pick::Index& i) {
      return SourceIndex(s, x[0].shape(), Flat(s.shape, i));
    })};
  };
}

OpReference StridedSliceGradReference(NumpySlice s, Shape shape) {
  return [=](const Node&, const Tensors& x) -> Tensors {
    const Tensor& dy = x[4];
    std::vector<int64_t> from(shape.num_elements(), -1);
    for (int64_t i = 0; i < s.shape.num_elements(); ++i) from[SourceIndex(s, shape, i)] = i;
    return {PickOne(dy, shape, [&](const pick::Index& i) { return from[Flat(shape, i)]; })};
  };
}

OpReference SliceUpdateReference(NumpySlice s) {
  return [s](const Node&, const Tensors& x) -> Tensors {
    const Tensor& value = x[4];  // has the slice's shape, or is a scalar
    std::vector<int64_t> from(x[0].num_elements(), -1);
    for (int64_t i = 0; i < s.shape.num_elements(); ++i) {
      from[SourceIndex(s, x[0].shape(), i)] = value.num_elements() == 1 ? 0 : i;
    }
    return {Pick({x[0], value}, x[0].shape(), [&](const pick::Index& i) {
      const int64_t flat = Flat(x[0].shape(), i);
      return from[flat] >= 0 ? Source(1, from[flat]) : Source(0, flat);
    })};
  };
}

OpCase Sliced(absl::string_view op, const NumpySlice& mixed) {
  return OpCase(op)
      .Attr("begin_mask", 16)
      .Attr("end_mask", 16)
      .Attr("ellipsis_mask", 2)
      .Attr("new_axis_mask", 4)
      .Attr("shrink_axis_mask", 8);
}

Tensor Join(const Tensors& xs, int axis) {
  Shape shape = xs[0].shape();
  for (size_t k = 1; k < xs.size(); ++k) shape.set_dim(axis, shape.dim(axis) + xs[k].dim(axis));
  return Pick(xs, shape, [&](const pick::Index& i) {
    pick::Index from = i;
    int k = 0;
    while (from[axis] >= xs[k].dim(axis)) from[axis] -= xs[k++].dim(axis);
    return Source(k, Flat(xs[k].shape(), from));
  });
}

OpReference JoinReference(int axis, bool axis_first) {
  return [=](const Node&, const Tensors& x) -> Tensors {
    return {
        Join(axis_first ? Tensors(x.begin() + 1, x.end()) : Tensors(x.begin(), x.end() - 1), axis)};
  };
}

OpReference SplitReference(int value, int axis, pick::Index sizes) {
  return [=](const Node&, const Tensors& x) -> Tensors {
    Tensors out;
    int64_t begin = 0;
    for (const int64_t size : sizes) {
      Shape shape = x[value].shape();
      shape.set_dim(axis, size);
      out.push_back(PickOne(x[value], shape, [&](const pick::Index& i) {
        pick::Index from = i;
        from[axis] += begin;
        return Flat(x[value].shape(), from);
      }));
      begin += size;
    }
    return out;
  };
}

OpReference PackReference(int axis) {
  return [=](const Node&, const Tensors& x) -> Tensors {
    Shape shape = x[0].shape();
    shape.InsertDim(axis, static_cast<int64_t>(x.size()));
    return {Pick(x, shape, [&](const pick::Index& i) {
      pick::Index from = i;
      from.erase(from.begin() + axis);
      return Source(static_cast<int>(i[axis]), Flat(x[0].shape(), from));
    })};
  };
}

OpReference UnpackReference(int axis) {
  return [=](const Node& n, const Tensors& x) -> Tensors {
    Shape shape = x[0].shape();
    shape.RemoveDim(axis);
    Tensors out;
    for (int k = 0; k < n.num_outputs(); ++k) {
      out.push_back(PickOne(x[0], shape, [&](const pick::Index& i) {
        pick::Index from = i;
        from.insert(from.begin() + axis, k);
        return Flat(x[0].shape(), from);
      }));
    }
    return out;
  };
}

Tensors TileReference(const Node&, const Tensors& x) {
  const pick::Index multiples = pick::Ints(x[1]);
  Shape shape = x[0].shape();
  for (int d = 0; d < shape.rank(); ++d) shape.set_dim(d, shape.dim(d) * multiples[d]);
  return {PickOne(x[0], shape, [&](const pick::Index& i) {
    pick::Index from = i;
    for (size_t d = 0; d < from.size(); ++d) from[d] %= x[0].dim(static_cast<int>(d));
    return Flat(x[0].shape(), from);
  })};
}

// ---- rearranging

Tensors TransposeReference(const Node& n, const Tensors& x) {
  const pick::Index perm = pick::Ints(x[1]);
  Shape shape;
  for (const int64_t p : perm) shape.AddDim(x[0].dim(static_cast<int>(p)));
  Tensor y = PickOne(x[0], shape, [&](const pick::Index& i) {
    pick::Index from(i.size());
    for (size_t d = 0; d < i.size(); ++d) from[perm[d]] = i[d];
    return Flat(x[0].shape(), from);
  });
  if (n.op_name() == "ConjugateTranspose" && y.dtype() == DT_COMPLEX128) {
    for (complex128& v : y.flat<complex128>()) v = std::conj(v);
  }
  return {y};
}

OpReference ReverseReference(pick::Index axes) {
  return [axes](const Node&, const Tensors& x) -> Tensors {
    return {PickOne(x[0], x[0].shape(), [&](const pick::Index& i) {
      pick::Index from = i;
      for (const int64_t a : axes) from[a] = x[0].dim(static_cast<int>(a)) - 1 - from[a];
      return Flat(x[0].shape(), from);
    })};
  };
}

Tensors ReverseSequenceReference(const Node& n, const Tensors& x) {
  const pick::Index lengths = pick::Ints(x[1]);
  const int64_t seq = n.attr<int64_t>("seq_dim"), batch = n.attr<int64_t>("batch_dim");
  return {PickOne(x[0], x[0].shape(), [&](const pick::Index& i) {
    pick::Index from = i;
    const int64_t length = lengths[i[batch]];
    if (i[seq] < length) from[seq] = length - 1 - i[seq];
    return Flat(x[0].shape(), from);
  })};
}

OpReference RollReference(pick::Index shifts) {
  return [shifts](const Node&, const Tensors& x) -> Tensors {
    return {PickOne(x[0], x[0].shape(), [&](const pick::Index& i) {
      pick::Index from = i;
      for (size_t d = 0; d < i.size(); ++d) {
        const int64_t n = x[0].dim(static_cast<int>(d));
        from[d] = ((i[d] - shifts[d]) % n + n) % n;
      }
      return Flat(x[0].shape(), from);
    })};
  };
}

Shape Padded(const Tensor& x, const pick::Index& p) {
  Shape shape = x.shape();
  for (int d = 0; d < shape.rank(); ++d) shape.set_dim(d, shape.dim(d) + p[2 * d] + p[2 * d + 1]);
  return shape;
}

Tensors PadReference(const Node&, const Tensors& x) {
  const pick::Index p = pick::Ints(x[1]);
  return {Pick({x[0], x.back()}, Padded(x[0], p), [&](const pick::Index& i) {
    pick::Index from = i;
    for (int d = 0; d < x[0].rank(); ++d) {
      from[d] -= p[2 * d];
      if (from[d] < 0 || from[d] >= x[0].dim(d))
        return x.size() == 3 ? Source(1, 0) : Source(-1, 0);
    }
    return Source(0, Flat(x[0].shape(), from));
  })};
}

// Returns the source of position i of a padded dimension of inner extent n.
int64_t MirrorSource(int64_t i, int64_t before, int64_t n, bool reflect) {
  i -= before;
  if (i < 0) return reflect ? -i : -i - 1;
  return i < n ? i : reflect ? 2 * n - 2 - i : 2 * n - 1 - i;
}

Tensors MirrorPadReference(const Node& n, const Tensors& x) {
  const pick::Index p = pick::Ints(x[1]);
  const bool reflect = n.attr<std::string>("mode") == "REFLECT";
  return {PickOne(x[0], Padded(x[0], p), [&](const pick::Index& i) {
    pick::Index from = i;
    for (int d = 0; d < x[0].rank(); ++d)
      from[d] = MirrorSource(i[d], p[2 * d], x[0].dim(d), reflect);
    return Flat(x[0].shape(), from);
  })};
}

Tensors MirrorPadGradReference(const Node& n, const Tensors& x) {
  const pick::Index p = pick::Ints(x[1]);
  const bool reflect = n.attr<std::string>("mode") == "REFLECT";
  Shape inner = x[0].shape();
  for (int d = 0; d < inner.rank(); ++d) inner.set_dim(d, inner.dim(d) - p[2 * d] - p[2 * d + 1]);
  return {SumTo(x[0], inner, [&](const pick::Index& i) {
    pick::Index to = i;
    for (int d = 0; d < inner.rank(); ++d)
      to[d] = MirrorSource(i[d], p[2 * d], inner.dim(d), reflect);
    return Flat(inner, to);
  })};
}

// Batch b of the result holds position b / N of the blocks (N is the number of batches of the
// input), in row-major order over the block.
Tensors SpaceToBatch(const Tensor& x, const pick::Index& block, const pick::Index& p) {
  Shape shape = x.shape();
  int64_t product = 1;
  for (size_t d = 0; d < block.size(); ++d) {
    const int dim = static_cast<int>(d) + 1;
    shape.set_dim(dim, (shape.dim(dim) + p[2 * d] + p[2 * d + 1]) / block[d]);
    product *= block[d];
  }
  shape.set_dim(0, shape.dim(0) * product);
  return {PickOne(x, shape, [&](const pick::Index& i) -> int64_t {
    pick::Index from = i;
    int64_t position = i[0] / x.dim(0);
    from[0] = i[0] % x.dim(0);
    for (size_t d = block.size(); d-- > 0; position /= block[d]) {
      from[d + 1] = i[d + 1] * block[d] + position % block[d] - p[2 * d];
      if (from[d + 1] < 0 || from[d + 1] >= x.dim(static_cast<int>(d) + 1)) return -1;
    }
    return Flat(x.shape(), from);
  })};
}

Tensors BatchToSpace(const Tensor& x, const pick::Index& block, const pick::Index& crops) {
  Shape shape = x.shape();
  int64_t product = 1;
  for (size_t d = 0; d < block.size(); ++d) {
    const int dim = static_cast<int>(d) + 1;
    shape.set_dim(dim, shape.dim(dim) * block[d] - crops[2 * d] - crops[2 * d + 1]);
    product *= block[d];
  }
  shape.set_dim(0, shape.dim(0) / product);
  return {PickOne(x, shape, [&](const pick::Index& i) {
    pick::Index from = i;
    int64_t position = 0;
    for (size_t d = 0; d < block.size(); ++d) {
      const int64_t at = i[d + 1] + crops[2 * d];
      from[d + 1] = at / block[d];
      position = position * block[d] + at % block[d];
    }
    from[0] = position * shape.dim(0) + i[0];
    return Flat(x.shape(), from);
  })};
}

Tensors SpaceToBatchNdReference(const Node&, const Tensors& x) {
  return SpaceToBatch(x[0], pick::Ints(x[1]), pick::Ints(x[2]));
}
Tensors BatchToSpaceNdReference(const Node&, const Tensors& x) {
  return BatchToSpace(x[0], pick::Ints(x[1]), pick::Ints(x[2]));
}
Tensors SpaceToBatchReference(const Node& n, const Tensors& x) {
  const int64_t b = n.attr<int64_t>("block_size");
  return SpaceToBatch(x[0], {b, b}, pick::Ints(x[1]));
}
Tensors BatchToSpaceReference(const Node& n, const Tensors& x) {
  const int64_t b = n.attr<int64_t>("block_size");
  return BatchToSpace(x[0], {b, b}, pick::Ints(x[1]));
}

// Channel (y * b + x) * C + c at pixel (h, w) is channel c at pixel (h * b + y, w * b + x); height,
// width and channels are dimensions `h`, `w`, `c`.
Tensors MoveDepth(const Node& n, const Tensor& x, bool to_depth) {
  const int64_t b = n.attr<int64_t>("block_size");
  const bool nhwc = n.attr<std::string>("data_format") == "NHWC";
  const int h = nhwc ? 1 : 2, w = nhwc ? 2 : 3, c = nhwc ? 3 : 1;
  Shape shape = x.shape();
  const int64_t small = to_depth ? x.dim(c) : x.dim(c) / (b * b);
  shape.set_dim(h, to_depth ? x.dim(h) / b : x.dim(h) * b);
  shape.set_dim(w, to_depth ? x.dim(w) / b : x.dim(w) * b);
  shape.set_dim(c, to_depth ? small * b * b : small);
  return {PickOne(x, shape, [&](const pick::Index& i) {
    pick::Index from = i;
    if (to_depth) {
      from[h] = i[h] * b + i[c] / small / b;
      from[w] = i[w] * b + i[c] / small % b;
      from[c] = i[c] % small;
    } else {
      from[h] = i[h] / b;
      from[w] = i[w] / b;
      from[c] = (i[h] % b * b + i[w] % b) * small + i[c];
    }
    return Flat(x.shape(), from);
  })};
}
Tensors SpaceToDepthReference(const Node& n, const Tensors& x) { return MoveDepth(n, x[0], true); }
Tensors DepthToSpaceReference(const Node& n, const Tensors& x) { return MoveDepth(n, x[0], false); }

// ---- the test cases

std::vector<OpCase> ShapeCases() {
  std::vector<OpCase> rows = {
      OpCase("EnsureShape").Input({2, 3}).Attr("shape", Shape({-1, 3})).Reference(Same),
      OpCase("CheckNumerics").Input({2, 3}).Attr("message", "m").Reference(Same),
      OpCase("CheckNumericsV2").Input({2, 3}).Attr("message", "m").Reference(Same),
      OpCase("PlaceholderWithDefault").Input({2, 3}).Attr("shape", Shape({2, 3})).Reference(Same),
      OpCase("PreventGradient").Input({2, 3}).Reference(Same).Gradient(0),
      OpCase("IdentityN").List({{2, 3}, {}, {4}}).Reference(AllSame),
      OpCase("Bitcast")
          .Input(Tensor::Vector<int32_t>({0, 1065353216}))
          .Attr("type", DT_FLOAT)
          .Types({DT_INT32})
          .Reference([](const Node&, const Tensors&) -> Tensors {
            return {Tensor::Vector<float>({0, 1})};
          }),
      OpCase("Shape").Input({2, 0, 3}).Reference(ShapeReference),
      OpCase("Shape")
          .Label("int64")
          .Input({5})
          .Attr("out_type", DT_INT64)
          .Reference(ShapeReference),
      OpCase("ShapeN").List({{2, 3}, {}, {4}}).Reference(ShapeReference),
      OpCase("Size").Input({2, 3, 4}).Reference(SizeReference),
      OpCase("Size")
          .Label("int64")
          .Input(Shape())
          .Attr("out_type", DT_INT64)
          .Reference(SizeReference),
      OpCase("Rank").Input({2, 3, 4}).Reference(RankReference),
      OpCase("Reshape").Input({2, 3, 4}).Input(I32({4, -1})).Reference(Reshaped({4, 6})),
      OpCase("Reshape").Label("scalar").Input({1, 1}).Input(I64({})).Reference(Reshaped({})),
      OpCase("Reshape")
          .Label("empty")
          .Input({0, 3})
          .Input(I32({-1, 3}))
          .Reference(Reshaped({0, 3})),
      OpCase("Reshape")
          .Label("strings")
          .Input({4})
          .Input(I32({2, 2}))
          .Types({DT_STRING})
          .Reference(Reshaped({2, 2})),
      OpCase("ExpandDims").Input({2, 3}).Input(I32(1)).Reference(Reshaped({2, 1, 3})),
      OpCase("ExpandDims")
          .Label("last")
          .Input({2, 3})
          .Input(I32(-1))
          .Reference(Reshaped({2, 3, 1})),
      OpCase("Squeeze").Input({1, 2, 1, 3}).Reference(Reshaped({2, 3})),
      OpCase("Squeeze")
          .Label("one")
          .Input({1, 2, 1, 3})
          .Attr("squeeze_dims", std::vector<int64_t>{-2})
          .Reference(Reshaped({1, 2, 3})),
      OpCase("Fill").Input(I32({2, 3})).Input(Shape()).Reference(FillReference),
      OpCase("Fill")
          .Label("large")
          .Input(I64({300, 300}))
          .Input(Shape())
          .Reference(FillReference)
          .Gradient(0),
      OpCase("Fill")
          .Label("strings")
          .Input(I32({3}))
          .Input(Shape())
          .Types({DT_STRING})
          .Reference(FillReference),
      OpCase("ZerosLike").Input({2, 3}).Reference(ZerosReference),
      OpCase("ZerosLike")
          .Label("strings")
          .Input({3})
          .Types({DT_STRING})
          .Reference(
              [](const Node&, const Tensors&) -> Tensors { return {Tensor(DT_STRING, {3})}; }),
      OpCase("OnesLike").Input({2, 3}).Reference(OnesReference),
      OpCase("Empty")
          .Input(I32({2, 3}))
          .Attr("init", true)
          .Types({DT_FLOAT, DT_INT64})
          .TypeAttr("dtype")
          .Reference([](const Node& n, const Tensors&) -> Tensors {
            return {Tensor::Zeros(n.output_type(0), {2, 3})};
          }),
      OpCase("BroadcastTo").Input({3, 1}).Input(I32({2, 3, 4})).Reference(BroadcastToReference),
      OpCase("BroadcastTo")
          .Label("scalar")
          .Input(Shape())
          .Input(I64({4}))
          .Reference(BroadcastToReference),
      OpCase("BroadcastTo")
          .Label("same")
          .Input({2, 2})
          .Input(I32({2, 2}))
          .Reference(BroadcastToReference),
      OpCase("BroadcastTo")
          .Label("strings")
          .Input({2, 1})
          .Input(I32({2, 3}))
          .Types({DT_STRING})
          .Reference(BroadcastToReference),
      OpCase("BroadcastArgs")
          .Input(I32({3, 1}))
          .Input(I32({2, 1, 4}))
          .Types({DT_INT32})
          .Reference([](const Node&, const Tensors&) -> Tensors {
            return {I32({2, 3, 4})};
          }),
      OpCase("BroadcastGradientArgs")
          .Input(I64({2, 1, 4}))
          .Input(I64({3, 1}))
          .Types({DT_INT64})
          .ShapesDependOnValues()
          .Reference([](const Node&, const Tensors&) -> Tensors {
            return {I64({1}), I64({0, 2})};
          }),
      OpCase("BroadcastGradientArgs")
          .Label("equal")
          .Input(I32({1, 2}))
          .Input(I32({1, 2}))
          .Types({DT_INT32})
          .ShapesDependOnValues()
          .Reference([](const Node&, const Tensors&) -> Tensors {
            return {I32({}), I32({})};
          }),
  };
  for (const char* op : {"Identity", "Snapshot", "StopGradient", "GuaranteeConst", "DeepCopy"}) {
    rows.push_back(OpCase(op).Input({2, 3}).Reference(Same));
    rows.push_back(OpCase(op).Label("strings").Input({2, 3}).Types({DT_STRING}).Reference(Same));
  }
  return rows;
}

std::vector<OpCase> SliceCases() {
  const NumpySlice mixed = MixedSlice(), clipped = ClippedSlice();
  const Tensor begin = I32({1, 0, 0, 2, 0}), end = I32({4, 0, 0, 3, 0}),
               strides = I32({2, 1, 1, 1, -1});
  const Tensor from = I64({-3, 4}), to = I64({100, 1}), by = I64({1, -1});
  return {
      OpCase("Slice")
          .Input({4, 5, 6})
          .Input(I32({1, 0, 2}))
          .Input(I32({2, -1, 3}))
          .Reference(SliceReference),
      OpCase("Slice")
          .Label("rows")
          .Input({16, 16})
          .Input(I64({4, 0}))
          .Input(I64({8, -1}))
          .Reference(SliceReference),
      OpCase("Slice")
          .Label("empty")
          .Input({4, 5})
          .Input(I32({1, 5}))
          .Input(I32({2, 0}))
          .Reference(SliceReference),
      OpCase("Slice")
          .Label("strings")
          .Input({4, 5})
          .Input(I32({1, 2}))
          .Input(I32({2, 2}))
          .Types({DT_STRING})
          .Reference(SliceReference),
      Sliced("StridedSlice", mixed)
          .Input({5, 3, 4, 6})
          .Input(begin)
          .Input(end)
          .Input(strides)
          .Reference(StridedSliceReference(mixed))
          .Gradient(2),
      Sliced("StridedSlice", mixed)
          .Label("strings")
          .Input({5, 3, 4, 6})
          .Input(begin)
          .Input(end)
          .Input(strides)
          .Types({DT_STRING})
          .Reference(StridedSliceReference(mixed)),
      OpCase("StridedSlice")
          .Label("clipped")
          .Input({5, 6})
          .Input(from)
          .Input(to)
          .Input(by)
          .Reference(StridedSliceReference(clipped)),
      OpCase("StridedSlice")
          .Label("element")
          .Input({3})
          .Input(I32({-1}))
          .Input(I32({0}))
          .Input(I32({1}))
          .Attr("shrink_axis_mask", 1)
          .Reference(StridedSliceReference({{{2}}, Shape()})),
      OpCase("StridedSlice")
          .Label("empty")
          .Input({5})
          .Input(I32({4}))
          .Input(I32({2}))
          .Input(I32({1}))
          .Reference(StridedSliceReference({{{}}, Shape({0})})),
      Sliced("StridedSliceGrad", mixed)
          .Input(I32({5, 3, 4, 6}))
          .Input(begin)
          .Input(end)
          .Input(strides)
          .Input(mixed.shape)
          .Reference(StridedSliceGradReference(mixed, {5, 3, 4, 6})),
      OpCase("StridedSliceGrad")
          .Label("clipped")
          .Input(I64({5, 6}))
          .Input(from)
          .Input(to)
          .Input(by)
          .Input({3, 3})
          .Reference(StridedSliceGradReference(clipped, {5, 6})),
      Sliced("TensorStridedSliceUpdate", mixed)
          .Input({5, 3, 4, 6})
          .Input(begin)
          .Input(end)
          .Input(strides)
          .Input(mixed.shape)
          .Reference(SliceUpdateReference(mixed)),
      OpCase("TensorStridedSliceUpdate")
          .Label("broadcast")
          .Input({5, 6})
          .Input(from)
          .Input(to)
          .Input(by)
          .Input(Shape())
          .Reference(SliceUpdateReference(clipped)),
  };
}

std::vector<OpCase> JoinCases() {
  return {
      OpCase("Concat")
          .Input(I32(1))
          .List({{2, 3}, {2, 1}, {2, 0}})
          .Reference(JoinReference(1, true)),
      OpCase("ConcatV2")
          .List({{2, 3, 2}, {2, 1, 2}})
          .Input(I32(-2))
          .Reference(JoinReference(1, false)),
      OpCase("ConcatV2")
          .Label("rows")
          .List({{2, 3}, {0, 3}, {4, 3}})
          .Input(I32(0))
          .Reference(JoinReference(0, false)),
      OpCase("ConcatV2")
          .Label("many")
          .List(std::vector<Shape>(20, Shape({2, 1})))
          .Input(I32(1))
          .Reference(JoinReference(1, false)),
      OpCase("ConcatV2")
          .Label("large")
          .List({{300, 200}, {300, 100}})
          .Input(I32(1))
          .Reference(JoinReference(1, false))
          .Gradient(0),
      OpCase("ConcatV2")
          .Label("strings")
          .List({{2}, {3}})
          .Input(I32(0))
          .Types({DT_STRING})
          .Reference(JoinReference(0, false)),
      OpCase("ConcatOffset")
          .Input(I32(1))
          .GivenList({I32({2, 3}), I32({2, 1}), I32({2, 4})})
          .Types({DT_INT32})
          .Reference([](const Node&, const Tensors&) -> Tensors {
            return {I32({0, 0}), I32({0, 3}), I32({0, 4})};
          }),
      OpCase("Split")
          .Input(I32(1))
          .Input({2, 6})
          .Attr("num_split", 3)
          .Reference(SplitReference(1, 1, {2, 2, 2})),
      OpCase("Split")
          .Label("rows")
          .Input(I32(0))
          .Input({32, 4})
          .Attr("num_split", 2)
          .Reference(SplitReference(1, 0, {16, 16})),
      OpCase("Split")
          .Label("strings")
          .Input(I32(0))
          .Input({4})
          .Attr("num_split", 2)
          .Types({DT_STRING})
          .Reference(SplitReference(1, 0, {2, 2})),
      OpCase("SplitV")
          .Input({2, 6})
          .Input(I64({1, -1, 2}))
          .Input(I32(-1))
          .Attr("num_split", 3)
          .Reference(SplitReference(0, 1, {1, 3, 2})),
      OpCase("SplitV")
          .Label("int32")
          .Input({6, 2})
          .Input(I32({0, 6}))
          .Input(I32(0))
          .Attr("num_split", 2)
          .Reference(SplitReference(0, 0, {0, 6})),
      OpCase("Pack").List({{2, 3}, {2, 3}}).Reference(PackReference(0)),
      OpCase("Pack")
          .Label("last")
          .List({{2, 3}, {2, 3}, {2, 3}})
          .Attr("axis", -1)
          .Reference(PackReference(2)),
      OpCase("Pack").Label("scalars").List({{}, {}}).Reference(PackReference(0)),
      OpCase("Pack")
          .Label("strings")
          .List({{2}, {2}})
          .Attr("axis", 1)
          .Types({DT_STRING})
          .Reference(PackReference(1)),
      OpCase("Unpack").Input({2, 3}).Attr("num", 2).Reference(UnpackReference(0)),
      OpCase("Unpack")
          .Label("last")
          .Input({2, 3, 4})
          .Attr("num", 4)
          .Attr("axis", -1)
          .Reference(UnpackReference(2)),
      OpCase("Unpack")
          .Label("strings")
          .Input({2, 3})
          .Attr("num", 3)
          .Attr("axis", 1)
          .Types({DT_STRING})
          .Reference(UnpackReference(1)),
      OpCase("Tile").Input({2, 3}).Input(I32({3, 2})).Reference(TileReference),
      OpCase("Tile").Label("same").Input({2, 3}).Input(I64({1, 1})).Reference(TileReference),
      OpCase("Tile")
          .Label("empty")
          .Input({2, 3})
          .Input(I32({0, 2}))
          .Reference(TileReference)
          .Gradient(0),
      OpCase("Tile")
          .Label("strings")
          .Input({2})
          .Input(I32({3}))
          .Types({DT_STRING})
          .Reference(TileReference),
  };
}

std::vector<OpCase> LayoutCases() {
  return {
      OpCase("Transpose").Input({2, 3, 4}).Input(I32({2, 0, 1})).Reference(TransposeReference),
      OpCase("Transpose")
          .Label("matrix")
          .Input({67, 131})
          .Input(I64({1, 0}))
          .Reference(TransposeReference)
          .Gradient(0),
      OpCase("Transpose")
          .Label("nhwc")
          .Input({2, 5, 33, 34})
          .Input(I32({0, 2, 3, 1}))
          .Reference(TransposeReference)
          .Gradient(0),
      OpCase("Transpose")
          .Label("inner")
          .Input({4, 5, 6, 7})
          .Input(I32({1, 0, 2, 3}))
          .Reference(TransposeReference)
          .Gradient(0),
      OpCase("Transpose")
          .Label("reversed")
          .Input({3, 4, 5, 6, 2})
          .Input(I32({4, 3, 2, 1, 0}))
          .Reference(TransposeReference)
          .Gradient(0),
      OpCase("Transpose")
          .Label("scalar")
          .Input(Shape())
          .Input(I32({}))
          .Reference(TransposeReference),
      OpCase("Transpose")
          .Label("strings")
          .Input({2, 3})
          .Input(I32({1, 0}))
          .Types({DT_STRING})
          .Reference(TransposeReference),
      OpCase("ConjugateTranspose")
          .Input({2, 3, 4})
          .Input(I32({1, 2, 0}))
          .Reference(TransposeReference),
      OpCase("InvertPermutation")
          .Input(I32({2, 0, 3, 1}))
          .Types({DT_INT32})
          .Reference([](const Node&, const Tensors&) -> Tensors {
            return {I32({1, 3, 0, 2})};
          }),
      OpCase("Reverse")
          .Input({2, 3, 4})
          .Input(Tensor::Vector<bool>({true, false, true}))
          .Reference(ReverseReference({0, 2})),
      OpCase("ReverseV2").Input({2, 3, 4}).Input(I32({1, -1})).Reference(ReverseReference({1, 2})),
      OpCase("ReverseV2")
          .Label("none")
          .Input({2, 3})
          .Input(I64({}))
          .Reference(ReverseReference({})),
      OpCase("ReverseV2")
          .Label("strings")
          .Input({2, 3})
          .Input(I32({0}))
          .Types({DT_STRING})
          .Reference(ReverseReference({0})),
      OpCase("ReverseSequence")
          .Input({3, 4, 2})
          .Input(I64({0, 2, 4}))
          .Attr("seq_dim", 1)
          .Reference(ReverseSequenceReference),
      OpCase("ReverseSequence")
          .Label("time_major")
          .Input({4, 3})
          .Input(I32({1, 4, 3}))
          .Attr("seq_dim", 0)
          .Attr("batch_dim", 1)
          .Reference(ReverseSequenceReference),
      OpCase("Roll")
          .Input({3, 4})
          .Input(I32({1, -2}))
          .Input(I32({0, 1}))
          .Reference(RollReference({1, -2})),
      OpCase("Roll").Label("scalar").Input({5}).Input(I64({7})).Input(I64({-1})).Reference(
          RollReference({2})),
      OpCase("Pad").Input({2, 3}).Input(Rows({1, 0, 2, 1})).Reference(PadReference),
      OpCase("Pad")
          .Label("strings")
          .Input({2})
          .Input(Rows({1, 1}))
          .Types({DT_STRING})
          .Reference(PadReference),
      OpCase("PadV2")
          .Input({2, 3})
          .Input(Rows({0, 1, 1, 2}))
          .Input(Shape())
          .Reference(PadReference)
          .GradientInputs({0}),
      OpCase("MirrorPad")
          .Label("reflect")
          .Input({3, 4})
          .Input(Rows({2, 1, 1, 3}))
          .Attr("mode", "REFLECT")
          .Reference(MirrorPadReference)
          .Gradient(2),
      OpCase("MirrorPad")
          .Label("symmetric")
          .Input({3, 2})
          .Input(Rows({3, 0, 1, 2}))
          .Attr("mode", "SYMMETRIC")
          .Reference(MirrorPadReference),
      OpCase("MirrorPadGrad")
          .Label("reflect")
          .Input({6, 8})
          .Input(Rows({2, 1, 1, 3}))
          .Attr("mode", "REFLECT")
          .NotTypes({DT_BOOL})
          .Reference(MirrorPadGradReference)
          .ToleranceFactor(4),
      OpCase("MirrorPadGrad")
          .Label("symmetric")
          .Input({6, 5})
          .Input(Rows({3, 0, 1, 2}))
          .Attr("mode", "SYMMETRIC")
          .NotTypes({DT_BOOL})
          .Reference(MirrorPadGradReference)
          .ToleranceFactor(4),
      OpCase("SpaceToBatch")
          .Input({2, 3, 4, 2})
          .Input(Rows({1, 0, 0, 2}))
          .Attr("block_size", 2)
          .Reference(SpaceToBatchReference),
      OpCase("SpaceToBatchND")
          .Input({2, 5, 4, 3})
          .Input(I32({3, 2}))
          .Input(Rows({2, 2, 0, 0}))
          .Reference(SpaceToBatchNdReference),
      OpCase("SpaceToBatchND")
          .Label("line")
          .Input({1, 4})
          .Input(I64({2}))
          .Input(Rows({0, 0}))
          .Reference(SpaceToBatchNdReference),
      OpCase("BatchToSpace")
          .Input({8, 2, 3, 2})
          .Input(Rows({1, 0, 0, 2}))
          .Attr("block_size", 2)
          .Reference(BatchToSpaceReference),
      OpCase("BatchToSpaceND")
          .Input({12, 2, 2, 2})
          .Input(I32({2, 3}))
          .Input(Rows({1, 0, 2, 1}))
          .Reference(BatchToSpaceNdReference),
      OpCase("SpaceToDepth")
          .Input({2, 4, 6, 3})
          .Attr("block_size", 2)
          .Reference(SpaceToDepthReference),
      OpCase("SpaceToDepth")
          .Label("nchw")
          .Input({2, 3, 6, 3})
          .Attr("block_size", 3)
          .Attr("data_format", "NCHW")
          .Reference(SpaceToDepthReference),
      OpCase("DepthToSpace")
          .Input({2, 2, 3, 12})
          .Attr("block_size", 2)
          .Reference(DepthToSpaceReference),
      OpCase("DepthToSpace")
          .Label("nchw")
          .Input({2, 8, 3, 2})
          .Attr("block_size", 2)
          .Attr("data_format", "NCHW")
          .Reference(DepthToSpaceReference),
  };
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(ArrayShape, OpSweepTest, testing::ValuesIn(ShapeCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(ArraySlice, OpSweepTest, testing::ValuesIn(SliceCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(ArrayJoin, OpSweepTest, testing::ValuesIn(JoinCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(ArrayLayout, OpSweepTest, testing::ValuesIn(LayoutCases()), OpCaseName);

}  // namespace weir
