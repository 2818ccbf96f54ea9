#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "absl/numeric/int128.h"
#include "weir/kernels/array/in_top_k.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/integer_bits.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/scalar_math.h"

// The largest elements of rows, and whether a given element is among them. tf.sort and tf.argsort
// are TopKV2 with the length of the rows for k.
//
// Larger values come first, equal values are in order of index, and a NaN is larger than any
// number (in TensorFlow the places of NaNs depend on k and on where they were). An element and its
// index become one integer, an entry, which is smaller the earlier the element comes: above is a
// key with the order of the values (the bits of positive floats are ordered like integers, those of
// negative ones in reverse), below is the index. So no comparison reads the row, nor does it treat
// NaNs, and no two entries are equal.
//
// If k is small beside the row, candidates are collected in a buffer of 2 k entries. Whenever it is
// full, a selection (std::nth_element) keeps the first k of them. The last of these is the bound:
// nearly all later elements are rejected by one comparison with its value. Even in an ascending
// row, where none is rejected, an element costs a few operations, since a selection is linear and
// takes in k new ones. (A heap of k entries took twice as long as sorting such a row: each of its
// log k steps is a cache miss.) Otherwise the whole row is sorted, from the least significant byte
// of the keys to the most significant one (Knuth, "Sorting and searching", 5.2.5). A pass counts
// how often each value of the byte occurs, which tells where the entries with it begin, and moves
// every entry there. Entries with the same byte stay in their order, so the earlier passes and the
// order of indices hold. A pass takes about 2 ns for an entry, without a branch that depends on the
// data: the comparisons of std::sort, half of which are mispredicted, take several times as long as
// four passes. One loop counts for all passes; bytes that all entries share, as in small integers,
// need none.
namespace weir {

namespace {

// The key of a value, and the element type whose bits it orders: narrow floats have those of float.
template <class T>
using Ordered = std::conditional_t<kIsNarrowFloat<T>, float, T>;
template <class T>
using KeyOf = UnsignedOf<sizeof(Ordered<T>)>;

// Returns an unsigned integer that is smaller, the larger the value is. Equal values have equal
// keys; what the thread's floating-point mode treats as zero is equal to zero.
template <class T>
KeyOf<T> DescendingKey(const T& value) {
  using U = KeyOf<T>;
  const auto v = static_cast<Ordered<T>>(value);
  constexpr U kTopBit = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  if constexpr (std::is_integral_v<T>) {
    return static_cast<U>(~(static_cast<U>(v) ^ (std::is_signed_v<T> ? kTopBit : U{0})));
  } else {
    const U bits = v == 0 ? 0 : std::bit_cast<U>(v);
    const U key = bits & kTopBit ? bits : ~(bits | kTopBit);
    return std::isnan(v) ? U{0} : key;
  }
}

template <class T>
using EntryOf = std::conditional_t<sizeof(KeyOf<T>) == 8, absl::uint128, uint64_t>;

template <class T>
EntryOf<T> MakeEntry(const T* row, int64_t i) {
  return static_cast<EntryOf<T>>(DescendingKey(row[i])) << 32 | static_cast<uint32_t>(i);
}
template <class Entry>
int64_t IndexOf(const Entry& entry) {
  return static_cast<int64_t>(static_cast<uint32_t>(entry));
}
// Byte `i` of the key, from the least significant one.
template <class Entry>
uint8_t KeyByte(const Entry& entry, int i) {
  return static_cast<uint8_t>(entry >> (32 + 8 * i));
}

// Sorts entries whose keys have kBytes bytes; `scratch` is as long as they are.
template <int kBytes, class Entry>
void SortEntries(std::vector<Entry>* entries, std::vector<Entry>* scratch) {
  const int64_t n = static_cast<int64_t>(entries->size());
  ThrowIfCancelled();
  if (n < 32 * kBytes) {
    std::sort(entries->begin(), entries->end());
    return;
  }
  std::array<std::array<uint32_t, 256>, kBytes> counts{};
  for (const auto [begin, end] : CancellableBlocks(n)) {
    for (int64_t i = begin; i < end; ++i) {
      for (int k = 0; k < kBytes; ++k) ++counts[k][KeyByte((*entries)[i], k)];
    }
  }
  for (int k = 0; k < kBytes; ++k) {
    std::array<uint32_t, 256>& next = counts[k];
    if (next[KeyByte(entries->front(), k)] == n) continue;
    uint32_t first = 0;
    for (uint32_t& count : next) first += std::exchange(count, first);
    const Entry* const from = entries->data();
    Entry* const to = scratch->data();
    for (const auto [begin, end] : CancellableBlocks(n)) {
      for (int64_t i = begin; i < end; ++i) to[next[KeyByte(from[i], k)]++] = from[i];
    }
    entries->swap(*scratch);
  }
}

// Entries of the first elements of a row, and memory that rows share.
template <class T>
struct TopOfRow {
  std::vector<EntryOf<T>> entries, scratch;

  // Makes the entries begin with those of the first k >= 1 of n elements, in order.
  void Find(const T* row, int64_t n, int64_t k) {
    if (k <= n / 16) {
      KeepFew(row, n, k);
      return;
    }
    entries.resize(static_cast<size_t>(n));
    scratch.resize(static_cast<size_t>(n));
    for (const auto [begin, end] : CancellableBlocks(n)) {
      for (int64_t i = begin; i < end; ++i) entries[i] = MakeEntry(row, i);
    }
    SortEntries<sizeof(KeyOf<T>)>(&entries, &scratch);
  }

