#ifndef WEIR_KERNELS_MATH_TILE_PROGRAM_H_
#define WEIR_KERNELS_MATH_TILE_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/runtime/kernel.h"
#include "weir/kernels/lib/broadcast.h"
#include "weir/kernels/lib/non_temporal.h"
#include "weir/kernels/math/elementwise_loops.h"
#include "weir/kernels/math/fused_elementwise.h"
#include "weir/kernels/math/register_fusion.h"

namespace weir {

// The shapes of a TileProgram's arguments and result, and how each op runs on them.
struct TileLayout {
  std::vector<Shape> arguments;
  Shape result;
  Broadcast broadcast;
  std::vector<BinaryLoop::Fn> loops = {};  // by op; null for unary ops
  std::vector<bool> is_expanded = {};      // by argument: it is expanded into a tile buffer

  // An op as a stage of a pipeline.
  struct PipelineStage {
    StageFn fn = nullptr;
    int operand = -1;  // the value that is the other operand, if the op is binary
    int end = 0;       // one past the last op of the pipeline
  };
  std::vector<PipelineStage> stages = {};  // by op
  bool has_pipelines = false;              // some pipeline has more than one op
  // All ops form a single pipeline and no tile is ever buffered, so tiles may be larger than the L1
  // cache allows. (Non-temporal stores then require a result that is aligned to cache lines.)
  bool is_single_pipeline = false;
};

// The definition of a TileProgram, in the form of the attributes of nodes such as
// _FusedElementwise.
struct TileOps {
  DataType type;
  int num_arguments;
  absl::Span<const std::string> ops;
  absl::Span<const int64_t> operands;
  absl::Span<const float> params;
  absl::Span<const int64_t> others_of = {};
  // The registry of user-defined elementwise loops; may be null.
  const KernelRegistry* kernels = nullptr;
};

// The elementwise ops of a node such as _FusedElementwise (ops/nn/nn_fused.cc), computed for tiles
// of a few hundred elements. The results are those of the last op and of the ops that `others_of`
// names. Immutable.
class TileProgram {
 public:
  // Returns INVALID_ARGUMENT or UNIMPLEMENTED for ops that do not form a valid program.
  static absl::StatusOr<std::shared_ptr<const TileProgram>> Create(const TileOps& ops);

  // Returns null if a shape is unknown, the shapes are incompatible, or the result would be too
  // large.
  std::shared_ptr<const TileLayout> MakeLayout(absl::Span<const Shape> shapes) const;
  // Returns `planned` if it was made for these shapes (or those of the context's inputs), otherwise
  // a new layout, which `*made` owns. Returns INVALID_ARGUMENT if the shapes are incompatible.
  absl::StatusOr<const TileLayout*> LayoutFor(absl::Span<const Shape> shapes,
                                              const TileLayout* planned,
                                              std::shared_ptr<const TileLayout>* made) const;
  absl::StatusOr<const TileLayout*> LayoutFor(const KernelContext& c, const TileLayout* planned,
                                              std::shared_ptr<const TileLayout>* made) const;

  // Returns the number of elements of a tile: a multiple of 64, at most kMaxTile. Results that are
  // written with non-temporal stores (TileRunner) need buffers too. A layout that is a single
  // pipeline may use tiles of kPipelineTile instead.
  int64_t TileSize(const TileLayout& layout, bool non_temporal = false) const;
  static constexpr int64_t kPipelineTile = 8192;
  // Tiles are aligned to cache lines if the result is.
  static_assert(kPipelineTile % non_temporal::kLine == 0);
  size_t element_size() const { return size_; }
  int num_arguments() const { return num_arguments_; }
  int num_results() const { return num_results_; }
  double cost() const { return cost_; }  // nanoseconds per element

  static constexpr int64_t kMaxTile = 1024;
  // The maximum size of all buffers of a tile together: half of the L1 cache. The other half is for
  // the arguments.
  static constexpr size_t kMaxTileBytes = 24 * 1024;

 private:
  friend class TileRunner;

