// s_waitcnt: which memory operations are proven to be done.
//
// Vector memory and LDS operations of a wave finish in order, scalar loads and flat accesses to LDS do not: of those
// only a wait for 0 proves anything. CDNA counts stores with the loads (vmcnt), RDNA3 has vscnt for them.
#include <fmt/format.h>

#include "check/state.h"

namespace crest_sim {
namespace {

using Class = InstructionClass;

void retire(WaveCheck& c, OutstandingQueue& q) {
  const RegisterRange& t = q.oldest().target;
  for (uint32_t r = t.first; r < uint32_t(t.first) + t.count; ++r)
    if (c.pending[r] && --c.pending[r] == 0) c.remove(c.pending_set, r);
  q.pop();
}

void retire_to(WaveCheck& c, Counter which, uint32_t left) {
  OutstandingQueue& q = c.queue[static_cast<int>(which)];
  while (q.count > left) retire(c, q);
}

bool covers(const Outstanding& o, uint32_t reg) {
  return reg >= o.target.first && reg < uint32_t(o.target.first) + o.target.count;
}

Counter counter_of(const LaunchCheck& launch, const Instruction& i, const MemoryAccess& a) {
  switch (i.cls) {
    case Class::kSmem:
    case Class::kSmemStore:
    case Class::kSmemAtomic:
      return Counter::kSmem;
    case Class::kLdsLoad:
    case Class::kLdsStore:
    case Class::kLdsAtomic:
    case Class::kLdsPermute:
      return Counter::kLds;
    case Class::kGlobalStore:
    case Class::kBufferStore:
    case Class::kScratchStore:
      return launch.cdna ? Counter::kVm : Counter::kVs;
    case Class::kGlobalAtomic:
    case Class::kBufferAtomic:
      return launch.cdna || (i.flags & kFlagReturn) ? Counter::kVm : Counter::kVs;
    case Class::kFlatStore:
    case Class::kFlatAtomic:
    case Class::kFlatLoad:
      if (a.lds_lanes) return Counter::kSmem;  // out of order
      return launch.cdna || i.cls == Class::kFlatLoad || (i.flags & kFlagReturn) ? Counter::kVm : Counter::kVs;
    default:
      return Counter::kVm;
  }
}

constexpr std::string_view kCounterNames[kCounters] = {"vmcnt", "vscnt", "lgkmcnt", "lgkmcnt"};

/// A load may overwrite what an earlier load of the same kind will write: they arrive in order.
bool arrives_later(const LaunchCheck& launch, const Instruction& i, Counter pending) {
  if (pending == Counter::kSmem) return false;
  return counter_of(launch, i, MemoryAccess{}) == pending && i.dst_count > 0;
}

void check_range(Wave& wave, const Instruction& i, const CheckPlan& plan, const RegisterRange& range, bool write) {
  WaveCheck& c = check_of(wave);
  LaunchCheck& launch = *check_of(*wave.workgroup).launch;
  for (uint32_t r = range.first; r < uint32_t(range.first) + range.count; ++r) {
    if (!c.pending[r]) continue;
    for (int q = 0; q < kCounters; ++q) {
      OutstandingQueue& queue = c.queue[q];
      for (uint32_t n = queue.count; n-- > 0;) {
        const Outstanding& o = queue[n];
        if (!covers(o, r)) continue;
        bool memory = plan.flow == Flow::kMemory || plan.flow == Flow::kExchange;
        if (write && memory && arrives_later(launch, i, static_cast<Counter>(q))) return;
        if (launch.is_new(CheckKind::kMissingWait, i, o.plan->instruction)) {
          bool ordered = q != static_cast<int>(Counter::kSmem);
          launch.report(
              wave, {CheckKind::kMissingWait, &i, -1, r,
                     fmt::format("{} is {} before s_waitcnt {}({}) proves that it was loaded", register_name(r),
                                 write ? "overwritten" : "read", kCounterNames[q], ordered ? queue.count - 1 - n : 0),
                     o.plan->instruction});
        }
        return;
      }
    }
  }
}

}  // namespace

void check_wait(Wave& wave, const Instruction& i) {
  WaveCheck& c = check_of(wave);
  bool none = i.wait_vm == 0xffff && i.wait_vs == 0xffff && i.wait_lgkm == 0xffff && i.wait_exp == 0xffff;
  bool idle = none && mnemonic_info(i.mnemonic).name == "s_wait_idle";
  auto limit = [&](uint16_t value) { return idle ? 0u : value; };
  retire_to(c, Counter::kVm, limit(i.wait_vm));
  retire_to(c, Counter::kVs, limit(i.wait_vs));
  retire_to(c, Counter::kLds, limit(i.wait_lgkm));
  if (idle || i.wait_lgkm == 0) retire_to(c, Counter::kSmem, 0);
}

void check_pending(Wave& wave, const Instruction& i, const CheckPlan& plan) {
  for (int k = 0; k < plan.reads; ++k) check_range(wave, i, plan, plan.read[k], false);
  for (int k = 0; k < plan.writes; ++k) check_range(wave, i, plan, plan.write[k], true);
}

void issue_memory(Wave& wave, const Instruction& i, const CheckPlan& plan, const MemoryAccess& a) {
  WaveCheck& c = check_of(wave);
  WorkgroupCheck& g = check_of(*wave.workgroup);
  const LaunchCheck& launch = *g.launch;
  Counter which = counter_of(launch, i, a);
  OutstandingQueue& q = c.queue[static_cast<int>(which)];
  if (q.count == OutstandingQueue::kSize) retire(c, q);
  Outstanding& o = q[q.count++];
  o = {};
  o.plan = &plan;
  o.number = ++c.memory_number;
  o.to_lds = i.cls == Class::kBufferToLds;
  o.writes_lds = o.to_lds || i.cls == Class::kLdsStore || i.cls == Class::kLdsAtomic;
  o.tag = g.lds.epoch << 6 | (o.to_lds ? LdsShadow::kDma : 0) | wave.index;
  if (plan.writes && !o.to_lds) {
    o.target = plan.write[0];
    for (uint32_t r = o.target.first; r < uint32_t(o.target.first) + o.target.count; ++r) {
      ++c.pending[r];
      c.add(c.pending_set, r);
    }
  }
}

bool is_outstanding(WaveCheck& check, uint32_t number) {
  for (OutstandingQueue& q : check.queue)
    for (uint32_t n = 0; n < q.count; ++n)
      if (q[n].number == number) return true;
  return false;
}

}  // namespace crest_sim
