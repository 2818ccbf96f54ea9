#include "weir/kernels/random/unigram.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "weir/kernels/lib/text_lines.h"

namespace weir {

CountedClasses::CountedClasses(int64_t n) : n_(n), total_(n) {
  while ((int64_t{1} << levels_) < n) ++levels_;
}

int64_t CountedClasses::Sum(int level, int64_t index) const {
  const int64_t begin = index << level, end = (index + 1) << level;
  const auto it = added_.find(Key(level, index));
  const int64_t first = std::max<int64_t>(0, std::min(end, n_) - begin);
  return first + (it == added_.end() ? 0 : it->second);
}

void CountedClasses::Increment(int64_t value) {
  ++total_;
  for (int level = 0; level <= levels_; ++level) ++added_[Key(level, value >> level)];
}

int64_t CountedClasses::Pick(PhiloxWords& words) const {
  int64_t position = UnbiasedUniform<uint32_t>(words, static_cast<uint32_t>(total_));
  int64_t index = 0;
  for (int level = levels_ - 1; level >= 0; --level) {
    index *= 2;
    const int64_t left = Sum(level, index);
    if (position < left) continue;
    position -= left;
    ++index;
  }
  return index;
}

AliasSampler::AliasSampler(const std::vector<float>& weights) : shares_(weights.size(), {0, -1}) {
  double sum = 0;
  for (const float w : weights) sum += w;
  std::vector<double> share(weights.size());
  std::vector<int32_t> common, rare;
  for (size_t i = 0; i < weights.size(); ++i) {
    ThrowIfCancelled();
    share[i] = weights[i] * static_cast<double>(weights.size()) / sum;
    (share[i] < 1 ? rare : common).push_back(static_cast<int32_t>(i));
  }
  while (!common.empty() && !rare.empty()) {
    const int32_t giver = common.back(), taker = rare.back();
    common.pop_back();
    rare.pop_back();
    shares_[taker].second = giver;
    share[giver] -= 1 - share[taker];
    (share[giver] < 1 ? rare : common).push_back(giver);
  }
  for (size_t i = 0; i < shares_.size(); ++i) shares_[i].first = static_cast<float>(share[i]);
  // The remaining classes have a share of 1, except for rounding.
  for (const std::vector<int32_t>* rest : {&common, &rare}) {
    for (const int32_t i : *rest) shares_[i] = {1, i};
  }
}

int64_t AliasSampler::Draw(PhiloxWords& words) const {
  const float r = UnitFloat(words());
  const uint32_t i = UnbiasedUniform<uint32_t>(words, static_cast<uint32_t>(shares_.size()));
  return r < shares_[i].first ? static_cast<int64_t>(i) : shares_[i].second;
}

namespace {

// Reads the number after the last comma of each line.
absl::StatusOr<std::vector<float>> ReadVocabulary(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> lines, ReadLines(path));
  std::vector<float> weights;
  for (const std::string& line : lines) {
    float weight = 0;
    if (!absl::SimpleAtof(line.substr(line.rfind(',') + 1), &weight))
      return InvalidArgument("Wrong vocabulary format at line: ", line);
    weights.push_back(weight);
  }
  return weights;
}

}  // namespace

absl::StatusOr<UnigramWeights> UnigramWeights::Read(const KernelInit& init) {
  const std::string path = init.attr<std::string>("vocab_file");
  std::vector<float> given = init.attr<std::vector<float>>("unigrams");
  if (path.empty() && given.empty())
    return InvalidArgument("Must provide either vocab_file or unigrams.");
  if (!path.empty() && !given.empty())
    return InvalidArgument("Must only provide one of vocab_file and unigrams.");
  if (given.empty()) {
    WEIR_ASSIGN_OR_RETURN(given, ReadVocabulary(path));
  }
  const int64_t range = init.attr<int64_t>("range_max"), shards = init.attr<int64_t>("num_shards"),
                shard = init.attr<int64_t>("shard");
  const int64_t reserved = std::max<int64_t>(0, init.attr<int64_t>("num_reserved_ids"));
  const float distortion = init.attr<float>("distortion");
  UnigramWeights out;
  // Reserved classes are never drawn; a shard has every num_shards-th class.
  const int64_t own = reserved > shard ? (reserved - shard - 1) / shards + 1 : 0;
  if (own > range) {
    return InvalidArgument("range is ", range, " must be equal to weights size, but ", own,
                           " ids are reserved");
  }
  out.weights.resize(own);
  for (size_t i = 0; i < given.size(); ++i) {
    ThrowIfCancelled();
    // Counts from the reserved classes of this shard, as TensorFlow does.
    if ((own + static_cast<int64_t>(i)) % shards != shard) continue;
    out.weights.push_back(std::pow(given[i], distortion));
    out.total += out.weights.back();
  }
  if (static_cast<int64_t>(out.weights.size()) != range) {
    return InvalidArgument("range is ", range, " must be equal to weights size  ",
                           out.weights.size());
  }
  return out;
}

}  // namespace weir
