// Findings: merged by kind and instructions, with source lines where the object has them.
#include <fmt/format.h>

#include "check/state.h"
#include "report/lines.h"

namespace crest_sim {
namespace {

std::string describe(const CheckPlace& p) {
  std::string out = fmt::format("pc {:#x}: {}", p.pc, p.disassembly);
  if (!p.source.empty()) out += fmt::format(" ({})", p.source);
  out += fmt::format("; workgroup ({}, {}, {})", p.workgroup.x, p.workgroup.y, p.workgroup.z);
  if (p.wave >= 0) out += fmt::format(", wave {}", p.wave);
  if (p.lane >= 0) out += fmt::format(", lane {}", p.lane);
  return out;
}

}  // namespace

std::string CheckReport::to_string() const {
  std::string out = fmt::format("kernel {}: {}: {} [{}]", kernel, check_name(kind), message, describe(place));
  if (has_other) out += fmt::format(" [other: {}]", describe(other));
  if (count > 1) out += fmt::format(" ({} times)", count);
  return out;
}

bool LaunchCheck::is_new(CheckKind kind, const Instruction& i, const Instruction* other) {
  std::lock_guard lock(mutex_);
  auto it = reports_.find({kind, index_of(*this, i), other ? index_of(*this, *other) : ~0u});
  if (it == reports_.end()) return true;
  ++it->second.count;
  return false;
}

void LaunchCheck::report(const Wave& wave, Finding f) {
  std::lock_guard lock(mutex_);
  CheckReport& r = reports_[{f.kind, index_of(*this, *f.instruction), f.other ? index_of(*this, *f.other) : ~0u}];
  r.kind = f.kind;
  r.kernel = context.kernel->name;
  r.message = std::move(f.message);
  r.address = f.address;
  r.place.pc = f.instruction->pc;
  r.place.workgroup = wave.workgroup->id;
  r.place.wave = static_cast<int>(wave.index);
  r.place.lane = f.lane;
  if (!f.other) return;
  r.has_other = true;
  r.other.pc = f.other->pc;
  uint64_t n = f.other_workgroup == ~uint64_t(0) ? wave.workgroup->linear : f.other_workgroup;
  r.other.workgroup = {static_cast<uint32_t>(n % context.grid.x),
                       static_cast<uint32_t>(n / context.grid.x % context.grid.y),
                       static_cast<uint32_t>(n / context.grid.x / context.grid.y)};
  r.other.wave = f.other_wave >= 0 || f.kind == CheckKind::kLdsRace ? f.other_wave : static_cast<int>(wave.index);
}

std::vector<CheckReport> LaunchCheck::take_reports() {
  std::vector<CheckReport> out;
  if (reports_.empty()) return out;
  std::vector<CheckPlace*> places;
  for (auto& [key, report] : reports_) {
    places.push_back(&report.place);
    if (report.has_other) places.push_back(&report.other);
  }
  std::vector<uint64_t> addresses;
  for (CheckPlace* p : places) addresses.push_back(context.code->section_address + p->pc);
  auto lines = source_lines(*context.object, addresses);
  for (size_t n = 0; n < places.size(); ++n) {
    int32_t at = context.code->index_at(addresses[n]);
    if (at >= 0)
      places[n]->disassembly = context.code->disassembly(context.code->instructions[static_cast<size_t>(at)]);
    if (n < lines.size() && lines[n].line) places[n]->source = fmt::format("{}:{}", lines[n].file, lines[n].line);
  }
  for (auto& [key, report] : reports_) out.push_back(std::move(report));
  reports_.clear();
  return out;
}

}  // namespace crest_sim
