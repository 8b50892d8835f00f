#include "run/scheduler.h"

#include <xmmintrin.h>

#include <algorithm>
#include <thread>

#include "check/state.h"
#include "crest_sim/progress.h"
#include "run/fault.h"
#include "run/levels.h"

namespace crest_sim {
namespace {

/// A turn ends after so many wave instructions, or signs of waiting.
constexpr uint64_t kTurnInstructions = 2'000'000, kTurnYields = 256;
constexpr uint64_t kResidentBytes = uint64_t(2) << 30;
constexpr uint32_t kPoison = 0xcdcdcdcd;

/// Passes calls on to several observers.
class FanOut : public WorkgroupObserver {
 public:
  explicit FanOut(std::vector<WorkgroupObserver*> targets) : targets_(std::move(targets)) {}
  void before(Wave& w, const Instruction& i) override {
    for (auto& t : targets_) t->before(w, i);
  }
  void after(Wave& w, const Instruction& i, const MemoryAccess* a) override {
    for (auto& t : targets_) t->after(w, i, a);
  }
  void barrier_released(Workgroup& g) override {
    for (auto& t : targets_) t->barrier_released(g);
  }

 private:
  std::vector<WorkgroupObserver*> targets_;
};

std::atomic<uint64_t> finished{0};

}  // namespace

uint64_t finished_workgroups() { return finished.load(std::memory_order_relaxed); }

Scheduler::Scheduler(LaunchContext& context, const LaunchConfig& config, const Kernel& kernel, const Instruction* code,
                     std::shared_ptr<const AllocationTable> memory, uint32_t scratch_bytes)
    : context_(context),
      config_(config),
      kernel_(kernel),
      code_(code),
      memory_(std::move(memory)),
      scratch_bytes_((scratch_bytes + 3) & ~3u) {
  block_size_ = config.block.x * config.block.y * config.block.z;
  wave_count_ = (block_size_ + kernel.wave_size - 1) / kernel.wave_size;
  rows_ = kernel.agprs ? 256 + kernel.agprs : kernel.vgprs;
  total_ = uint64_t(config.grid.x) * config.grid.y * config.grid.z;
  entry_index_ = context.code->index_at(kernel.entry_address);
  uint64_t bytes = uint64_t(wave_count_) * kernel.wave_size * (rows_ * 4 + scratch_bytes_) + context.lds_bytes + 4096;
  max_resident_ = std::clamp<uint64_t>(kResidentBytes / bytes, 64, 1024);
}

LaunchResult Scheduler::run() {
  size_t threads =
      config_.threads > 0 ? static_cast<size_t>(config_.threads) : std::max(1u, std::thread::hardware_concurrency());
  threads = std::min<uint64_t>(threads, total_);
  for (const Observer* o : config_.observers)
    if (auto* checker = dynamic_cast<const Checker*>(o); checker && checker->options()[CheckKind::kGlobalRace])
      threads = 1;  // the order of accesses is part of what is checked
  std::vector<std::thread> helpers;
  for (size_t t = 1; t < threads; ++t) helpers.emplace_back([this] { work(); });
  work();
  for (std::thread& t : helpers) t.join();
  result_.wave_instructions = instructions_;
  result_.ok = result_.fault.kind == FaultKind::kNone;
  return std::move(result_);
}

void Scheduler::work() {
  uint32_t host_mode = _mm_getcsr();
  _mm_setcsr(0x1f80);
  std::unique_lock lock(mutex_);
  while (auto resident = take(lock)) {
    lock.unlock();
    Turn turn = Turn::kFinished;
    try {
      turn = run_turn(*resident);
    } catch (const FaultException& fault) {
      _mm_setcsr(0x1f80);
      report(fault);
    }
    if (turn == Turn::kFinished) finish(*resident);
    lock.lock();
    running_.erase(resident->workgroup.sequence);
    oldest_ = running_.empty() ? next_sequence_ : *running_.begin();
    (turn == Turn::kParked ? parked_ : spare_).push_back(std::move(resident));
    changed_.notify_all();
  }
  changed_.notify_all();
  lock.unlock();
  _mm_setcsr(host_mode);
}

std::unique_ptr<Scheduler::Resident> Scheduler::take(std::unique_lock<std::mutex>& lock) {
  while (!stopped_) {
    std::unique_ptr<Resident> next;
    bool is_new = false;
    if (next_waiting_ < waiting_.size()) {
      next = std::move(waiting_[next_waiting_++]);
    } else if (next_new_ < total_ && parked_.size() + running_.size() < max_resident_) {
      if (spare_.empty()) spare_.push_back(std::make_unique<Resident>());
      next = std::move(spare_.back());
      spare_.pop_back();
      next->workgroup.linear = next_new_++;
      is_new = true;
    } else if (!running_.empty()) {
      changed_.wait(lock);
      continue;
    } else if (!parked_.empty()) {  // next round
      std::sort(parked_.begin(), parked_.end(),
                [](const auto& a, const auto& b) { return a->workgroup.sequence < b->workgroup.sequence; });
      waiting_ = std::move(parked_);
      parked_.clear();
      next_waiting_ = 0;
      continue;
    } else {
      return nullptr;
    }
    next->workgroup.sequence = next_sequence_++;
    running_.insert(next->workgroup.sequence);
    oldest_ = *running_.begin();
    if (is_new) {
      lock.unlock();
      start(*next, next->workgroup.linear);
      lock.lock();
    }
    return next;
  }
  return nullptr;
}

void Scheduler::wait_for_turn(const Workgroup& workgroup) {
  if (oldest_.load(std::memory_order_acquire) == workgroup.sequence) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || oldest_ == workgroup.sequence; });
}

