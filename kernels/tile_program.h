#ifndef WEIR_KERNELS_TILE_PROGRAM_H_
#define WEIR_KERNELS_TILE_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/kernel.h"
#include "weir/kernels/broadcast.h"
#include "weir/kernels/register_fusion.h"
#include "weir/kernels/fused_elementwise.h"
#include "weir/kernels/elementwise_loops.h"
#include "weir/kernels/non_temporal.h"

namespace weir {

// How the arguments of a TileProgram lie over its result.
struct TileLayout {
  std::vector<Shape> arguments;
  Shape result;
  Broadcast broadcast;
  std::vector<BinaryLoop::Fn> calls = {};  // of steps with two arguments
  std::vector<bool> spelled_out = {};      // by argument: it is copied for each tile, or repeated

  // A step as a part of a pipeline: what it takes beside the vectors that are handed on.
  struct StageUse {
    StageFn stage = nullptr;
    int other = -1;  // a value, if the op has two arguments
    int end = 0;     // the step behind the last one of the pipeline
  };
  std::vector<StageUse> stages = {};  // by step
  bool has_pipelines = false;            // of more than one step
  // All steps are one, and nothing of whole tiles is ever in a buffer, so that they may be larger.
  // (What is stored non-temporally has to lie at lines then.)
  bool is_one_pipeline = false;
};

// What a TileProgram is made of, as nodes like _FusedElementwise have it in their attributes.
struct TileOps {
  DataType type;
  int num_arguments;
  absl::Span<const std::string> ops;
  absl::Span<const int64_t> operands;
  absl::Span<const float> params;
  absl::Span<const int64_t> others_of = {};
};

// The element-wise ops of a node like _FusedElementwise (ops/nn_fused.cc), to be computed for some
// hundred elements at a time. Its results are the last op's, and those of the ops that `others_of`
// names. Immutable.
class TileProgram {
 public:
  // INVALID_ARGUMENT or UNIMPLEMENTED for what makes no program.
  static absl::StatusOr<std::shared_ptr<const TileProgram>> Read(const TileOps& ops);

  // Null where a shape is not known, or they do not fit, or the result would be too large.
  std::shared_ptr<const TileLayout> Plan(absl::Span<const Shape> shapes) const;
  // `planned` if that is for these shapes, or those of the context's inputs, else a new one, which
  // `*made` owns. INVALID_ARGUMENT if they do not fit.
  absl::StatusOr<const TileLayout*> LayoutFor(absl::Span<const Shape> shapes,
                                              const TileLayout* planned,
                                              std::shared_ptr<const TileLayout>* made) const;
  absl::StatusOr<const TileLayout*> LayoutFor(const KernelContext& c, const TileLayout* planned,
                                              std::shared_ptr<const TileLayout>* made) const;

  // Elements that go through the program at once: a multiple of 64, at most kLargestTile. Results
  // that are stored non-temporally (TileRunner) need buffers too. A layout that is one pipeline may be given tiles
  // of kPipelineTile instead.
  int64_t TileSize(const TileLayout& layout, bool streams = false) const;
  static constexpr int64_t kPipelineTile = 8192;
  static_assert(kPipelineTile % non_temporal::kLine == 0);  // tiles begin at lines if the result does
  size_t element_size() const { return size_; }
  int num_arguments() const { return num_arguments_; }
  int num_results() const { return num_results_; }
  double cost() const { return cost_; }  // nanoseconds an element

  static constexpr int64_t kLargestTile = 1024;
  // Bytes of all buffers of a tile, at most: half of the first-level cache, the rest of which is
  // for the arguments.
  static constexpr size_t kMostCached = 24 * 1024;

 private:
  friend class TileRunner;

  struct Step {
    const UnaryLoop* unary = nullptr;  // or
    const BinaryLoop* binary = nullptr;
    double p = 0;
    int a = 0, b = 0;  // values: the arguments, then the results of the steps
    int result = -1;   // of the program, if it is one
    int buffer = 0;    // where the step's result lies, unless it can go to where the program's does
  };

  void AssignBuffers();
  void ChooseCalls(TileLayout* layout) const;
  void FindChains(TileLayout* layout) const;
  static bool IsNumber(const TileLayout& layout, int value);
  // The operand that a pipeline which begins with the step loads.
  static int FirstOf(const TileLayout& layout, const Step& step);
  // The step as a part of a pipeline that hands it operand `value`.
  static TileLayout::StageUse StageOf(const TileLayout& layout, const Step& step, int value);

  int num_arguments_ = 0;
  size_t size_ = 0;
  std::vector<Step> steps_;
  std::vector<int> last_use_;              // by value: a step
  const PipelineEnds* pipeline_ends_ = nullptr;  // null: no pipelines of this type
  int num_results_ = 1;
  int num_buffers_ = 0;
  double cost_ = 0;
};

// Runs a program, for one thread: has the buffers for what lies between two steps.
class TileRunner {
 public:
  // On these arguments, in tiles of at most `most` elements. With `streams`, results are written
  // past the caches (non_temporal.h).
  TileRunner(const TileProgram& program, const TileLayout& layout,
             absl::FunctionRef<const void*(int)> argument, int64_t most, bool streams = false);

  // Elements [begin, begin + n) of result k go to `to[k]`, which may be the same elements of an
  // argument of the result's shape. What is stored non-temporally is there after Finish.
  void Run(int64_t begin, int64_t n, absl::Span<char* const> to);
  void Finish();

 private:
  // A tile of a result, and where it is to go.
  struct Kept {
    const char* from;
    char* to;
  };

  bool IsNeededAfter(int step, const char* place) const;
  char* PlaceOf(int step, bool ends, absl::Span<char* const> to);
  void RunTile(int64_t begin, int64_t n, bool pipelines, absl::Span<char* const> to);
  void RunStep(int step, int64_t n, absl::Span<char* const> to);
  void RunChain(int begin, int end, int64_t n, absl::Span<char* const> to);
  char* Buffer(int i) { return scratch_ + static_cast<size_t>(i) * buffer_bytes_; }
  void Stream(size_t bytes);

  static constexpr int kMostBuffers = 24;
  static constexpr int64_t kSmallestTile = 64;
  friend class TileProgram;

  const TileProgram& program_;
  const TileLayout& layout_;
  const bool streams_;
  const size_t buffer_bytes_;
  // This tile's results that do not lie yet where they are to go.
  Kept made_[kMostFusedResults];
  size_t num_made_ = 0;
  // The last tile's, of kept_bytes_ each, which are on their way to memory.
  Kept kept_[kMostFusedResults];
  size_t num_kept_ = 0, kept_bytes_ = 0, streamed_ = 0;
  int own_ = 0, others_ = 0;  // the first of this tile's buffers of results, and of the last one's
  const void* arguments_[kMostFusedArguments];
  const void* values_[kMostFusedArguments + kMostFusedOps];
  char* spelled_out_[kMostFusedArguments];  // null: the argument lies as the result does, or is a
                                            // number that is taken as such
  alignas(64) char scratch_[kSmallestTile * 8 *
                            static_cast<size_t>(kMostBuffers + kMostFusedArguments +
                                                2 * kMostFusedResults)];
};

// What a step can be; null for ops that cannot.
const UnaryLoop* FusableUnary(absl::string_view op, DataType type);
const BinaryLoop* FusableBinary(absl::string_view op, DataType type);

}  // namespace weir

#endif  // WEIR_KERNELS_TILE_PROGRAM_H_
