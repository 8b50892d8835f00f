// The parts of the checks that hold the others together: options, start of waves, the slow path, barriers.
#include "crest_sim/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "check/state.h"

namespace crest_sim {
namespace {

constexpr std::string_view kNames[kCheckKinds] = {"uninitialised", "wait",   "lds-race",      "global-race",  "barrier",
                                                  "alignment",     "hazard", "buffer-bounds", "barrier-pairs"};

void set_bits(uint64_t* words, uint32_t first, uint32_t end) {
  for (uint32_t r = first; r < end;) {
    uint32_t n = std::min(end - r, 64 - r % 64);
    words[r / 64] |= (n == 64 ? ~uint64_t(0) : (uint64_t(1) << n) - 1) << (r % 64);
    r += n;
  }
}

/// Everything but v0 and the first SGPRs, in the lanes that exist.
void start_undefined(WaveCheck& c, const Wave& w, uint32_t scalars, uint32_t scratch_bytes) {
  uint64_t lanes = w.exec();
  std::fill(std::begin(c.undefined), std::end(c.undefined), 0);
  std::fill(std::begin(c.undefined_bits), std::end(c.undefined_bits), 0u);
  std::fill(c.undefined + 1, c.undefined + w.vgpr_limit, lanes);
  std::fill_n(c.undefined + 256, w.agpr_limit, lanes);
  std::fill(c.undefined_bits + scalars, c.undefined_bits + cell::kVcc + 2, ~0u);
  set_bits(c.undefined_set, 1, w.vgpr_limit);
  set_bits(c.undefined_set, 256, 256 + w.agpr_limit);
  set_bits(c.undefined_set, kScalarFirst + scalars, kScalarFirst + cell::kVcc + 2);
  c.undefined_scratch.assign(scratch_bytes / 4, lanes);
}

void check_barrier(Wave& wave, const Instruction& i) {
  WorkgroupCheck& g = check_of(*wave.workgroup);
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

CheckOptions CheckOptions::standard() {
  return all().with(CheckKind::kBufferBounds, false).with(CheckKind::kBarrierPairs, false);
}

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
                         std::shared_ptr<const std::vector<CheckPlan>> plan_list, std::shared_ptr<MemoryShadow> shadow)
    : context(c),
      code(instructions),
      options(o),
      plans(std::move(plan_list)),
      memory(std::move(shadow)),
      cdna(c.target->cdna),
      gfx950(c.target->arch == Arch::kGfx950),
      gfx1100(c.target->arch == Arch::kGfx1100) {
  if (!options[CheckKind::kGlobalRace]) return;
  order.races = memory->take_races();
  order.first_segment = order.races->next_segment;
}

LaunchCheck::~LaunchCheck() { memory->give_back(std::move(order.races)); }

struct Checker::Impl {
  explicit Impl(const CheckOptions& o) : options(o) {}

  struct Plans {
    const Instruction* code = nullptr;
    std::vector<uint8_t> bytes;
    std::shared_ptr<const std::vector<CheckPlan>> plans;
  };
  const CheckOptions options;
  std::shared_ptr<MemoryShadow> memory = std::make_shared<MemoryShadow>();
  std::mutex mutex;
  std::map<const LaunchContext*, std::unique_ptr<LaunchCheck>> launches;
  std::vector<CheckReport> reports;
  std::vector<Plans> plans;  ///< of the objects used last