/// A checker comes first: the interpreter has a loop of its own for it, which passes calls on to the others.
WorkgroupObserver* Scheduler::follow(Resident& resident) {
  WorkgroupCheck* check = nullptr;
  std::vector<WorkgroupObserver*> others;
  for (auto& o : resident.observers) {
    auto* c = dynamic_cast<WorkgroupCheck*>(o.get());
    if (c && !check)
      check = c;
    else
      others.push_back(o.get());
  }
  WorkgroupObserver* rest = others.empty() ? nullptr : others[0];
  if (others.size() > 1) {
    resident.fan_out = std::make_unique<FanOut>(std::move(others));
    rest = resident.fan_out.get();
  }
  if (!check) return rest;
  check->next = rest;
  return check;
}

void Scheduler::start(Resident& resident, uint64_t linear) {
  Workgroup& g = resident.workgroup;
  g.id = {static_cast<uint32_t>(linear % config_.grid.x),
          static_cast<uint32_t>(linear / config_.grid.x % config_.grid.y),
          static_cast<uint32_t>(linear / config_.grid.x / config_.grid.y)};
  g.linear = linear;
  g.launch = &context_;
  g.memory = memory_.get();
  g.barriers = 0;
  g.yields = 0;
  g.access = &resident.access;
  g.lds_storage.assign(context_.lds_bytes, 0xcd);
  g.lds = g.lds_storage.data();
  g.lds_bytes = context_.lds_bytes;
  size_t lanes = kernel_.wave_size;
  g.scratch_storage.assign(size_t(scratch_bytes_) * lanes * wave_count_, 0xcd);
  g.scratch = g.scratch_storage.data();
  g.scratch_bytes = scratch_bytes_;
  if (!g.registers)
    g.registers.reset(static_cast<uint32_t*>(std::aligned_alloc(64, size_t(wave_count_) * rows_ * lanes * 4)));
  g.waves.resize(wave_count_);
  for (uint32_t n = 0; n < wave_count_; ++n) start_wave(g, n);
  resident.observers.clear();
  for (Observer* o : config_.observers) resident.observers.push_back(o->begin_workgroup(g));
  g.observer = follow(resident);
}

void Scheduler::start_wave(Workgroup& g, uint32_t index) {
  uint32_t lanes = kernel_.wave_size, first = index * lanes, count = std::min(lanes, block_size_ - first);
  Wave& w = g.waves[index];
  w = Wave{};
  w.v = g.registers.get() + size_t(index) * rows_ * lanes;
  w.lanes = lanes;
  w.full_exec = lanes == 64 ? ~uint64_t(0) : 0xffffffff;
  w.index = index;
  w.workgroup = &g;
  w.code = code_;
  w.pc = code_ + entry_index_;
  w.vgpr_limit = kernel_.vgprs;
  w.agpr_limit = kernel_.agprs;
  std::fill(std::begin(w.s), std::end(w.s), kPoison);
  std::fill(w.v, w.v + size_t(std::min(256u, kernel_.vgprs + kernel_.agprs)) * lanes, kPoison);
  if (kernel_.agprs) std::fill(w.v + size_t(256) * lanes, w.v + size_t(256 + kernel_.agprs) * lanes, kPoison);
  load_scalars(w, g);
  w.write64(cell::kExec, count == 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1);
  w.mask_exec = ~w.exec();
  uint32_t rsrc1 = kernel_.descriptor.rsrc1;
  set_mode(w, kernel_.descriptor.float_mode() | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9);
  const Dim3& block = config_.block;
  Dim3 id{first % block.x, first / block.x % block.y, first / block.x / block.y};
  for (uint32_t l = 0; l < lanes; ++l) {
    w.v[l] = id.x | id.y << 10 | id.z << 20;
    if (++id.x == block.x) {
      id.x = 0;
      if (++id.y == block.y) id.y = 0, ++id.z;
    }
  }
}

