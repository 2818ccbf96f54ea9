#include <map>
#include <string>

#include "weir/tests/kernels/lib/op_case.h"

namespace weir {
namespace {

using Z = complex128;

Z At(const Tensor& t, int64_t i) {
  return t.dtype() == DT_COMPLEX128 ? t.data<Z>()[i] : Z(t.data<double>()[i]);
}

// Computes the sum by definition: one loop over all values of all labels. `equation` has no
// ellipsis; a dimension of extent 1 is broadcast.
OpReference ByDefinition(std::string equation) {
  return [equation](const Node&, const Tensors& in) -> Tensors {
    const size_t arrow = equation.find("->");
    std::vector<std::string> subscripts = {""};
    for (const char c : equation.substr(0, arrow)) {
      if (c == ',') {
        subscripts.push_back("");
      } else {
        subscripts.back() += c;
      }
    }
    subscripts.push_back(equation.substr(arrow + 2));
    std::map<char, int> position;
    Shape all;
    for (size_t k = 0; k < in.size(); ++k) {
      for (int d = 0; d < in[k].rank(); ++d) {
        const auto [at, is_new] = position.emplace(subscripts[k][d], all.rank());
        if (is_new) all.AddDim(1);
        all.set_dim(at->second, all.dim(at->second) == 1 ? in[k].dim(d) : all.dim(at->second));
      }
    }
    Shape shape;
    for (const char c : subscripts.back()) shape.AddDim(all.dim(position.at(c)));
    std::vector<Z> sums(shape.num_elements());
    ForEachIndex(all, [&](int64_t, const std::vector<int64_t>& index) {
      const auto offset = [&](const std::string& labels, const Shape& s) {
        int64_t at = 0;
        for (int d = 0; d < s.rank(); ++d) {
          at = at * s.dim(d) + (s.dim(d) == 1 ? 0 : index[position.at(labels[d])]);
        }
        return at;
      };
      Z product = 1;
      for (size_t k = 0; k < in.size(); ++k) {
        product *= At(in[k], offset(subscripts[k], in[k].shape()));
      }
      sums[offset(subscripts.back(), shape)] += product;
    });
    Tensor out(in[0].dtype(), shape);
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      if (out.dtype() == DT_COMPLEX128) {
        out.data<Z>()[i] = sums[i];
      } else {
        out.data<double>()[i] = sums[i].real();
      }
    }
    return {out};
  };
}

// `expanded` is the equation without ellipses.
OpCase Einsum(const char* label, const char* equation, std::vector<Shape> shapes,
              const char* expanded = nullptr) {
  return OpCase("Einsum")
      .Label(label)
      .Attr("equation", std::string(equation))
      .List(std::move(shapes))
      .ToleranceFactor(4)
      .Reference(ByDefinition(expanded == nullptr ? equation : expanded));
}

}  // namespace

std::vector<OpCase> EinsumCases() {
  return {
      Einsum("product", "ij,jk->ik", {Shape{3, 4}, Shape{4, 5}}).Gradient(2),
      Einsum("transposed", "ji,kj->ki", {Shape{4, 3}, Shape{5, 4}}),
      Einsum("batch", "bij,bjk->bik", {Shape{3, 2, 4}, Shape{3, 4, 5}}),
      Einsum("batch_inside", "ibj,jbk->kib", {Shape{2, 3, 4}, Shape{4, 3, 5}}),
      Einsum("two_contracted", "abc,cbd->ad", {Shape{2, 3, 4}, Shape{4, 3, 5}}),
      Einsum("outer", "i,j->ij", {Shape{7}, Shape{5}}),
      Einsum("inner", "i,i->", {Shape{9}, Shape{9}}),
      Einsum("elementwise", "ij,ji->ij", {Shape{3, 5}, Shape{5, 3}}),
      Einsum("scaled_rows", "ij,i->ij", {Shape{3, 5}, Shape{3}}),
      Einsum("row_dots", "bi,bi->b", {Shape{40, 6}, Shape{40, 6}}),
      Einsum("scalars", ",->", {Shape(), Shape()}),
      Einsum("summed_at_once", "ijk,lj->i", {Shape{2, 3, 4}, Shape{5, 3}}).Gradient(2),
      Einsum("summed_and_moved", "abc,d->ca", {Shape{2, 3, 4}, Shape{3}}),
      Einsum("ones", "ij,jk->ik", {Shape{1, 4}, Shape{4, 1}}),
      Einsum("nothing_summed", "ij,jk->ik", {Shape{2, 0}, Shape{0, 3}}),
      Einsum("empty", "ij,jk->ik", {Shape{0, 2}, Shape{2, 3}}),
      Einsum("transpose", "abc->cab", {Shape{2, 3, 4}}),
      Einsum("sum", "abc->b", {Shape{2, 3, 4}}).Gradient(2),
      Einsum("sum_and_transpose", "abc->ca", {Shape{2, 3, 4}}),
      Einsum("sum_of_all", "ab->", {Shape{30, 70}}).ToleranceFactor(40),
      Einsum("trace", "ii->", {Shape{4, 4}}),
      Einsum("diagonal", "ijj->ji", {Shape{3, 4, 4}}),
      Einsum("onto_diagonal", "ij->jij", {Shape{3, 4}}),
      Einsum("traces_of_product", "iij,jk->kk", {Shape{3, 3, 2}, Shape{2, 4}}),
      Einsum("ellipsis", "...ij,...jk->...ik", {Shape{5, 1, 2, 3}, Shape{4, 3, 2}},
             "abij,bjk->abik"),
      Einsum("ellipsis_of_one", "i...j,jk->...ik", {Shape{2, 5, 3}, Shape{3, 4}}, "iaj,jk->aik"),
      Einsum("ellipsis_alone", "...->...", {Shape{2, 3}}, "ab->ab"),
      Einsum("ellipsis_of_nothing", "ij...,j->...i", {Shape{2, 3}, Shape{3}}, "ij,j->i"),
      Einsum("ellipsis_summed", "...ijk,...k->i...", {Shape{3, 2, 4, 5}, Shape{1, 5}},
             "aijk,ak->ia"),
      Einsum("large", "bij,bjk->bki", {Shape{3, 40, 70}, Shape{3, 70, 33}})
          .Types({DT_FLOAT, DT_DOUBLE})
          .ToleranceFactor(20)
          .Gradient(0),
  };
}

INSTANTIATE_TEST_SUITE_P(Einsum, OpSweepTest, testing::ValuesIn(EinsumCases()), OpCaseName);

}  // namespace weir
