#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "weir/core/io/file.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/variable_access.h"
#include "weir/kernels/random/random_stream.h"
#include "weir/kernels/random/unigram.h"

// Word2vec. Source: Mikolov et al., "Distributed representations of words and phrases and their
// compositionality", 2013. Skipgram draws TensorFlow's random numbers; those of NegTrain are
// unpredictable in TensorFlow, and the same in each session here.
namespace weir {

namespace {

// ---- Skipgram

struct SkipgramOptions {
  std::string file;
  int batch = 0, window = 5, min_count = 5;
  float subsample = 1e-3f;
};

// Calls f(word) for each word of a text; words are separated by white space.
template <class F>
void ForEachWord(absl::string_view text, const F& f) {
  const auto is_space = [](char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); };
  for (size_t at = 0, end; at < text.size(); at = end) {
    ThrowIfCancelledAt(static_cast<int64_t>(at));
    for (end = at; end < text.size() && !is_space(text[end]);) ++end;
    if (end > at) f(text.substr(at, end - at));
    if (end == at) ++end;
  }
}

// The words of a text as numbers, most frequent first; 0 stands for all rare words.
struct Corpus {
  Tensor words, counts;  // the vocabulary
  std::vector<int32_t> text;

  static absl::StatusOr<Corpus> Read(const SkipgramOptions& o) {
    WEIR_ASSIGN_OR_RETURN(const std::string data, ReadFile(o.file));
    std::unordered_map<std::string_view, int32_t> index;       // survives an allocation that fails
    std::vector<std::pair<absl::string_view, int64_t>> found;  // in the order of the text
    Corpus corpus;
    ForEachWord(data, [&](absl::string_view word) {
      const auto [it, is_new] = index.emplace(std::string_view(word.data(), word.size()),
                                              static_cast<int32_t>(found.size()));
      if (is_new) found.emplace_back(word, 0);
      ++found[it->second].second;
      corpus.text.push_back(it->second);
    });
    const auto size = static_cast<int64_t>(corpus.text.size());
    if (size < int64_t{o.window} * 10 || size == 0 || size > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("The text file ", o.file, " contains too little data: ", size,
                             " words");
    }
    corpus.Order(found, o.min_count);
    return corpus;
  }

 private:
  void Order(const std::vector<std::pair<absl::string_view, int64_t>>& found, int min_count) {
    std::vector<int32_t> order, number(found.size(), 0);
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i].second >= min_count) order.push_back(static_cast<int32_t>(i));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return found[a].second > found[b].second; });
    const auto size = static_cast<int64_t>(order.size()) + 1;
    words = Tensor(DT_STRING, Shape({size}));
    counts = Tensor(DT_INT32, Shape({size}));
    words.data<std::string>()[0] = "UNK";
    int64_t rare = static_cast<int64_t>(text.size());
    for (size_t i = 0; i < order.size(); ++i) {
      const auto& [word, count] = found[order[i]];
      words.data<std::string>()[i + 1] = std::string(word);
      counts.data<int32_t>()[i + 1] = static_cast<int32_t>(count);
      number[order[i]] = static_cast<int32_t>(i + 1);
      rare -= count;
    }
    counts.data<int32_t>()[0] = static_cast<int32_t>(rare);
    for (int32_t& word : text) word = number[word];
  }
};

// A node's position in its text: sentences of words, of which frequent ones are left out at random,
// and for each word the words around it, at a random distance at most. Pairs are made in blocks, so
// that the counters run ahead as TensorFlow's do.
class SkipgramState final : public Resource {
 public:
  SkipgramState(SkipgramOptions options, Corpus corpus)
      : options_(std::move(options)), corpus_(std::move(corpus)) {
    example_ = static_cast<int64_t>(corpus_.text.size());
  }

  std::string Describe() const override { return "the position in text " + options_.file; }

