#include "crest_sim/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/lines.h"
#include "report/taint.h"

namespace crest_sim {
namespace {

/// Counts of one workgroup at a time; kept and added up at the end.
struct Counts {
  explicit Counts(size_t size) : hits(size), lanes(size) {}
  std::vector<uint64_t> hits, lanes;
};

uint64_t hash(std::span<const uint8_t> bytes) {
  uint64_t h = 0xcbf29ce484222325;
  for (uint8_t b : bytes) h = (h ^ b) * 0x100000001b3;
  return h;
}

}  // namespace

struct Profile::KernelData {
  KernelUse use;
  size_t first = 0, end = 0;  ///< instructions of the kernel's own function
  std::vector<uint32_t> pcs;
  std::vector<uint16_t> mnemonics;
  std::vector<Fidelity> fidelity;
  std::vector<SourceLine> lines;
  Code code;  ///< without instructions: for disassembly
  std::vector<std::unique_ptr<Counts>> all;
  std::vector<Counts*> idle;

  void describe(const LaunchContext& context, bool with_lines);
};

struct Profile::Following {
  TaintLabels labels;
  TaintMemory memory;
};

/// What the report needs of the object, which may be gone by then.
void Profile::KernelData::describe(const LaunchContext& context, bool with_lines) {
  const Code& from = *context.code;
  use.kernel = context.kernel->name;
  use.arch = context.target->name;
  code.target = from.target;
  code.wave_size = from.wave_size;
  code.section_address = from.section_address;
  code.bytes = from.bytes;
  size_t count = from.instructions.size();
  std::vector<uint64_t> addresses;
  for (const Instruction& i : from.instructions) {
    pcs.push_back(i.pc);
    mnemonics.push_back(i.mnemonic);
    fidelity.push_back(fidelity_of(i, context.strict_matrix));
    addresses.push_back(from.section_address + i.pc);
  }
  if (with_lines) lines = source_lines(*context.object, addresses);
  lines.resize(count);
  int32_t entry = from.index_at(context.kernel->entry_address);
  first = entry < 0 ? 0 : static_cast<size_t>(entry);
  end = count - 1;  // the last one only ends the section
  for (const Symbol& s : context.object->symbols()) {
    if (!s.is_code || s.address != context.kernel->entry_address || s.size == 0) continue;
    int32_t last = from.index_at(s.address + s.size);
    if (last > 0) end = static_cast<size_t>(last);
  }
}

namespace {

class ProfileWorkgroup : public WorkgroupObserver {
 public:
  ProfileWorkgroup(Counts& counts, std::unique_ptr<Taint> taint) : counts(counts), taint_(std::move(taint)) {}

  void before(Wave& w, const Instruction& i) override {
    size_t n = static_cast<size_t>(&i - w.code);
    ++counts.hits[n];
    counts.lanes[n] += static_cast<uint64_t>(std::popcount(w.exec()));
    if (taint_) taint_->before(w, i);
  }
  void after(Wave& w, const Instruction& i, const MemoryAccess* access) override {
    if (taint_) taint_->after(w, i, access);
  }

  Counts& counts;

 private:
  std::unique_ptr<Taint> taint_;
};

}  // namespace

Profile::Profile(ProfileOptions options) : options_(options), following_(std::make_unique<Following>()) {}
Profile::~Profile() = default;

Profile::KernelData& Profile::data_of(const LaunchContext& context) {
  std::string key = fmt::format("{}\n{}\n{:x}\n{}", context.target->name, context.kernel->name,
                                hash(context.code->bytes), context.strict_matrix);
  std::unique_ptr<KernelData>& data = kernels_[key];
  if (!data) {
    data = std::make_unique<KernelData>();
    data->describe(context, options_.source_lines);
    data->use.followed = options_.follow_approximate;
  }
  return *data;
}

void Profile::launch_begin(const LaunchContext& context) {
  std::lock_guard lock(mutex_);
  KernelData& data = data_of(context);
  ++data.use.launches;
  active_[&context] = &data;
}

void Profile::launch_end(const LaunchContext& context) {
  std::lock_guard lock(mutex_);
  active_.erase(&context);
}

std::unique_ptr<WorkgroupObserver> Profile::begin_workgroup(Workgroup& workgroup) {
  std::lock_guard lock(mutex_);
  KernelData& data = *active_.at(workgroup.launch);
  ++data.use.workgroups;
  data.use.waves += workgroup.waves.size();
  if (data.idle.empty()) {
    data.all.push_back(std::make_unique<Counts>(data.pcs.size()));
    data.idle.push_back(data.all.back().get());
  }
  Counts& counts = *data.idle.back();
  data.idle.pop_back();
  std::unique_ptr<Taint> taint;
  if (options_.follow_approximate)
    taint = std::make_unique<Taint>(workgroup, following_->labels, following_->memory, workgroup.launch->strict_matrix);
  return std::make_unique<ProfileWorkgroup>(counts, std::move(taint));
}

void Profile::end_workgroup(Workgroup& workgroup, std::unique_ptr<WorkgroupObserver> observer) {
  std::lock_guard lock(mutex_);
  active_.at(workgroup.launch)->idle.push_back(&static_cast<ProfileWorkgroup&>(*observer).counts);
}

ProfileReport Profile::report() const {
  std::lock_guard lock(mutex_);
  ProfileReport out;
  for (const auto& [key, data] : kernels_) {
    KernelUse use = data->use;
    std::map<std::pair<uint16_t, Fidelity>, MnemonicUse> by_mnemonic;
    std::map<std::pair<std::string, uint32_t>, uint64_t> by_line;
    for (size_t n = 0; n < data->pcs.size(); ++n) {
      uint64_t hits = 0, lanes = 0;
      for (const auto& counts : data->all) hits += counts->hits[n], lanes += counts->lanes[n];
      bool own = n >= data->first && n < data->end;
      if (!own && hits == 0) continue;
      Instruction place;
      place.pc = data->pcs[n];
      const SourceLine& line = data->lines[n];
      use.instructions.push_back(
          {data->pcs[n], data->code.disassembly(place), line.file, line.line, data->fidelity[n], hits, lanes});
      use.wave_instructions += hits;
      if (line.line) {
        uint64_t& most = by_line[{line.file, line.line}];
        most = std::max(most, hits);
      }
      if (hits == 0) continue;
      MnemonicUse& m = by_mnemonic[{data->mnemonics[n], data->fidelity[n]}];
      m.name = mnemonic_info(data->mnemonics[n]).name;
      m.fidelity = data->fidelity[n];
      m.count += hits;
      ++m.sites;
      if (!options_.follow_approximate || m.fidelity != Fidelity::kApproximate) continue;
      m.reached_address = following_->labels.reached_address(data->mnemonics[n]);
      m.reached_branch = following_->labels.reached_branch(data->mnemonics[n]);
    }
    for (auto& [name, m] : by_mnemonic) use.mnemonics.push_back(std::move(m));
    std::sort(use.mnemonics.begin(), use.mnemonics.end(), [](const MnemonicUse& a, const MnemonicUse& b) {
      return a.count != b.count ? a.count > b.count : a.name < b.name;
    });
    for (const auto& [place, count] : by_line) use.lines.push_back({place.first, place.second, count});
    out.kernels.push_back(std::move(use));
  }
  return out;
}

}  // namespace crest_sim
