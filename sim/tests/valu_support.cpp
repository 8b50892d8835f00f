#include "valu_support.h"

#include <fmt/format.h>

#include <cmath>

namespace crest_sim::test {
namespace {

bool is_half(char t) { return t == 's' || t == 'h'; }
bool is_wide(char t) { return t == 'q' || t == 'd'; }
bool is_float(char t) { return t == 'f' || t == 'h' || t == 'd'; }

std::string vector_name(int reg, char type) {
  return is_wide(type) ? fmt::format("v[{}:{}]", reg, reg + 1) : fmt::format("v{}", reg);
}
std::string scalar_name(int reg, char type) {
  return is_wide(type) ? fmt::format("s[{}:{}]", reg, reg + 1) : fmt::format("s{}", reg);
}

constexpr const char* kSelects[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"};

struct DppCase {
  const char* text;
  std::function<int(int)> source;
};

/// The patterns written out per lane, from the ISA's descriptions.
std::vector<DppCase> dpp_cases(bool cdna, int lanes) {
  auto in_row = [](int lane, int i) { return lane - lane % 16 + i; };
  std::vector<DppCase> out = {
      {"quad_perm:[2,0,3,1]",
       [](int l) {
         const int p[] = {2, 0, 3, 1};
         return l / 4 * 4 + p[l % 4];
       }},
      {"row_shl:3", [=](int l) { return l % 16 + 3 > 15 ? -1 : l + 3; }},
      {"row_shr:5", [=](int l) { return l % 16 < 5 ? -1 : l - 5; }},
      {"row_ror:4", [=](int l) { return in_row(l, (l % 16 + 12) % 16); }},
      {"row_mirror", [=](int l) { return in_row(l, 15 - l % 16); }},
      {"row_half_mirror", [=](int l) { return l / 8 * 8 + 7 - l % 8; }},
  };
  if (cdna) {
    out.push_back({"wave_shl:1", [=](int l) { return l == lanes - 1 ? -1 : l + 1; }});
    out.push_back({"wave_rol:1", [=](int l) { return l == lanes - 1 ? 0 : l + 1; }});
    out.push_back({"wave_shr:1", [](int l) { return l - 1; }});
    out.push_back({"wave_ror:1", [=](int l) { return l == 0 ? lanes - 1 : l - 1; }});
    out.push_back({"row_bcast:15", [](int l) { return l < 16 ? -1 : l / 16 * 16 - 1; }});
    out.push_back({"row_bcast:31", [](int l) { return l < 32 ? -1 : 31; }});
    out.push_back({"row_newbcast:6", [=](int l) { return in_row(l, 6); }});
  } else {
    out.push_back({"row_share:9", [=](int l) { return in_row(l, 9); }});
    out.push_back({"row_xmask:6", [=](int l) { return in_row(l, (l % 16) ^ 6); }});
    out.push_back({"dpp8:[7,1,0,5,4,2,2,3]", [](int l) {
                     const int p[] = {7, 1, 0, 5, 4, 2, 2, 3};
                     return l / 8 * 8 + p[l % 8];
                   }});
  }
  return out;
}

uint64_t type_mask(char t) { return is_wide(t) ? ~uint64_t(0) : is_half(t) ? 0xffff : 0xffffffff; }
uint64_t sign_bit(char t) { return is_wide(t) ? uint64_t(1) << 63 : is_half(t) ? 0x8000 : 0x80000000; }

bool is_nan(char t, uint64_t x) {
  if (t == 'f') return std::isnan(f32(x));
  if (t == 'd') return std::isnan(f64(x));
  return t == 'h' && (x & 0x7fff) > 0x7c00;
}

uint64_t clamp_value(char t, uint64_t x) {
  if (is_nan(t, x)) return 0;
  if (t == 'f') return bits(f32(x) > 1 ? 1.0f : f32(x) > 0 ? f32(x) : 0.0f);
  if (t == 'd') return bits(f64(x) > 1 ? 1.0 : f64(x) > 0 ? f64(x) : 0.0);
  double v = half_value(x);
  return v > 1 ? 0x3c00 : v > 0 ? x : 0;
}

}  // namespace

double half_value(uint64_t x) {
  int e = (x >> 10) & 31, m = x & 0x3ff;
  double v = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp(1024 + m, e - 25) : std::ldexp(m, -24);
  return x & 0x8000 ? -v : v;
}

uint64_t nearest_half(__float128 x) {
  if (x != x) return 0x7e00;
  uint64_t sign = x < 0 || (x == 0 && std::signbit(static_cast<double>(x))) ? 0x8000 : 0;
  __float128 a = x < 0 ? -x : x;
  if (a >= 65520) return sign | 0x7c00;
  uint64_t low = 0, high = 0x7c00;  // half_value(low) ≤ a < half_value(high)
  while (high - low > 1) {
    uint64_t mid = (low + high) / 2;
    __float128 v = mid == 0x7c00 ? 65536.0 : half_value(mid);
    (v <= a ? low : high) = mid;
  }
  __float128 down = a - half_value(low), up = (high == 0x7c00 ? 65536.0 : half_value(high)) - a;
  return sign | (down < up || (down == up && low % 2 == 0) ? low : high);
}

uint64_t random_value(std::mt19937_64& random, char type) {
  uint64_t r = random();
  static const uint32_t specials32[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
                                        0x7fc00000, 0x7f800001, 0x00000001, 0x007fffff, 0x80400000, 0x00800000,
                                        0x7f7fffff, 0xffffffff, 0x7fffffff, 1,          31,         32,
                                        33,         0xffff,     0x4b000000, 0x4f000000};
  static const uint32_t specials16[] = {0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0x7d01,
                                        1, 0x3ff,  0x400,  0x7bff, 0xffff, 0x7fff, 15,     16};
  uint64_t pick = r >> 60;
  r = random();
  if (pick < 3) {
    if (type == 'h' || type == 's') return specials16[r % 16];
    if (type == 'd') {
      static const uint64_t specials64[] = {
          0, uint64_t(1) << 63,  0x3ff0000000000000, 0x7ff0000000000000, 0x7ff8000000000000,
          1, 0x7fefffffffffffff, 0xfff0000000000000};
      return specials64[r % 8];
    }
    return specials32[r % 22] | (type == 'q' ? r << 32 : 0);
  }
  if (pick < 11 && type == 'f')
    return bits(std::ldexp(static_cast<float>(static_cast<int32_t>(r)), static_cast<int>((r >> 32) % 80) - 71));
  if (pick < 11 && type == 'd')
    return bits(std::ldexp(static_cast<double>(static_cast<int64_t>(r)), static_cast<int>((r >> 8) % 140) - 130));
  if (pick < 11 && type == 'h') return (r & 0x83ff) | (10 + r / 65536 % 12) << 10;
  if (pick < 6 && (type == 'i' || type == 'q')) return r & 63;
  return r & type_mask(type);
}

ValuTester::ValuTester(Arch arch, uint32_t lanes) : arch_(arch), lanes_(lanes), cdna_(target_info(arch).cdna) {}

void ValuTester::add(const ValuOp& op) { ops_.push_back(op); }

/// Makes all forms; those that the assembler refuses fall out later.
void ValuTester::plan(const ValuOp& op) {
  size_t n = op.types.size() - 1 - op.accumulates;
  char d = op.types[0];
  auto type = [&](size_t k) { return op.types[k + 1]; };
  bool any_half = false;
  for (char t : op.types) any_half = any_half || is_half(t);
  bool true16 = !cdna_ && any_half;
  auto base = [&] {
    Form f;
    for (size_t k = 0; k < n; ++k)
      f.sources.push_back({SourceForm::kVector, 1 + 2 * static_cast<int>(k) + (is_wide(type(k)) ? 1 : 0), 0});
    f.keep_half = is_half(d) && (!cdna_ || n == 3);  // on gfx9 only the VOP3-only operations keep the upper half
    return f;
  };
  auto source_text = [&](const Form& f, size_t k) {
    const SourceForm& s = f.sources[k];
    std::string t;
    if (s.kind == SourceForm::kConstant)
      t = is_float(type(k)) ? (s.constant == 0 ? "0" : "0.5") : std::to_string(static_cast<int64_t>(s.constant));
    else if (s.kind == SourceForm::kScalar)
      t = scalar_name(s.reg, type(k));
    else
      t = vector_name(s.reg, type(k));
    if (true16 && is_half(type(k)) && s.kind == SourceForm::kVector) t += s.high ? ".h" : ".l";
    if (s.abs) t = "|" + t + "|";
    if (s.sext) t = "sext(" + t + ")";
    return s.neg ? "-" + t : t;
  };
  auto emit = [&](Form f, const std::string& suffix, const std::string& tail) {
    f.text = op.name + suffix + " " + vector_name(f.dst, d) + (true16 && is_half(d) ? f.dst_high ? ".h" : ".l" : "");
    for (size_t k = 0; k < n; ++k) f.text += ", " + source_text(f, k);
    f.text += tail;
    planned_.push_back({&op, f});
  };
  emit(base(), "", "");
  Form aliased = base();  // the destination is also a source
  aliased.dst = aliased.sources[0].reg;
  if (is_wide(d) == is_wide(type(0))) emit(aliased, "", "");
  for (size_t k = 0; k < n; ++k) {
    Form f = base();
    f.sources[k].kind = SourceForm::kScalar;
    f.sources[k].reg = 20;
    emit(f, n == 3 ? "" : "_e64", "");
    if (k == 0) emit(f, "", "");
    f = base();
    f.sources[k].kind = SourceForm::kConstant;
    char t = type(k);
    f.sources[k].constant = t == 'f'   ? bits(0.5f)
                            : t == 'd' ? bits(0.5)
                            : t == 'h' ? 0x3800
                            : k % 2    ? 13
                                       : static_cast<uint64_t>(-7);
    emit(f, n == 3 ? "" : "_e64", "");
    for (int mode = 1; mode < 4 && is_float(t); ++mode) {
      f = base();
      f.sources[k].neg = mode & 1;
      f.sources[k].abs = mode & 2;
      emit(f, n == 3 ? "" : "_e64", "");
    }
    if (true16 && is_half(t)) {
      f = base();
      f.sources[k].high = true;
      f.dst_high = is_half(d);
      emit(f, n == 3 ? "" : "_e64", "");
    }
  }
  if (is_float(d) || op.saturating) {
    Form f = base();
    f.clamp = true;
    emit(f, n == 3 ? "" : "_e64", " clamp");
  }
  if (n > 2) return;
  const std::pair<int, int> masks[] = {{15, 15}, {10, 15}, {15, 6}};
  int at = 0;
  for (const DppCase& c : dpp_cases(cdna_, static_cast<int>(lanes_))) {
    Form f = base();
    bool dpp8 = std::string(c.text).starts_with("dpp8");
    f.source_lane = c.source;
    if (!dpp8) std::tie(f.row_mask, f.bank_mask) = masks[at % 3];
    f.bound = dpp8 || at % 2;
    f.fetch_inactive = !cdna_ && at % 4 == 2;
    if (is_float(type(0)) && at % 3 == 1 && !dpp8) f.sources[0].neg = true;
    std::string tail = dpp8 ? fmt::format(" {}", c.text)
                            : fmt::format(" {} row_mask:{:#x} bank_mask:{:#x}", c.text, f.row_mask, f.bank_mask);
    if (f.bound && !dpp8) tail += cdna_ ? " bound_ctrl:0" : " bound_ctrl:1";
    if (f.fetch_inactive) tail += " fi:1";
    emit(f, "_dpp", tail);
    if (!cdna_) emit(f, "_e64_dpp", tail);
    ++at;
  }
  if (!cdna_) return;
  for (int s = 0; s < 7; ++s) {
    Form f = base();
    f.sdwa = true;
    f.dst_select = (s * 3 + 1) % 7;
    f.dst_unused = s % 3;
    f.sources[0].select = s;
    if (n > 1) f.sources[1].select = (s + 2) % 7;
    if (!is_float(type(0)) && s % 2) f.sources[0].sext = true;
    static const char* unused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
    std::string tail =
        fmt::format(" dst_sel:{} dst_unused:{} src0_sel:{}", kSelects[f.dst_select], unused[f.dst_unused], kSelects[s]);
    if (n > 1) tail += fmt::format(" src1_sel:{}", kSelects[f.sources[1].select]);
    emit(f, "_sdwa", tail);
  }
}

/// One source of one lane, with everything its form says.
uint64_t ValuTester::read_source(Machine& m, const ValuOp& op, const Form& form, size_t index, int lane,
                                 const std::vector<uint32_t>& before) {
  const SourceForm& s = form.sources[index];
  char t = op.types[index + 1];
  uint64_t x;
  auto at = [&](int reg) { return before[size_t(reg) * lanes_ + static_cast<size_t>(lane)]; };
  if (s.kind == SourceForm::kConstant)
    x = s.constant;
  else if (s.kind == SourceForm::kScalar)
    x = is_wide(t) ? m.wave.read64(static_cast<uint32_t>(s.reg)) : m.wave.s[s.reg];
  else
    x = is_wide(t) ? uint64_t(at(s.reg + 1)) << 32 | at(s.reg) : at(s.reg);
  if (form.sdwa && s.select < 6) {
    int width = s.select < 4 ? 8 : 16, shift = s.select < 4 ? 8 * s.select : 16 * (s.select - 4);
    x = (x >> shift) & ((1u << width) - 1);
    if (s.sext && (x >> (width - 1) & 1)) x |= ~uint64_t(0) << width;
  }
  if (s.high) x >>= 16;
  x &= type_mask(t);
  if (s.abs) x &= ~sign_bit(t);
  if (s.neg) x ^= sign_bit(t);
  return x;
}

void ValuTester::check(Machine& m, const ValuOp& op, const Form& form, const Decoded& d) {
  for (uint32_t r = 0; r < 12; ++r)
    for (uint32_t l = 0; l < lanes_; ++l)
      m.v(static_cast<int>(r), static_cast<int>(l)) = static_cast<uint32_t>(random_());
  for (size_t k = 0; k < form.sources.size(); ++k) {
    const SourceForm& s = form.sources[k];
    char t = op.types[k + 1];
    if (s.kind == SourceForm::kScalar) m.wave.write64(static_cast<uint32_t>(s.reg), random_value(random_, t));
    if (s.kind != SourceForm::kVector) continue;
    for (uint32_t l = 0; l < lanes_; ++l) {
      uint64_t x = random_value(random_, t);
      if (is_wide(t))
        m.set_v64(s.reg, static_cast<int>(l), x);
      else if (is_half(t))
        m.v(s.reg, static_cast<int>(l)) = static_cast<uint32_t>(x | random_value(random_, t) << 16);
      else
        m.v(s.reg, static_cast<int>(l)) = static_cast<uint32_t>(x);
    }
  }
  uint64_t choice = random_();
  m.set_exec(choice % 4 == 0 ? ~uint64_t(0) : choice % 4 == 1 ? random_() & random_() : random_());
  uint64_t exec = m.wave.exec();
  auto before = m.snapshot();
  m.run(d);
  char t = op.types[0];
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    int l = static_cast<int>(lane), from = l;
    bool writes = (exec >> l) & 1, zero = false;
    if (form.source_lane) {
      from = form.source_lane(l);
      bool usable = from >= 0 && (form.fetch_inactive || ((exec >> from) & 1));
      writes = writes && ((form.row_mask >> (l / 16 % 4)) & 1) && ((form.bank_mask >> (l / 4 % 4)) & 1) &&
               (usable || form.bound);
      zero = !usable;
      if (from < 0) from = l;
    }
    uint64_t s[3] = {};
    for (size_t k = 0; k < form.sources.size(); ++k) {
      s[k] = read_source(m, op, form, k, k == 0 ? from : l, before);
      if (k == 0 && zero) s[0] = form.sources[0].neg ? sign_bit(op.types[1]) : 0;
    }
    auto old_at = [&](int reg) { return before[size_t(reg) * lanes_ + lane]; };
    uint64_t old = is_wide(t) ? uint64_t(old_at(form.dst + 1)) << 32 | old_at(form.dst) : old_at(form.dst);
    if (op.accumulates) s[form.sources.size()] = (form.dst_high ? old >> 16 : old) & type_mask(t);
    uint64_t r = form.clamp && op.saturating ? op.saturating(s) : op.reference(s);
    r &= type_mask(t);
    if (form.clamp && is_float(t)) r = clamp_value(t, r);
    uint64_t want = r, care = type_mask(t);
    if (form.sdwa && form.dst_select < 6) {
      int width = form.dst_select < 4 ? 8 : 16,
          shift = form.dst_select < 4 ? 8 * form.dst_select : 16 * (form.dst_select - 4);
      uint32_t part = static_cast<uint32_t>((r & ((1u << width) - 1)) << shift), mask = ((1u << width) - 1) << shift;
      if (form.dst_unused == 2) part |= static_cast<uint32_t>(old) & ~mask;
      if (form.dst_unused == 1 && (r >> (width - 1) & 1))
        part |= static_cast<uint32_t>(~uint64_t(0) << (shift + width));
      want = part;
    } else if (form.dst_high) {
      want = (old & 0xffff) | r << 16;
    } else if (form.keep_half) {
      want = (old & 0xffff0000) | r;
    }
    if (!writes) want = old;
    uint64_t got = is_wide(t) ? m.v64(form.dst, l) : m.v(form.dst, l);
    bool nan = writes && is_float(t) && is_nan(t, r);  // payloads are not specified
    bool equal = got == want ||
                 (nan && !(form.sdwa && form.dst_select < 6) && is_nan(t, form.dst_high ? got >> 16 : got & care)) ||
                 (nan && form.sdwa);
    if (!equal && writes && op.tolerance > 0 && !form.sdwa) {
      double a = t == 'f' ? f32(got) : t == 'd' ? f64(got) : half_value(form.dst_high ? got >> 16 : got & 0xffff);
      double b = t == 'f' ? f32(r) : t == 'd' ? f64(r) : half_value(r);
      equal = std::fabs(a - b) <= op.tolerance * std::fabs(b);
    } else if (!equal && op.tolerance > 0 && form.sdwa) {
      equal = true;  // parts of an approximate result cannot be compared
    }
    ASSERT_TRUE(equal) << form.text << " on " << m.target.name << " lane " << l
                       << fmt::format(": sources {:#x} {:#x} {:#x}, old {:#x}, got {:#x}, expected {:#x}, exec {:#x}",
                                      s[0], s[1], s[2], old, got, want, exec);
    // Nothing else may change.
    for (int reg = 0; reg < 12; ++reg)
      if (reg != form.dst && !(is_wide(t) && reg == form.dst + 1))
        ASSERT_EQ(m.v(reg, l), old_at(reg)) << form.text << " wrote v" << reg;
  }
}

void ValuTester::run(int cases) {
  for (const ValuOp& op : ops_) plan(op);
  std::vector<std::string> lines;
  for (const Planned& p : planned_) lines.push_back(p.form.text);
  auto assembled = assemble(std::string(target_info(arch_).name), lanes_, lines);
  std::map<const ValuOp*, std::vector<std::pair<const Form*, Decoded>>> usable;
  for (size_t n = 0; n < planned_.size(); ++n) {
    if (assembled[n].bytes.empty()) continue;
    Decoded d = decode_one(target_info(arch_), lanes_, assembled[n].bytes);
    ASSERT_TRUE(d.ok) << planned_[n].form.text << ": " << d.problem;
    usable[planned_[n].op].emplace_back(&planned_[n].form, std::move(d));
  }
  Machine m(arch_, lanes_);
  for (const ValuOp& op : ops_) {
    auto& forms = usable[&op];
    if (forms.empty()) continue;  // not an instruction of this architecture
    int rounds = std::max<int>(cases / static_cast<int>(lanes_ * forms.size()) + 1, 2);
    for (auto& [form, decoded] : forms)
      for (int round = 0; round < rounds; ++round) {
        check(m, op, *form, decoded);
        if (testing::Test::HasFatalFailure()) return;
      }
  }
}

}  // namespace crest_sim::test