  // Writes all outputs.
  absl::Status Next(KernelContext& c) {
    WEIR_ASSIGN_OR_RETURN(Tensor * examples, c.AllocateOutput(5, Shape({options_.batch})));
    WEIR_ASSIGN_OR_RETURN(Tensor * labels, c.AllocateOutput(6, Shape({options_.batch})));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (block_.empty()) FillBlock();
    for (int i = 0; i < options_.batch; ++i) {
      if (used_ == block_.size()) FillBlock();  // which a cancelled step has left undone
      examples->data<int32_t>()[i] = block_[used_].first;
      labels->data<int32_t>()[i] = block_[used_].second;
      if (++used_ == block_.size()) FillBlock();
    }
    c.SetOutput(0, corpus_.words);
    c.SetOutput(1, corpus_.counts);
    c.SetOutput(2, Tensor::Scalar(static_cast<int64_t>(corpus_.text.size())));
    c.SetOutput(3, Tensor::Scalar(epoch_));
    c.SetOutput(4, Tensor::Scalar(processed_));
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kBlock = 3000;
  static constexpr int kSentence = 1000;

  // A step that is cancelled leaves this function by an exception, and the state as it was but for
  // the draws.
  void FillBlock() {
    std::vector<std::pair<int32_t, int32_t>> block(kBlock);
    for (auto& pair : block) {
      ThrowIfCancelled();
      pair = NextPair();
    }
    block_ = std::move(block);
    used_ = 0;
  }

  void FillSentence() {
    const auto size = static_cast<int64_t>(corpus_.text.size());
    const float scaled = options_.subsample * static_cast<float>(size);
    std::vector<int32_t> sentence;
    while (sentence.size() < kSentence) {
      ThrowIfCancelledAt(example_);
      if (example_ >= size) {
        ++epoch_;
        example_ = 0;
      }
      const int32_t word = corpus_.text[example_];
      // A rare word ends the loop of a tiny `subsample` only by chance; a cancellation always does.
      if (options_.subsample > 0) {
        const auto count = static_cast<float>(corpus_.counts.data<int32_t>()[word]);
        const float keep = (std::sqrt(count / scaled) + 1) * scaled / count;
        if (UnitFloat(words_()) > keep) {
          ++example_;
          continue;
        }
      }
      sentence.push_back(word);
      ++example_;
    }
    sentence_ = std::move(sentence);
  }

  std::pair<int32_t, int32_t> NextPair() {
    while (true) {
      if (label_ >= label_end_) {
        ++processed_;
        if (word_ + 1 >= kSentence) {
          FillSentence();
          word_ = -1;
        }
        ++word_;
        const int distance =
            1 + static_cast<int>(UnbiasedUniform(words_, static_cast<uint32_t>(options_.window)));
        label_ = std::max(0, word_ - distance);
        label_end_ = static_cast<int>(std::min<int64_t>(kSentence, int64_t{word_} + distance + 1));
      }
      if (word_ != label_) break;
      ++label_;
    }
    return {sentence_[word_], sentence_[label_++]};
  }

  const SkipgramOptions options_;
  const Corpus corpus_;
  std::mutex mutex_;
  PhiloxWords words_{Philox()};
  std::vector<std::pair<int32_t, int32_t>> block_;
  size_t used_ = 0;
  std::vector<int32_t> sentence_;
  int word_ = kSentence, label_ = 0, label_end_ = 0;  // positions in the sentence
  int64_t example_ = 0;                               // position in the text
  int32_t epoch_ = -1;
  int64_t processed_ = 0;
};

constexpr char kContainer[] = "word2vec";  // which no reset clears

absl::StatusOr<Kernel> MakeSkipgram(const KernelInit& init) {
  SkipgramOptions o;
  o.file = init.attr<std::string>("filename");
  WEIR_ASSIGN_OR_RETURN(o.batch, NarrowAttr(init.node, "batch_size"));
  WEIR_ASSIGN_OR_RETURN(o.window, NarrowAttr(init.node, "window_size"));
  WEIR_ASSIGN_OR_RETURN(o.min_count, NarrowAttr(init.node, "min_count"));
  o.subsample = init.attr<float>("subsample");
  if (o.batch < 0 || o.window < 1) {
    return InvalidArgument("batch_size must not be negative and window_size must be positive, got ",
                           o.batch, " and ", o.window);
  }
  const std::string name = init.node.name();
  return Kernel([o, name](KernelContext& c) -> absl::Status {
    std::shared_ptr<SkipgramState> state = c.resources().Lookup<SkipgramState>(kContainer, name);
    if (state == nullptr) {
      WEIR_ASSIGN_OR_RETURN(Corpus corpus, Corpus::Read(o));
      state = c.resources().LookupOrCreate<SkipgramState>(
          kContainer, name, [&] { return std::make_shared<SkipgramState>(o, std::move(corpus)); });
    }
    return state->Next(c);
  });
}

// ---- NegTrain

// The inputs but the variables, checked.
struct Pairs {
  absl::Span<const int32_t> examples, labels;
  float rate = 0;
};

absl::StatusOr<Pairs> ReadPairs(const KernelContext& c, int64_t words) {
  const Tensor &examples = c.input(2), &labels = c.input(3), &rate = c.input(4);
  if (examples.rank() != 1)
    return InvalidArgument("Must be a vector: examples has shape ", examples.shape().ToString());
  if (examples.shape() != labels.shape()) {
    return InvalidArgument("examples.shape == labels.shape, got ", examples.shape().ToString(),
                           " and ", labels.shape().ToString());
  }
  if (rate.rank() != 0)
    return InvalidArgument("Must be a scalar: lr has shape ", rate.shape().ToString());
  for (const Tensor* t : {&examples, &labels}) {
    for (const int32_t i : t->flat<int32_t>()) {
      if (i < 0 || i >= words) return InvalidArgument("word ", i, " is not in [0, ", words, ")");
    }
  }
  return Pairs{examples.flat<int32_t>(), labels.flat<int32_t>(), rate.scalar<float>()};
}

// The embeddings of words as inputs and as outputs: matrices of the same shape.
struct Embeddings {
  float *in, *out;
  int64_t dims;
};

// One step of ascent of log sigmoid(+-x), where x = in . out: adds to `out`, and to `delta`, which
// is for `in`.
void Pull(const Embeddings& e, int64_t in, int64_t out, bool positive, float rate, float* delta) {
  const float* const from = e.in + in * e.dims;
  float* const to = e.out + out * e.dims;
  float dot = 0;
  for (int64_t i = 0; i < e.dims; ++i) dot += from[i] * to[i];
  const float slope = positive ? 1 / (std::exp(dot) + 1) : -1 / (std::exp(-dot) + 1);
  const float step = slope * rate;
  for (int64_t i = 0; i < e.dims; ++i) {
    delta[i] += to[i] * step;
    to[i] += from[i] * step;
  }
}

class NegTrain {
 public:
  static absl::StatusOr<Kernel> Make(const KernelInit& init) {
    const auto counts = init.attr<std::vector<int64_t>>("vocab_count");
    std::vector<float> weights;
    for (const int64_t count : counts) {
      if (count < 0) return InvalidArgument("vocab_count must not be negative, but has ", count);
      weights.push_back(std::pow(static_cast<float>(count), 0.75f));
    }
    if (weights.empty()) return InvalidArgument("vocab_count must not be empty");
    WEIR_ASSIGN_OR_RETURN(const int samples, NarrowAttr(init.node, "num_negative_samples"));
    if (samples < 0) return InvalidArgument("num_negative_samples must not be negative");
    auto stream = RandomStream::Named(init.resources, RandomStream::NameOf(init.node),
                                      [] { return Philox(0, 0); });
    auto self = std::make_shared<const NegTrain>(weights, samples, std::move(stream));
    return Kernel([self](KernelContext& c) { return self->Run(c); });
  }