  /// Code may have been loaded where other code was: the bytes decide.
  std::shared_ptr<const std::vector<CheckPlan>> plans_for(const LaunchContext& c, const Instruction* code) {
    for (const Plans& p : plans)
      if (p.code == code && p.bytes == c.code->bytes) return p.plans;
    if (plans.size() == 8) plans.erase(plans.begin());
    plans.push_back({code, c.code->bytes,
                     std::make_shared<const std::vector<CheckPlan>>(
                         make_plans(code, c.code->instructions.size(), *c.target, c.code->wave_size, options))});
    return plans.back().plans;
  }
};

Checker::Checker(const CheckOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Checker::~Checker() = default;
const CheckOptions& Checker::options() const { return impl_->options; }

std::vector<CheckReport> Checker::take_reports() {
  std::lock_guard lock(impl_->mutex);
  return std::exchange(impl_->reports, {});
}

void Checker::mark_uninitialised(uint64_t base, uint64_t bytes) { impl_->memory->mark_uninitialised(base, bytes); }
void Checker::mark_initialised(uint64_t base, uint64_t bytes) { impl_->memory->mark_initialised(base, bytes); }

void Checker::launch_begin(const LaunchContext& context) {
  std::lock_guard lock(impl_->mutex);
  impl_->launches[&context] = nullptr;  // made with the first workgroup, which knows the code
}

std::unique_ptr<WorkgroupObserver> Checker::begin_workgroup(Workgroup& g) {
  LaunchCheck* launch;
  {
    std::lock_guard lock(impl_->mutex);
    auto& entry = impl_->launches[g.launch];
    const Instruction* code = g.waves[0].code;
    if (!entry)
      entry = std::make_unique<LaunchCheck>(*g.launch, code, impl_->options, impl_->plans_for(*g.launch, code),
                                            impl_->memory);
    launch = entry.get();
  }
  std::unique_ptr<WorkgroupCheck> check;
  {
    std::lock_guard lock(launch->pool_mutex);
    if (!launch->pool.empty()) {
      check = std::move(launch->pool.back());
      launch->pool.pop_back();
    }
  }
  if (!check) check = std::make_unique<WorkgroupCheck>();
  check->launch = launch;
  check->next = nullptr;
  check->start(g);
  return check;
}

void Checker::end_workgroup(Workgroup&, std::unique_ptr<WorkgroupObserver> observer) {
  std::unique_ptr<WorkgroupCheck> check(static_cast<WorkgroupCheck*>(observer.release()));
  check->finish();
  LaunchCheck& launch = *check->launch;
  std::lock_guard lock(launch.pool_mutex);
  launch.pool.push_back(std::move(check));
}

void Checker::launch_end(const LaunchContext& context) {
  std::lock_guard lock(impl_->mutex);
  auto it = impl_->launches.find(&context);
  if (it == impl_->launches.end()) return;
  if (it->second)
    for (CheckReport& r : it->second->take_reports()) impl_->reports.push_back(std::move(r));
  impl_->launches.erase(it);
}

void WorkgroupCheck::start(Workgroup& g) {
  workgroup = &g;
  late.clear();
  acquired = 0;
  dirty = false;
  lds.start(g.lds_bytes);
  if (launch->options[CheckKind::kGlobalRace]) segment = launch->order.open(g.linear, 0, this);
  waves.resize(g.waves.size());
  bool undefined = launch->options[CheckKind::kUninitialised];
  const KernelDescriptor& d = launch->context.kernel->descriptor;
  uint32_t scalars = d.user_sgprs() + static_cast<uint32_t>(std::popcount(d.rsrc2 >> 7 & 15));
  for (size_t n = 0; n < waves.size(); ++n) {
    WaveCheck& c = waves[n];
    Wave& w = g.waves[n];
    uint32_t slot = c.slot + 1024;  // marks of the wave that was here before are long past
    std::fill(std::begin(c.pending_set), std::end(c.pending_set), 0);
    std::fill(std::begin(c.undefined_set), std::end(c.undefined_set), 0);
    std::fill(std::begin(c.marked_set), std::end(c.marked_set), 0);
    std::fill(std::begin(c.pending), std::end(c.pending), uint8_t(0));
    std::fill(std::begin(c.recent), std::end(c.recent), nullptr);
    for (OutstandingQueue& q : c.queue) q.first = q.count = 0;
    c.plans = launch->plans->data();
    c.slot = slot;
    c.matrix_free = 0;
    c.memory_number = 0;
    if (undefined) start_undefined(c, w, scalars, g.scratch_bytes);
    std::copy(std::begin(c.undefined_set), std::end(c.undefined_set), std::begin(c.hot));
  }
}

void WorkgroupCheck::finish() {
  if (!launch->options[CheckKind::kGlobalRace]) return;
  GlobalOrder::Segment& s = launch->order[segment << 5];
  s.owner = nullptr;
}

/// All waves that have not ended have waited.
void WorkgroupCheck::barrier_released(Workgroup& g) {
  if (next) next->barrier_released(g);
  const Wave* first = nullptr;
  for (const Wave& w : workgroup->waves) {
    if (w.state == WaveState::kEnded) continue;
    if (!first) first = &w;
    const Instruction &a = *(first->pc - 1), &b = *(w.pc - 1);
    if (&a == &b || !launch->options[CheckKind::kBarrierPairs] || !launch->is_new(CheckKind::kBarrierPairs, b, &a))
      continue;
    launch->report(w, {CheckKind::kBarrierPairs, &b, -1, b.pc,
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
  if (!launch->options[CheckKind::kGlobalRace]) return;
  GlobalOrder& order = launch->order;
  order[segment << 5].owner = nullptr;
  segment = order.open(workgroup->linear, workgroup->barriers, this);
}

void check_before(Wave& wave, const Instruction& i, const CheckPlan& plan) {
  WorkgroupCheck& g = check_of(*wave.workgroup);
  const LaunchCheck& launch = *g.launch;
  WaveCheck& c = g.waves[wave.index];
  if (plan.port == Port::kMatrix && launch.cdna) {
    c.slot = std::max(c.slot, c.matrix_free);
    c.matrix_free = c.slot + plan.passes;
    c.recent_slot[(c.recent_next - 1) % 16] = c.slot;
  }
  bool marked = c.touches(c.marked_set, plan);
  if (launch.options[CheckKind::kHazard] && (marked || (plan.flags & kPlanBefore))) check_hazards(wave, i, plan);
  if (launch.options[CheckKind::kMissingWait] && c.touches(c.pending_set, plan)) check_pending(wave, i, plan);
  if (launch.options[CheckKind::kUninitialised] && c.touches(c.undefined_set, plan)) propagate(wave, i, plan);
  if (marked) drop_marks(launch, c, plan);
}

void check_after(Wave& wave, const Instruction& i, const CheckPlan& plan, const MemoryAccess& a) {
  const LaunchCheck& launch = *check_of(*wave.workgroup).launch;
  bool waits = launch.options[CheckKind::kMissingWait];
  if (waits || launch.options[CheckKind::kLdsRace]) issue_memory(wave, i, plan, a);
  if (a.parts == 0 || plan.flow == Flow::kExchange) return;
  if (a.space == MemorySpace::kLds || a.kind == AccessKind::kLoadToLds) check_lds(wave, i, plan, a);
  if (a.space == MemorySpace::kGlobal || a.space == MemorySpace::kConstant) check_global(wave, i, plan, a);
  if (a.space == MemorySpace::kScratch) check_scratch(wave, i, plan, a);
}

}  // namespace crest_sim
