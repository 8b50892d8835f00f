// The parts of the checks that hold the others together: options, start of waves, the slow path, barriers.
#include "crest_sim/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/state.h"

namespace crest_sim {
namespace {

constexpr std::string_view kNames[kCheckKinds] = {"uninitialised", "wait",      "lds-race", "global-race",
                                                  "barrier",       "alignment", "hazard",   "buffer-bounds"};

/// Removes hot bits of registers that no longer need a closer look.
void cool_down(const LaunchCheck& launch, WaveCheck& c, const RegisterRange& range) {
  for (uint32_t r = range.first; r < uint32_t(range.first) + range.count; ++r) {
    uint64_t bit = uint64_t(1) << (r % 64);
    if (!(c.hot[r / 64] & bit) || c.pending[r] || mark_is_live(launch, c, r)) continue;
    if (r < kScalarFirst ? c.undefined[r] : c.undefined_bits[r - kScalarFirst]) continue;
    c.hot[r / 64] &= ~bit;
  }
}

void check_barrier(Wave& wave, const Instruction& i) {
  WorkgroupCheck& g = *wave.workgroup->check;
  if (!g.launch->options[CheckKind::kDivergentBarrier]) return;
  for (const Wave& other : wave.workgroup->waves) {
    if (other.state != WaveState::kEnded || !g.launch->is_new(CheckKind::kDivergentBarrier, i, other.pc - 1)) continue;
    g.launch->report(wave, {CheckKind::kDivergentBarrier, &i, -1, i.pc,
                            fmt::format("wave {} has ended without reaching the barrier", other.index), other.pc - 1,
                            ~uint64_t(0), static_cast<int>(other.index)});
  }
}

}  // namespace

std::string_view check_name(CheckKind kind) { return kNames[static_cast<size_t>(kind)]; }

bool CheckOptions::any() const {
  return std::any_of(enabled.begin(), enabled.end(), [](bool on) { return on; });
}

CheckOptions CheckOptions::with(CheckKind kind, bool on) const {
  CheckOptions o = *this;
  o.enabled[static_cast<size_t>(kind)] = on;
  return o;
}

CheckOptions CheckOptions::all() {
  CheckOptions o;
  o.enabled.fill(true);
  return o;
}

CheckOptions CheckOptions::standard() { return all().with(CheckKind::kBufferBounds, false); }

Result<CheckOptions> CheckOptions::parse(std::string_view text) {
  CheckOptions o = text.empty() ? standard() : none();
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma), name = item;
    text.remove_prefix(std::min(comma + 1, text.size()));
    bool on = !name.starts_with('-') && !name.starts_with("no-");
    if (!on) name.remove_prefix(name.starts_with('-') ? 1 : 3);
    if (on && (name == "all" || name == "standard" || name == "none")) {
      o = name == "all" ? all() : name == "none" ? none() : standard();
      continue;
    }
    const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
    if (found == std::end(kNames))
      return Error{fmt::format("check \"{}\": known are all, standard, none, {}", item, fmt::join(kNames, ", "))};
    o.enabled[static_cast<size_t>(found - std::begin(kNames))] = on;
  }
  return o;
}

LaunchCheck::LaunchCheck(const LaunchContext& c, const Instruction* instructions, const CheckOptions& o,
                         std::shared_ptr<MemoryShadow> shadow)
    : context(c),
      code(instructions),
      options(o),
      plans(make_plans(instructions, c.code->instructions.size(), *c.target, c.code->wave_size, o)),
      memory(std::move(shadow)),
      cdna(c.target->cdna),
      gfx950(c.target->arch == Arch::kGfx950),
      gfx1100(c.target->arch == Arch::kGfx1100) {
  if (!options[CheckKind::kUninitialised]) memory->forget();
  order.races = memory->take_races();
  order.first_segment = order.races->next_segment;
}

LaunchCheck::~LaunchCheck() { memory->give_back(std::move(order.races)); }

void WorkgroupCheck::start(Workgroup& g) {
  workgroup = &g;
  late.clear();
  acquired = 0;
  dirty = false;
  lds.start(g.lds_bytes);
  segment = launch->order.open(g.linear, 0, this);
  waves.resize(g.waves.size());
  bool undefined = launch->options[CheckKind::kUninitialised];
  for (size_t n = 0; n < waves.size(); ++n) {
    WaveCheck& c = waves[n];
    Wave& w = g.waves[n];
    uint32_t slot = c.slot + 1024;  // marks of the wave that was here before are long past
    std::fill(std::begin(c.hot), std::end(c.hot), 0);
    std::fill(std::begin(c.pending), std::end(c.pending), uint8_t(0));
    std::fill(std::begin(c.recent), std::end(c.recent), nullptr);
    for (OutstandingQueue& q : c.queue) q.first = q.count = 0;
    c.plans = launch->plans.data();
    c.slot = slot;
    c.matrix_free = 0;
    c.memory_number = 0;
    w.check = &c;
    std::fill(std::begin(c.undefined), std::end(c.undefined), 0);
    std::fill(std::begin(c.undefined_bits), std::end(c.undefined_bits), 0u);
    if (!undefined) continue;
    c.undefined_scratch.assign(g.scratch_bytes / 4, w.exec());
    for (uint32_t r = 1; r < w.vgpr_limit; ++r) set_undefined(c, r, w.exec(), w.exec());
    for (uint32_t r = 256; r < 256 + w.agpr_limit; ++r) set_undefined(c, r, w.exec(), w.exec());
    for (uint32_t s = w.scalars_set; s < cell::kVcc + 2; ++s) set_undefined_bits(c, s, ~0u);
  }
}

