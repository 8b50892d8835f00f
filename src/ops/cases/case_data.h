#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "ops/cases/buffers.h"
#include "ops/cases/op_cases.h"

namespace crest::ops {

/// A CaseInstance made of buffers and a function. Pointers stay valid for its life.
class CaseData final : public CaseInstance {
 public:
  explicit CaseData(uint64_t seed) : random_(seed) {}

  CaseRandom& random() { return random_; }
  /// Random values that the operator reads.
  float* input(int64_t count, float scale = 1.0f) {
    auto& buffer = inputs_.emplace_back(count);
    for (int64_t i = 0; i < count; ++i) buffer[i] = random_.normal() * scale;
    return buffer.data();
  }
  float* uniform_input(int64_t count, float low, float high) {
    auto& buffer = inputs_.emplace_back(count);
    for (int64_t i = 0; i < count; ++i) buffer[i] = random_.uniform(low, high);
    return buffer.data();
  }
  /// Written by the operator, poisoned before.
  float* output(int64_t count) { return outputs_.emplace_back(count, std::vector<float>()).buffer.data(); }
  /// Read and written.
  float* in_out(int64_t count, float scale = 1.0f) {
    std::vector<float> initial(static_cast<size_t>(count));
    for (auto& value : initial) value = random_.normal() * scale;
    return outputs_.emplace_back(count, std::move(initial)).buffer.data();
  }
  template <typename T>
  T* keep(T value) {
    auto holder = std::make_shared<T>(std::move(value));
    kept_.push_back(holder);
    return holder.get();
  }
  /// Values computed before the comparison, for example a cache read back.
  void on_run(std::function<Status(Context&)> run) { run_ = std::move(run); }

  void reset() override {
    for (auto& output : outputs_) {
      output.buffer.poison();
      if (!output.initial.empty()) output.buffer.fill(output.initial);
    }
  }
  Status run(Context& context) override { return run_(context); }
  Result<std::vector<float>> outputs() const override;

 private:
  struct Output {
    Output(int64_t count, std::vector<float> values) : buffer(count), initial(std::move(values)) {}
    Guarded<float> buffer;
    std::vector<float> initial;
  };
  CaseRandom random_;
  std::deque<Guarded<float>> inputs_;
  std::deque<Output> outputs_;
  std::vector<std::shared_ptr<void>> kept_;
  std::function<Status(Context&)> run_;
};

}  // namespace crest::ops