  NegTrain(const std::vector<float>& weights, int samples, std::shared_ptr<RandomStream> stream)
      : words_(static_cast<int64_t>(weights.size())),
        sampler_(weights),
        samples_(samples),
        stream_(std::move(stream)) {}

 private:
  absl::Status Run(KernelContext& c) const {
    WEIR_ASSIGN_OR_RETURN(const LockedVariables variables, LockedVariables::Lock(c, 2, DT_FLOAT));
    for (int i = 0; i < 2; ++i) WEIR_RETURN_IF_ERROR(variables.CheckInitialized(c, i));
    WEIR_ASSIGN_OR_RETURN(Tensor * in, variables.Writable(c, 0));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, variables.Writable(c, 1));
    if (in->rank() != 2)
      return InvalidArgument("Must be a matrix: w_in has shape ", in->shape().ToString());
    if (in->shape() != out->shape()) {
      return InvalidArgument("w_in.shape == w_out.shape, got ", in->shape().ToString(), " and ",
                             out->shape().ToString());
    }
    if (in->dim(0) != words_)
      return InvalidArgument("vocab_size mismatches: ", in->dim(0), " vs. ", words_);
    WEIR_ASSIGN_OR_RETURN(const Pairs pairs, ReadPairs(c, words_));
    const Embeddings e = {in->data<float>(), out->data<float>(), in->dim(1)};
    // Each sample takes two words; TensorFlow reserves eight.
    const uint64_t drawn = pairs.examples.size() * static_cast<uint64_t>(samples_) * 8;
    PhiloxWords words(stream_->Reserve((drawn + 3) / 4, c.step()));
    std::vector<float> delta(e.dims);
    for (size_t i = 0; i < pairs.examples.size(); ++i) {
      const int32_t example = pairs.examples[i], label = pairs.labels[i];
      std::fill(delta.begin(), delta.end(), 0.0f);
      Pull(e, example, label, true, pairs.rate, delta.data());
      for (int k = 0; k < samples_; ++k) {
        ThrowIfCancelledAt(k);
        const int64_t sample = sampler_.Draw(words);
        if (sample != label) Pull(e, example, sample, false, pairs.rate, delta.data());
      }
      for (int64_t d = 0; d < e.dims; ++d) e.in[example * e.dims + d] += delta[d];
    }
    return absl::OkStatus();
  }

  const int64_t words_;
  const AliasSampler sampler_;
  const int samples_;
  const std::shared_ptr<RandomStream> stream_;
};

}  // namespace

void AddWord2vecKernels(KernelRegistry* r) {
  r->Add("Skipgram", kCpu, MakeSkipgram);
  r->Add("NegTrain", kCpu, NegTrain::Make).Writes({0, 1});
}

}  // namespace weir
