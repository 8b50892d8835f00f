#include "ops/context.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/checked.h"
#include "core/env.h"
#include "ops/registry.h"

namespace crest::ops {
namespace {

constexpr int64_t kSmallestBlock = int64_t{1} << 20;

std::vector<std::string> split_names(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) names.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

}  // namespace

void Workspace::Free::operator()(std::byte* pointer) const { std::free(pointer); }

Status Workspace::add_block(int64_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(bytes)));
  if (memory == nullptr) {
    return make_error(ErrorCode::kOutOfMemory, "workspace: the system refused {} MiB beside the {} MiB in use",
                      bytes >> 20, in_use_ >> 20);
  }
  blocks_.push_back({std::unique_ptr<std::byte, Free>(memory), bytes});
  return {};
}

Result<std::byte*> Workspace::allocate_bytes(int64_t count, int64_t element_bytes) {
  CREST_CHECK(count >= 0, "workspace: negative count {}", count);
  const auto wanted = core::checked_mul(static_cast<uint64_t>(count), static_cast<uint64_t>(element_bytes));
  const auto rounded = wanted ? core::checked_align_up(std::max<uint64_t>(*wanted, 1), kAlignment) : std::nullopt;
  if (!rounded || *rounded > uint64_t{1} << 62) {
    return make_error(ErrorCode::kOutOfMemory, "workspace: {} x {} bytes do not fit in memory", count, element_bytes);
  }
  const auto bytes = static_cast<int64_t>(*rounded);
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].size) {
    // Only blocks behind the current one are free: they can be dropped when too small.
    blocks_.resize(block_ + 1);
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) CREST_RETURN_IF_ERROR(add_block(std::max({bytes, kSmallestBlock, in_use_})));
  std::byte* result = blocks_[block_].data.get() + used_;
  used_ += bytes;
  in_use_ += bytes;
  peak_ = std::max(peak_, in_use_);
  if (poison_) std::memset(result, 0xff, static_cast<size_t>(bytes));
  return result;
}

void Workspace::release(size_t block, int64_t used, int64_t in_use) {
  block_ = block;
  used_ = used;
  in_use_ = in_use;
  // Nothing is in use: one block of the whole size replaces several, so that the next round needs no new one.
  if (in_use_ == 0 && blocks_.size() > 1) {
    int64_t total = 0;
    for (const auto& b : blocks_) total += b.size;
    blocks_.clear();
    block_ = 0;
    used_ = 0;
    // A refusal is reported by the next allocation that needs the memory.
    if (!add_block(total).ok()) blocks_.clear();
  }
}

std::string_view name(ChoiceReason reason) {
  switch (reason) {
    case ChoiceReason::kForced:
      return "forced";
    case ChoiceReason::kTuned:
      return "tuned";
    case ChoiceReason::kPriority:
      return "priority";
    case ChoiceReason::kReference:
      return "reference";
  }
  return "?";
}

void KernelLog::record(std::string_view op, std::string_view kernel, std::string_view detail, ChoiceReason reason,
                       int64_t nanoseconds, const KernelWork& work) {
  auto& entry = entries_[Key{std::string(op), std::string(kernel), std::string(detail), reason}];
  ++entry.calls;
  entry.nanoseconds += nanoseconds;
  entry.work.weight_bytes += work.weight_bytes;
  entry.work.operations += work.operations;
}

KernelWork KernelLog::total_work() const {
  KernelWork total;
  for (const auto& [key, entry] : entries_) {
    total.weight_bytes += entry.work.weight_bytes;
    total.operations += entry.work.operations;
  }
  return total;
}

void KernelOverrides::force(std::string_view op, std::vector<std::string> kernels) {
  forced_.insert_or_assign(std::string(op), std::move(kernels));
}

const std::vector<std::string>& KernelOverrides::forced(std::string_view op) const {
  static const std::vector<std::string> kNone;
  const auto found = forced_.find(op);
  return found == forced_.end() ? kNone : found->second;
}

const KernelOverrides& KernelOverrides::from_environment() {
  static const KernelOverrides overrides = [] {
    KernelOverrides result;
    for (const OperatorBase* op : all_operators()) {
      std::string variable = "CREST_KERNEL_";
      for (const char c : op->name()) variable += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      if (const auto value = core::env(variable.c_str())) result.force(op->name(), split_names(*value));
    }
    return result;
  }();
  return overrides;
}

}  // namespace crest::ops
