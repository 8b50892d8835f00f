#include <fmt/format.h>
#include <llvm/Support/JSON.h>

#include <algorithm>

#include "crest_sim/profile.h"

namespace crest_sim {
namespace {

double percent(uint64_t part, uint64_t whole) {
  return whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 100.0;
}

std::string kernel_text(const KernelUse& k) {
  std::string out = fmt::format("kernel {} ({}): {} launches, {} workgroups, {} waves, {} wave instructions\n",
                                k.kernel, k.arch, k.launches, k.workgroups, k.waves, k.wave_instructions);
  out += fmt::format("  fidelity: {:.2f} % exact, {:.2f} % modelled, {:.2f} % approximate\n",
                     percent(k.count(Fidelity::kExact), k.wave_instructions),
                     percent(k.count(Fidelity::kModelled), k.wave_instructions),
                     percent(k.count(Fidelity::kApproximate), k.wave_instructions));
  out += fmt::format("  coverage: {} of {} instructions ({:.1f} %)", k.executed_instructions(), k.instructions.size(),
                     percent(k.executed_instructions(), k.instructions.size()));
  if (!k.lines.empty())
    out += fmt::format(", {} of {} source lines ({:.1f} %)", k.covered_lines(), k.lines.size(),
                       percent(k.covered_lines(), k.lines.size()));
  size_t width = 8;
  for (const MnemonicUse& m : k.mnemonics) width = std::max(width, m.name.size());
  out += fmt::format("\n  {:<{}} {:>12} {:>6}  {}\n", "mnemonic", width, "count", "sites", "fidelity");
  for (const MnemonicUse& m : k.mnemonics) {
    out += fmt::format("  {:<{}} {:>12} {:>6}  {}", m.name, width, m.count, m.sites, fidelity_name(m.fidelity));
    if (k.followed && m.fidelity == Fidelity::kApproximate)
      out += m.reached_address || m.reached_branch
                 ? fmt::format(" -> reached {}{}{}", m.reached_address ? "an address" : "",
                               m.reached_address && m.reached_branch ? " and " : "", m.reached_branch ? "a branch" : "")
                 : std::string(" (data only)");
    out += "\n";
  }
  bool first = true;
  for (const LineUse& l : k.lines) {
    if (l.count) continue;
    out += fmt::format("{}{}:{}", first ? "  not executed: " : ", ", l.file, l.line);
    first = false;
  }
  return first ? out : out + "\n";
}

llvm::json::Object kernel_json(const KernelUse& k, bool instructions) {
  llvm::json::Array mnemonics, lines, listing;
  for (const MnemonicUse& m : k.mnemonics) {
    llvm::json::Object o{{"name", m.name},
                         {"fidelity", std::string(fidelity_name(m.fidelity))},
                         {"count", static_cast<int64_t>(m.count)},
                         {"sites", static_cast<int64_t>(m.sites)}};
    if (k.followed && m.fidelity == Fidelity::kApproximate) {
      o["reached_address"] = m.reached_address;
      o["reached_branch"] = m.reached_branch;
    }
    mnemonics.push_back(std::move(o));
  }
  for (const LineUse& l : k.lines)
    lines.push_back(llvm::json::Object{
        {"file", l.file}, {"line", static_cast<int64_t>(l.line)}, {"count", static_cast<int64_t>(l.count)}});
  if (instructions)
    for (const InstructionUse& i : k.instructions) {
      llvm::json::Object o{{"pc", static_cast<int64_t>(i.pc)},
                           {"instruction", i.disassembly},
                           {"count", static_cast<int64_t>(i.count)},
                           {"active_lanes", static_cast<int64_t>(i.active_lanes)},
                           {"fidelity", std::string(fidelity_name(i.fidelity))}};
      if (i.line) o["source"] = fmt::format("{}:{}", i.file, i.line);
      listing.push_back(std::move(o));
    }
  llvm::json::Object out{{"kernel", k.kernel},
                         {"arch", k.arch},
                         {"launches", static_cast<int64_t>(k.launches)},
                         {"workgroups", static_cast<int64_t>(k.workgroups)},
                         {"waves", static_cast<int64_t>(k.waves)},
                         {"wave_instructions", static_cast<int64_t>(k.wave_instructions)},
                         {"exact", static_cast<int64_t>(k.count(Fidelity::kExact))},
                         {"modelled", static_cast<int64_t>(k.count(Fidelity::kModelled))},
                         {"approximate", static_cast<int64_t>(k.count(Fidelity::kApproximate))},
                         {"instructions", static_cast<int64_t>(k.instructions.size())},
                         {"executed_instructions", static_cast<int64_t>(k.executed_instructions())},
                         {"mnemonics", std::move(mnemonics)},
                         {"lines", std::move(lines)}};
  if (instructions) out["listing"] = std::move(listing);
  return out;
}

}  // namespace

std::string_view fidelity_name(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::kExact:
      return "exact";
    case Fidelity::kModelled:
      return "modelled";
    case Fidelity::kApproximate:
      return "approximate";
  }
  return "";
}

uint64_t KernelUse::executed_instructions() const {
  return static_cast<uint64_t>(
      std::count_if(instructions.begin(), instructions.end(), [](const InstructionUse& i) { return i.count != 0; }));
}
uint64_t KernelUse::covered_lines() const {
  return static_cast<uint64_t>(
      std::count_if(lines.begin(), lines.end(), [](const LineUse& l) { return l.count != 0; }));
}
uint64_t KernelUse::count(Fidelity fidelity) const {
  uint64_t n = 0;
  for (const MnemonicUse& m : mnemonics)
    if (m.fidelity == fidelity) n += m.count;
  return n;
}

std::string ProfileReport::to_text() const {
  std::string out;
  for (const KernelUse& k : kernels) out += (out.empty() ? "" : "\n") + kernel_text(k);
  return out.empty() ? "no kernel was launched\n" : out;
}

std::string ProfileReport::to_json(bool instructions) const {
  llvm::json::Array list;
  for (const KernelUse& k : kernels) list.push_back(kernel_json(k, instructions));
  llvm::json::Object root{{"kernels", std::move(list)}};
  return fmt::format("{}\n", llvm::formatv("{0:2}", llvm::json::Value(std::move(root))).str());
}

}  // namespace crest_sim