 private:
  void KeepFew(const T* row, int64_t n, int64_t k) {
    const int64_t capacity = std::min(n, std::max<int64_t>(2 * k, 64));
    entries.clear();
    for (int64_t i = 0; i < capacity; ++i) entries.push_back(MakeEntry(row, i));
    EntryOf<T> last;
    Wide<T> bound;
    const auto select = [&] {
      const auto kth = entries.begin() + (k - 1);
      std::nth_element(entries.begin(), kth, entries.end());
      last = *kth;
      bound = static_cast<Wide<T>>(row[IndexOf(last)]);
      entries.resize(static_cast<size_t>(k));
    };
    select();
    for (const auto [begin, end] : CancellableBlocks(n)) {
      for (int64_t i = std::max(begin, capacity); i < end; ++i) {
        if (static_cast<Wide<T>>(row[i]) <= bound) continue;
        const EntryOf<T> entry = MakeEntry(row, i);
        if (!(entry < last)) continue;  // one of them is a NaN
        entries.push_back(entry);
        if (static_cast<int64_t>(entries.size()) == capacity) select();
      }
    }
    std::sort(entries.begin(), entries.end());
  }
};

template <class T>
absl::Status TopK(KernelContext& c, int64_t k) {
  const Tensor& in = c.input(0);
  const int64_t n = in.dim(-1);
  Shape shape = in.shape();
  shape.set_dim(shape.rank() - 1, k);
  WEIR_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(0, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(1, shape));
  if (values->num_elements() == 0) return absl::OkStatus();
  const int64_t rows = in.num_elements() / n;
  c.pool().ParallelFor(rows, 5.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
    TopOfRow<T> top;
    for (int64_t r = begin; r < end; ++r) {
      const T* row = in.data<T>() + r * n;
      top.Find(row, n, k);
      T* const to = values->data<T>() + r * k;
      for (int64_t i = 0; i < k; ++i) to[i] = row[IndexOf(top.entries[i])];
      DispatchType(indices->dtype(), List<int16_t, int32_t, int64_t>{}, [&]<class Index>() {
        Index* const at = indices->data<Index>() + r * k;
        for (int64_t i = 0; i < k; ++i) at[i] = static_cast<Index>(IndexOf(top.entries[i]));
      });
    }
  });
  return absl::OkStatus();
}

absl::Status CheckTopK(const Tensor& in, int64_t k, DataType index_type) {
  if (k < 0) return InvalidArgument("Need k >= 0, got ", k);
  if (in.rank() < 1)
    return InvalidArgument("input must be >= 1-D, got shape ", in.shape().ToString());
  const int64_t n = in.dim(-1);
  if (n < k) return InvalidArgument("input must have at least k columns. Had ", n, ", needed ", k);
  const int64_t limit = index_type == DT_INT16 ? std::numeric_limits<int16_t>::max()
                                               : std::numeric_limits<int32_t>::max();
  if (n > limit)
    return InvalidArgument("rows of ", n, " elements are too long for indices of type ",
                           DataTypeName(index_type));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeTopK(const KernelInit& init) {
  const DataType type = init.attr<DataType>("T");
  const DataType index_type = init.node.attr_or<DataType>("index_type", DT_INT32);
  const int64_t k_attr = init.node.attr_or<int64_t>("k", 0);
  Kernel kernel;
  const bool found = DispatchType(type, RealNumbers{}, [&]<class T>() {
    kernel = Kernel([k_attr, index_type](KernelContext& c) -> absl::Status {
      int64_t k = k_attr;
      if (c.num_inputs() == 2) {
        WEIR_ASSIGN_OR_RETURN(k, ReadInt(c.input(1), "k"));
      }
      WEIR_RETURN_IF_ERROR(CheckTopK(c.input(0), k, index_type));
      return TopK<T>(c, k);
    });
  });
  if (!found) return Unimplemented("elements of type ", DataTypeName(type), " cannot be ordered");
  return kernel;
}

// An element is among the k largest if fewer than k elements are larger. A target that is out of
// range or not finite never is.
absl::Status InTopK(KernelContext& c, int64_t k) {
  const Tensor &predictions = c.input(0), &targets = c.input(1);
  if (predictions.rank() != 2) {
    return InvalidArgument("predictions must be 2-dimensional, got shape ",
                           predictions.shape().ToString());
  }
  if (targets.rank() != 1)
    return InvalidArgument("targets must be 1-dimensional, got ", targets.shape().ToString());
  const int64_t rows = predictions.dim(0), classes = predictions.dim(1);
  if (targets.dim(0) != rows) {
    return InvalidArgument("First dimension of predictions ", rows,
                           " must match length of targets ", targets.dim(0));
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({rows})));
  c.pool().ParallelFor(rows, 3 + 0.1 * static_cast<double>(classes), [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      const float* row = predictions.data<float>() + r * classes;
      const int64_t target = targets.IntAt(r);
      out->data<bool>()[r] = target >= 0 && target < classes && std::isfinite(row[target]) &&
                             HasFewLarger(row, classes, row[target], k);
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeInTopK(const KernelInit& init) {
  const int64_t k_attr = init.node.attr_or<int64_t>("k", 0);
  return Kernel([k_attr](KernelContext& c) -> absl::Status {
    int64_t k = k_attr;
    if (c.num_inputs() == 3) {
      WEIR_ASSIGN_OR_RETURN(k, ReadInt(c.input(2), "k"));
    }
    return InTopK(c, k);
  });
}

}  // namespace

void AddTopKCpu(KernelRegistry* r) {
  r->Add("TopK", kCpu, MakeTopK);
  r->Add("TopKV2", kCpu, MakeTopK).HostArgs({"k"});
  r->Add("InTopK", kCpu, MakeInTopK);
  r->Add("InTopKV2", kCpu, MakeInTopK).HostArgs({"k"});
}

}  // namespace weir
