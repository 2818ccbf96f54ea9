#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/registry.h"

// The ops of TensorFlow's first word2vec tutorial, for its graphs.
namespace weir {

namespace {

absl::Status SkipgramShape(ShapeContext& c) {
  const auto batch = c.attr<int64_t>("batch_size");
  if (batch < 0) return InvalidArgument("batch_size must not be negative, got ", batch);
  c.set_output(0, Shape({Shape::kUnknown}));
  c.set_output(1, Shape({Shape::kUnknown}));
  for (int i = 2; i < 5; ++i) c.set_output(i, Shape());
  c.set_output(5, Shape({batch}));
  c.set_output(6, Shape({batch}));
  return absl::OkStatus();
}

constexpr char kReason[] =
    "Moving word2vec into tensorflow_models/tutorials and deprecating its ops here as a result";

}  // namespace

void AddWord2vecOps(OpRegistry* ops) {
  ops->Add(OpSpec("Skipgram")
               .Out("vocab_word: string, vocab_freq: int32, words_per_epoch: int64, "
                    "current_epoch: int32, total_words_processed: int64, examples: int32, "
                    "labels: int32")
               .Attr("filename: string")
               .Attr("batch_size: int")
               .Attr("window_size: int = 5")
               .Attr("min_count: int = 5")
               .Attr("subsample: float = 0.001")
               .Stateful()
               .Deprecated(19, kReason)
               .InferShape(SkipgramShape)
               .NotDifferentiable()
               .Doc("Draws pairs of near words from a text, and returns its vocabulary."));
  ops->Add(OpSpec("NegTrain")
               .In("w_in: Ref(float), w_out: Ref(float), examples: int32, labels: int32, lr: float")
               .Attr("vocab_count: list(int)")
               .Attr("num_negative_samples: int")
               .Stateful()
               .Deprecated(19, kReason)
               .Uses(VariableUse::kUpdates)
               .InferShape(NoOutputs)
               .NotDifferentiable()
               .Doc("Trains embeddings of words with negative sampling: one step for each pair."));
}

}  // namespace weir
