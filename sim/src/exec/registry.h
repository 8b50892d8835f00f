// Names → handlers, one table per x86-64 level.
#pragma once

#include <string>
#include <unordered_map>

#include "crest_sim/instruction.h"
#include "crest_sim/target.h"

namespace crest_sim::CREST_SIM_LEVEL {

/// What a binder may look at; it may also complete the instruction (implicit operands, flags).
struct BindContext {
  const TargetInfo& target;
  uint32_t lanes;
};
/// Null if the operands or modifiers are not supported.
using Binder = ExecuteFn (*)(Instruction&, const BindContext&);

struct Entry {
  Binder bind = nullptr;
  Fidelity fidelity = Fidelity::kExact;
};

class Registry {
 public:
  void add(const std::string& name, Binder bind, Fidelity fidelity = Fidelity::kExact) {
    entries_[name] = {bind, fidelity};
  }
  /// A handler that serves every form of its instruction.
  template <ExecuteFn F>
  void add(const std::string& name, Fidelity fidelity = Fidelity::kExact) {
    add(name, [](Instruction&, const BindContext&) -> ExecuteFn { return F; }, fidelity);
  }
  /// `name` means the same as `same`, which is registered already.
  void alias(const std::string& name, const std::string& same) { entries_[name] = entries_.at(same); }
  const Entry* find(const std::string& name) const {
    auto it = entries_.find(name);
    return it == entries_.end() ? nullptr : &it->second;
  }

 private:
  std::unordered_map<std::string, Entry> entries_;
};

void register_scalar(Registry&);
void register_scalar_float(Registry&);
void register_scalar_memory(Registry&);
void register_control(Registry&);
void register_valu_integer(Registry&);
void register_valu_16(Registry&);
void register_valu_float(Registry&);
void register_valu_transcendental(Registry&);
void register_valu_half(Registry&);
void register_valu_64(Registry&);
void register_valu_convert(Registry&);
void register_valu_compare(Registry&);
void register_valu_carry(Registry&);
void register_valu_lane(Registry&);
void register_valu_divide(Registry&);
void register_valu_packed(Registry&);
void register_valu_dot(Registry&);
void register_valu_narrow(Registry&);
void register_matrix(Registry&);
void register_lds(Registry&);
void register_lds_atomic(Registry&);
void register_global(Registry&);
void register_buffer(Registry&);
void register_scratch(Registry&);

}  // namespace crest_sim::CREST_SIM_LEVEL