/// User SGPRs in the order of the descriptor's enable bits, then the workgroup's coordinates.
void Scheduler::load_scalars(Wave& w, const Workgroup& g) {
  const KernelDescriptor& d = kernel_.descriptor;
  uint32_t n = 0;
  auto put64 = [&](uint64_t value) {
    w.write64(n, value);
    n += 2;
  };
  uint64_t dispatch_packet = context_.kernarg_base + context_.kernarg_bytes;
  if (d.properties & 1) put64(0), put64(0);  // private segment buffer: not used with architected flat scratch
  if (d.properties & 2) put64(dispatch_packet);
  if (d.properties & 4) put64(0);  // queue pointer
  if (d.properties & 8) put64(context_.kernarg_base);
  if (d.properties & 16) put64(0);  // dispatch id
  if (d.properties & 32) put64(0);  // flat scratch init
  if (d.properties & 64) w.s[n++] = scratch_bytes_;
  uint32_t preload = d.preload & 127, from = d.preload >> 7;
  for (uint32_t k = 0; k < preload && n < 32; ++k, ++n) {
    uint64_t at = uint64_t(from + k) * 4;
    if (at + 4 <= context_.kernarg_bytes)
      std::memcpy(&w.s[n], reinterpret_cast<const void*>(context_.kernarg_base + at), 4);
  }
  n = d.user_sgprs();
  if (d.rsrc2 & (1u << 7)) w.s[n++] = g.id.x;
  if (d.rsrc2 & (1u << 8)) w.s[n++] = g.id.y;
  if (d.rsrc2 & (1u << 9)) w.s[n++] = g.id.z;
  if (d.rsrc2 & (1u << 10)) w.s[n++] = (wave_count_ & 63) | (w.index == 0 ? 1u << 31 : 0);
  w.s[cell::kM0] = 0xffffffff;  // no clamp of LDS addresses, as the hardware's start value has it
  w.s[cell::kScc] = 0;
  std::fill(w.s + cell::kZero, w.s + cell::kZero + 16, 0u);
  w.write64(cell::kSharedBase, uint64_t(1) << 48);
  w.write64(cell::kSharedLimit, (uint64_t(1) << 48) + 0xffffffff);
  w.write64(cell::kPrivateBase, uint64_t(2) << 48);
  w.write64(cell::kPrivateLimit, (uint64_t(2) << 48) + 0xffffffff);
  w.s[cell::kPopsWaveId] = 0;
}

Scheduler::Turn Scheduler::run_turn(Resident& resident) {
  Workgroup& g = resident.workgroup;
  auto advance = g.observer ? levels().run_observed : levels().run;
  uint32_t quantum = std::clamp(config_.quantum, 1u, 16u);
  uint64_t yields = g.yields, executed = 0;
  auto count = [&] {
    uint64_t n = 0;
    for (const Wave& w : g.waves) n += w.instructions;
    return n;
  };
  uint64_t begin = count();
  while (true) {
    bool ran = false;
    for (Wave& w : g.waves) {
      if (w.state != WaveState::kRunning) continue;
      advance(w, quantum);
      executed += quantum;
      ran = true;
    }
    if (!ran) {  // all at the barrier, or ended
      bool waiting = false;
      for (Wave& w : g.waves)
        if (w.state == WaveState::kAtBarrier) w.state = WaveState::kRunning, waiting = true;
      if (!waiting) break;
      ++g.barriers;
      if (g.observer) g.observer->barrier_released(g);
    }
    if (executed > kTurnInstructions || g.yields - yields > kTurnYields) {
      if (stopped_) break;
      uint64_t all = count();
      if (config_.max_wave_instructions && all > config_.max_wave_instructions)
        raise_fault(g.waves[0], *g.waves[0].pc, FaultKind::kDeadlock, -1, all,
                    "the workgroup has executed more instructions than the launch allows");
      std::lock_guard lock(mutex_);
      instructions_ += all - begin;
      return Turn::kParked;
    }
  }
  std::lock_guard lock(mutex_);
  instructions_ += count() - begin;
  return Turn::kFinished;
}

void Scheduler::finish(Resident& resident) {
  for (size_t k = 0; k < resident.observers.size(); ++k)
    config_.observers[k]->end_workgroup(resident.workgroup, std::move(resident.observers[k]));
  resident.observers.clear();
  finished.fetch_add(1, std::memory_order_relaxed);
}

/// The first workgroup's fault wins, so that the report does not depend on the threads either.
void Scheduler::report(const FaultException& fault) {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  const Workgroup& g = *fault.wave->workgroup;
  if (g.linear >= fault_linear_) return;
  fault_linear_ = g.linear;
  Fault& f = result_.fault;
  f.kind = fault.kind;
  f.message = fault.message;
  f.kernel = kernel_.name;
  f.pc = fault.instruction->pc;
  f.disassembly = context_.code->disassembly(*fault.instruction);
  f.workgroup = g.id;
  f.wave = static_cast<int>(fault.wave->index);
  f.lane = fault.lane;
  f.address = fault.address;
}

}  // namespace crest_sim
