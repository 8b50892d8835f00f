// Integer vector operations against references written from the ISA's text, bit by bit and in wider arithmetic.
#include "valu_reference.h"

namespace crest_sim::test {
namespace {

void integer_ops(ValuTester& t) {
  t.add({"v_mov_b32", "ii", [](In s) { return s[0]; }});
  t.add({"v_not_b32", "ii", [](In s) { return ~s[0]; }});
  t.add({"v_bfrev_b32", "ii", [](In s) {
           u64 r = 0;
           for (int b = 0; b < 32; ++b) r |= (s[0] >> b & 1) << (31 - b);
           return r;
         }});
  auto first_high = [](In s) -> u64 {
    for (int b = 31; b >= 0; --b)
      if (s[0] >> b & 1) return u64(31 - b);
    return ~u64(0);
  };
  auto first_low = [](In s) -> u64 {
    for (int b = 0; b < 32; ++b)
      if (s[0] >> b & 1) return u64(b);
    return ~u64(0);
  };
  auto first_other = [](In s) -> u64 {
    for (int b = 30; b >= 0; --b)
      if ((s[0] >> b & 1) != (s[0] >> 31 & 1)) return u64(31 - b);
    return ~u64(0);
  };
  t.add({"v_ffbh_u32", "ii", first_high});
  t.add({"v_clz_i32_u32", "ii", first_high});
  t.add({"v_ffbl_b32", "ii", first_low});
  t.add({"v_ctz_i32_b32", "ii", first_low});
  t.add({"v_ffbh_i32", "ii", first_other});
  t.add({"v_cls_i32", "ii", first_other});
  for (const char* n : {"v_add_u32", "v_add_nc_u32"})
    t.add({n, "iii", [](In s) { return s[0] + s[1]; }, [](In s) { return saturate_u32(i64(s[0]) + i64(s[1])); }});
  for (const char* n : {"v_sub_u32", "v_sub_nc_u32"})
    t.add({n, "iii", [](In s) { return s[0] - s[1]; }, [](In s) { return saturate_u32(i64(s[0]) - i64(s[1])); }});
  for (const char* n : {"v_subrev_u32", "v_subrev_nc_u32"})
    t.add({n, "iii", [](In s) { return s[1] - s[0]; }, [](In s) { return saturate_u32(i64(s[1]) - i64(s[0])); }});
  for (const char* n : {"v_add_i32", "v_add_nc_i32"})
    t.add({n, "iii", [](In s) { return s[0] + s[1]; }, [](In s) { return saturate_s32(sx(s[0], 32) + sx(s[1], 32)); }});
  for (const char* n : {"v_sub_i32", "v_sub_nc_i32"})
    t.add({n, "iii", [](In s) { return s[0] - s[1]; }, [](In s) { return saturate_s32(sx(s[0], 32) - sx(s[1], 32)); }});
  t.add({"v_and_b32", "iii", [](In s) { return s[0] & s[1]; }});
  t.add({"v_or_b32", "iii", [](In s) { return s[0] | s[1]; }});
  t.add({"v_xor_b32", "iii", [](In s) { return s[0] ^ s[1]; }});
  t.add({"v_xnor_b32", "iii", [](In s) { return ~(s[0] ^ s[1]); }});
  t.add({"v_lshlrev_b32", "iii", [](In s) {
           u64 x = s[1];
           for (u64 k = 0; k < s[0] % 32; ++k) x *= 2;
           return x;
         }});
  t.add({"v_lshrrev_b32", "iii", [](In s) {
           u64 x = s[1];
           for (u64 k = 0; k < s[0] % 32; ++k) x /= 2;
           return x;
         }});
  t.add({"v_ashrrev_i32", "iii", [](In s) { return static_cast<u64>(sx(s[1], 32) >> (s[0] % 32)); }});
  t.add({"v_min_u32", "iii", [](In s) { return std::min(s[0], s[1]); }});
  t.add({"v_max_u32", "iii", [](In s) { return std::max(s[0], s[1]); }});
  t.add({"v_min_i32", "iii", [](In s) { return static_cast<u64>(std::min(sx(s[0], 32), sx(s[1], 32))); }});
  t.add({"v_max_i32", "iii", [](In s) { return static_cast<u64>(std::max(sx(s[0], 32), sx(s[1], 32))); }});
  t.add({"v_mul_lo_u32", "iii", [](In s) { return s[0] * s[1]; }});
  t.add({"v_mul_hi_u32", "iii", [](In s) { return s[0] * s[1] >> 32; }});
  t.add({"v_mul_hi_i32", "iii", [](In s) { return static_cast<u64>(sx(s[0], 32) * sx(s[1], 32) >> 32); }});
  t.add({"v_mul_u32_u24", "iii", [](In s) { return (s[0] % 16777216) * (s[1] % 16777216); },
         [](In s) { return sat(wide(s[0] % 16777216) * (s[1] % 16777216), 0, 4294967295.0); }});
  t.add({"v_mul_i32_i24", "iii", [](In s) { return static_cast<u64>(sx(s[0], 24) * sx(s[1], 24)); },
         [](In s) { return saturate_s32(sx(s[0], 24) * sx(s[1], 24)); }});
  t.add({"v_mul_hi_u32_u24", "iii", [](In s) { return (s[0] % 16777216) * (s[1] % 16777216) >> 32; }});
  t.add({"v_mul_hi_i32_i24", "iii", [](In s) { return static_cast<u64>(sx(s[0], 24) * sx(s[1], 24) >> 32); }});
  t.add({"v_bfm_b32", "iii", [](In s) {
           u64 r = 0;
           for (u64 k = 0; k < s[0] % 32; ++k) r |= u64(1) << (k + s[1] % 32);
           return r;
         }});
  t.add({"v_bcnt_u32_b32", "iii", [](In s) {
           u64 n = s[1];
           for (int b = 0; b < 32; ++b) n += s[0] >> b & 1;
           return n;
         }});
}

void ternary_ops(ValuTester& t) {
  t.add({"v_lshl_or_b32", "iiii", [](In s) { return s[0] << (s[1] & 31) | s[2]; }});
  t.add({"v_lshl_add_u32", "iiii", [](In s) { return (s[0] << (s[1] & 31)) + s[2]; }});
  t.add({"v_add_lshl_u32", "iiii", [](In s) { return (s[0] + s[1]) << (s[2] & 31); }});
  t.add({"v_add3_u32", "iiii", [](In s) { return s[0] + s[1] + s[2]; }});
  t.add({"v_or3_b32", "iiii", [](In s) { return s[0] | s[1] | s[2]; }});
  t.add({"v_xor3_b32", "iiii", [](In s) { return s[0] ^ s[1] ^ s[2]; }});
  t.add({"v_and_or_b32", "iiii", [](In s) { return (s[0] & s[1]) | s[2]; }});
  t.add({"v_xad_u32", "iiii", [](In s) { return (s[0] ^ s[1]) + s[2]; }});
  t.add({"v_bfi_b32", "iiii", [](In s) {
           u64 r = 0;
           for (int b = 0; b < 32; ++b) r |= ((s[0] >> b & 1 ? s[1] : s[2]) >> b & 1) << b;
           return r;
         }});
  t.add({"v_bfe_u32", "iiii", [](In s) {
           u64 r = 0;
           for (u64 b = 0; b < s[2] % 32; ++b) r |= (s[1] % 32 + b < 32 ? s[0] >> (s[1] % 32 + b) & 1 : 0) << b;
           return r;
         }});
  t.add({"v_bfe_i32", "iiii", [](In s) -> u64 {
           int w = s[2] & 31, o = s[1] & 31;
           if (!w) return 0;
           i64 x = sx(s[0], 32) >> o;
           return static_cast<u64>(sx(static_cast<u64>(x), w));
         }});
  t.add({"v_alignbit_b32", "iiii", [](In s) { return (s[0] << 32 | s[1]) >> (s[2] & 31); }});
  t.add({"v_alignbyte_b32", "iiii", [](In s) { return (s[0] << 32 | s[1]) >> (8 * (s[2] & 3)); }});
  t.add({"v_perm_b32", "iiii", [](In s) {
           u64 in = s[0] << 32 | s[1], r = 0;
           for (int k = 0; k < 4; ++k) {
             u64 sel = s[2] >> 8 * k & 255, byte;
             if (sel < 8)
               byte = in >> 8 * sel & 255;
             else if (sel < 12)
               byte = in >> (16 * (sel - 8) + 15) & 1 ? 255 : 0;
             else
               byte = sel == 12 ? 0 : 255;
             r |= byte << 8 * k;
           }
           return r;
         }});
  t.add({"v_mad_u32_u24", "iiii", [](In s) { return (s[0] & 0xffffff) * (s[1] & 0xffffff) + s[2]; },
         [](In s) { return sat(wide(s[0] & 0xffffff) * (s[1] & 0xffffff) + s[2], 0, 4294967295.0); }});
  t.add({"v_mad_i32_i24", "iiii", [](In s) { return static_cast<u64>(sx(s[0], 24) * sx(s[1], 24)) + s[2]; },
         [](In s) { return saturate_s32(sx(s[0], 24) * sx(s[1], 24) + sx(s[2], 32)); }});
  auto three = [](auto f) { return [f](In s) { return static_cast<u64>(f(f(s[0], s[1]), s[2])); }; };
  t.add({"v_min3_u32", "iiii", three([](u64 a, u64 b) { return std::min(a, b); })});
  t.add({"v_max3_u32", "iiii", three([](u64 a, u64 b) { return std::max(a, b); })});
  t.add({"v_min3_i32", "iiii", three([](u64 a, u64 b) { return static_cast<u64>(std::min(sx(a, 32), sx(b, 32))); })});
  t.add({"v_max3_i32", "iiii", three([](u64 a, u64 b) { return static_cast<u64>(std::max(sx(a, 32), sx(b, 32))); })});
  auto middle = [](int width, bool is_signed) {
    return [=](In s) {
      i64 v[3];
      for (int k = 0; k < 3; ++k) v[k] = is_signed ? sx(s[k], width) : static_cast<i64>(s[k]);
      std::sort(v, v + 3);
      return static_cast<u64>(v[1]);
    };
  };
  t.add({"v_med3_u32", "iiii", middle(32, false)});
  t.add({"v_med3_i32", "iiii", middle(32, true)});
  t.add({"v_med3_u16", "ssss", middle(16, false)});
  t.add({"v_med3_i16", "ssss", middle(16, true)});
  t.add({"v_maxmin_u32", "iiii", [](In s) { return std::min(std::max(s[0], s[1]), s[2]); }});
  t.add({"v_minmax_u32", "iiii", [](In s) { return std::max(std::min(s[0], s[1]), s[2]); }});
  t.add({"v_maxmin_i32", "iiii",
         [](In s) { return static_cast<u64>(std::min(std::max(sx(s[0], 32), sx(s[1], 32)), sx(s[2], 32))); }});
  t.add({"v_minmax_i32", "iiii",
         [](In s) { return static_cast<u64>(std::max(std::min(sx(s[0], 32), sx(s[1], 32)), sx(s[2], 32))); }});
  auto difference = [](u64 a, u64 b) { return a > b ? a - b : b - a; };
  t.add({"v_sad_u8", "iiii", [=](In s) {
           u64 r = s[2];
           for (int k = 0; k < 32; k += 8) r += difference(s[0] >> k & 255, s[1] >> k & 255);
           return r;
         }});
  t.add({"v_sad_hi_u8", "iiii", [=](In s) {
           u64 r = 0;
           for (int k = 0; k < 32; k += 8) r += difference(s[0] >> k & 255, s[1] >> k & 255);
           return (r << 16) + s[2];
         }});
  t.add({"v_msad_u8", "iiii", [=](In s) {
           u64 r = s[2];
           for (int k = 0; k < 32; k += 8)
             if (s[1] >> k & 255) r += difference(s[0] >> k & 255, s[1] >> k & 255);
           return r;
         }});
  t.add({"v_sad_u16", "iiii", [=](In s) {
           u64 r = s[2];
           for (int k = 0; k < 32; k += 16) r += difference(s[0] >> k & 0xffff, s[1] >> k & 0xffff);
           return r;
         }});
  t.add({"v_sad_u32", "iiii", [=](In s) { return difference(s[0], s[1]) + s[2]; }});
  t.add({"v_lerp_u8", "iiii", [](In s) {
           u64 r = 0;
           for (int k = 0; k < 32; k += 8) r |= (((s[0] >> k & 255) + (s[1] >> k & 255) + (s[2] >> k & 1)) / 2) << k;
           return r;
         }});
}

void short_ops(ValuTester& t) {
  for (const char* n : {"v_add_u16", "v_add_nc_u16"})
    t.add({n, "sss", [](In s) { return s[0] + s[1]; }, [](In s) { return std::min<u64>(s[0] + s[1], 65535); }});
  for (const char* n : {"v_sub_u16", "v_sub_nc_u16"})
    t.add({n, "sss", [](In s) { return s[0] - s[1]; }, [](In s) { return s[0] > s[1] ? s[0] - s[1] : 0; }});
  for (const char* n : {"v_add_i16", "v_add_nc_i16"})
    t.add({n, "sss", [](In s) { return s[0] + s[1]; },
           [](In s) { return sat(sx(s[0], 16) + sx(s[1], 16), -32768, 32767); }});
  for (const char* n : {"v_sub_i16", "v_sub_nc_i16"})
    t.add({n, "sss", [](In s) { return s[0] - s[1]; },
           [](In s) { return sat(sx(s[0], 16) - sx(s[1], 16), -32768, 32767); }});
  t.add({"v_subrev_u16", "sss", [](In s) { return s[1] - s[0]; }, [](In s) { return s[1] > s[0] ? s[1] - s[0] : 0; }});
  t.add({"v_mul_lo_u16", "sss", [](In s) { return s[0] * s[1]; }});
  t.add({"v_lshlrev_b16", "sss", [](In s) { return s[1] << (s[0] & 15); }});
  t.add({"v_lshrrev_b16", "sss", [](In s) { return s[1] >> (s[0] & 15); }});
  t.add({"v_ashrrev_i16", "sss", [](In s) { return static_cast<u64>(sx(s[1], 16) >> (s[0] & 15)); }});
  t.add({"v_min_u16", "sss", [](In s) { return std::min(s[0], s[1]); }});
  t.add({"v_max_u16", "sss", [](In s) { return std::max(s[0], s[1]); }});
  t.add({"v_min_i16", "sss", [](In s) { return static_cast<u64>(std::min(sx(s[0], 16), sx(s[1], 16))); }});
  t.add({"v_max_i16", "sss", [](In s) { return static_cast<u64>(std::max(sx(s[0], 16), sx(s[1], 16))); }});
  t.add({"v_and_b16", "sss", [](In s) { return s[0] & s[1]; }});
  t.add({"v_or_b16", "sss", [](In s) { return s[0] | s[1]; }});
  t.add({"v_xor_b16", "sss", [](In s) { return s[0] ^ s[1]; }});
  t.add({"v_not_b16", "ss", [](In s) { return ~s[0]; }});
  t.add({"v_mov_b16", "ss", [](In s) { return s[0]; }});
  t.add({"v_mad_u32_u16", "issi", [](In s) { return s[0] * s[1] + s[2]; }});
  t.add({"v_mad_i32_i16", "issi", [](In s) { return static_cast<u64>(sx(s[0], 16) * sx(s[1], 16)) + s[2]; }});
  t.add({"v_pack_b32_f16", "ihh", [](In s) { return s[0] | s[1] << 16; }});
}

class IntegerValu : public ::testing::TestWithParam<Case> {};
TEST_P(IntegerValu, MatchesReference) { run_group(GetParam()); }
INSTANTIATE_TEST_SUITE_P(
    Groups, IntegerValu,
    ::testing::ValuesIn(on_all_targets({{"Integer", integer_ops}, {"Ternary", ternary_ops}, {"Short", short_ops}})),
    case_name);

}  // namespace
}  // namespace crest_sim::test