  struct Op {
    const UnaryLoop* unary = nullptr;  // exactly one of these two is set
    const BinaryLoop* binary = nullptr;
    double p = 0;
    int a = 0, b = 0;  // operands, as values: the arguments, then the results of the ops
    int result = -1;   // the index of the program's result, -1 if it is not one
    int buffer = 0;  // holds the op's result unless it is written to the program's result directly
  };

  void AssignBuffers(absl::Span<const int64_t> operands, absl::Span<const int64_t> others_of);
  void SelectLoops(TileLayout* layout) const;
  void FormPipelines(TileLayout* layout) const;
  static bool IsScalar(const TileLayout& layout, int value);
  // Returns the operand that a pipeline beginning with `op` loads.
  static int FirstOperand(const TileLayout& layout, const Op& op);
  // Returns `op` as a stage of a pipeline that passes it `value` in registers.
  static TileLayout::PipelineStage StageFor(const TileLayout& layout, const Op& op, int value);

  struct UserUnaryLoop;
  struct UserBinaryLoop;

  int num_arguments_ = 0;
  std::vector<std::shared_ptr<const void>> user_loops_;  // owned; ops_ point to them
  size_t size_ = 0;
  std::vector<Op> ops_;
  std::vector<int> last_use_;                          // by value: the last op that reads it
  const PipelineBackend* pipeline_backend_ = nullptr;  // null if this type has no pipelines
  int num_results_ = 1;
  int num_buffers_ = 0;
  double cost_ = 0;
};

// One run of a program, on one thread. Owns the buffers of intermediate values.
class TileRunner {
 public:
  // For the values of ops.
  static constexpr int kMaxBuffers = 24;

  // Runs on these arguments, in tiles of at most `most` elements. With `non_temporal`, results are
  // written with non-temporal stores (non_temporal.h).
  TileRunner(const TileProgram& program, const TileLayout& layout,
             absl::FunctionRef<const void*(int)> argument, int64_t most, bool non_temporal = false);

  // Writes elements [begin, begin + n) of result k to `to[k]`, which may be the same elements of an
  // argument of the result's shape. Non-temporal stores are complete only after Finish.
  void Run(int64_t begin, int64_t n, absl::Span<char* const> to);
  void Finish();

 private:
  // A tile of a result and its destination.
  struct DeferredStore {
    const char* from;
    char* to;
  };

  bool IsNeededAfter(int op, const char* place) const;
  char* DestinationOf(int op, bool ends_pipeline, absl::Span<char* const> to);
  void RunTile(int64_t begin, int64_t n, bool pipelines, absl::Span<char* const> to);
  void RunOp(int op, int64_t n, absl::Span<char* const> to);
  void RunPipeline(int begin, int end, int64_t n, absl::Span<char* const> to);
  char* Buffer(int i) { return scratch_ + static_cast<size_t>(i) * buffer_bytes_; }
  void Flush(size_t bytes);

  static constexpr int64_t kMinTile = 64;
  friend class TileProgram;

  const TileProgram& program_;
  const TileLayout& layout_;
  const bool non_temporal_;
  const size_t buffer_bytes_;
  // Results of this tile that are still in a buffer.
  DeferredStore deferred_[kMaxFusedResults];
  size_t num_deferred_ = 0;
  // Results of the previous tile, of flush_bytes_ each, that are being written to memory.
  DeferredStore flushing_[kMaxFusedResults];
  size_t num_flushing_ = 0, flush_bytes_ = 0, flushed_bytes_ = 0;
  // The first result buffer of this tile and of the previous one.
  int result_buffers_ = 0, flushing_buffers_ = 0;
  const void* arguments_[kMaxFusedArguments];
  const void* values_[kMaxFusedArguments + kMaxFusedOps];
  // Null if the argument is contiguous like the result or is a scalar operand.
  char* expanded_[kMaxFusedArguments];
  alignas(64) char scratch_[kMinTile * 8 *
                            static_cast<size_t>(kMaxBuffers + kMaxFusedArguments +
                                                2 * kMaxFusedResults)];
};

// Return the loop of an op that can be part of a TileProgram, or null if it cannot.
const UnaryLoop* FusableUnary(absl::string_view op, DataType type);
const BinaryLoop* FusableBinary(absl::string_view op, DataType type);

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_TILE_PROGRAM_H_