void WorkgroupCheck::finish() {
  GlobalOrder::Segment& s = launch->order[segment << 5];
  s.owner = nullptr;
}

/// Called when all waves that have not ended wait, before they go on.
void WorkgroupCheck::barrier_released() {
  const Wave* first = nullptr;
  for (const Wave& w : workgroup->waves) {
    if (w.state != WaveState::kAtBarrier) continue;
    if (!first) first = &w;
    const Instruction &a = *(first->pc - 1), &b = *(w.pc - 1);
    if (&a == &b || !launch->options[CheckKind::kDivergentBarrier] ||
        !launch->is_new(CheckKind::kDivergentBarrier, b, &a))
      continue;
    launch->report(w, {CheckKind::kDivergentBarrier, &b, -1, b.pc,
                       fmt::format("wave {} waits at another barrier than wave {}", w.index, first->index), &a,
                       ~uint64_t(0), static_cast<int>(first->index)});
  }
  if (first) check_barrier(const_cast<Wave&>(*first), *(first->pc - 1));
  std::erase_if(late, [&](const LateWrite& l) { return !is_outstanding(waves[l.tag & LdsShadow::kWave], l.number); });
  for (WaveCheck& c : waves)
    for (OutstandingQueue& q : c.queue)
      for (uint32_t n = 0; n < q.count; ++n) {
        const Outstanding& o = q[n];
        bool known = std::any_of(late.begin(), late.end(),
                                 [&](const LateWrite& l) { return l.tag == o.tag && l.number == o.number; });
        if (o.writes_lds && !known) late.push_back({o.tag, index_of(*launch, *o.plan->instruction), o.number});
      }
  lds.next_epoch();
  for (const LateWrite& l : late) lds.low_floor = std::min(lds.low_floor, l.tag & ~63u);
  GlobalOrder& order = launch->order;
  order[segment << 5].owner = nullptr;
  segment = order.open(workgroup->linear, workgroup->barriers + 1, this);
}

void check_before(Wave& wave, const Instruction& i, const CheckPlan& plan) {
  LaunchCheck& launch = *wave.workgroup->check->launch;
  WaveCheck& c = *wave.check;
  if (plan.port == Port::kMatrix && launch.cdna) {
    c.slot = std::max(c.slot, c.matrix_free);
    c.matrix_free = c.slot + plan.passes;
    c.recent_slot[(c.recent_next - 1) % 16] = c.slot;
  }
  if (launch.options[CheckKind::kHazard]) check_hazards(wave, i, plan);
  if (launch.options[CheckKind::kMissingWait]) check_pending(wave, i, plan);
  if (launch.options[CheckKind::kUninitialised]) propagate(wave, i, plan);
  for (int k = 0; k < plan.writes; ++k)
    for (uint32_t r = plan.write[k].first; r < uint32_t(plan.write[k].first) + plan.write[k].count; ++r)
      c.mark[r] = nullptr;
  for (int k = 0; k < plan.reads; ++k) cool_down(launch, c, plan.read[k]);
  for (int k = 0; k < plan.writes; ++k) cool_down(launch, c, plan.write[k]);
}

void check_after(Wave& wave, const Instruction& i, const CheckPlan& plan, const MemoryAccess& a) {
  const LaunchCheck& launch = *wave.workgroup->check->launch;
  bool waits = launch.options[CheckKind::kMissingWait];
  if (waits || launch.options[CheckKind::kLdsRace]) issue_memory(wave, i, plan, a);
  if (a.parts == 0 || plan.flow == Flow::kExchange) return;
  if (a.space == MemorySpace::kLds || a.kind == AccessKind::kLoadToLds) check_lds(wave, i, plan, a);
  if (a.space == MemorySpace::kGlobal || a.space == MemorySpace::kConstant) check_global(wave, i, plan, a);
  if (a.space == MemorySpace::kScratch) check_scratch(wave, i, plan, a);
}

}  // namespace crest_sim
