// Loads, stores and atomics of every address space on random addresses, data and EXEC masks, against byte-wise
// references.
#include <fmt/format.h>

#include <functional>

#include "assemble.h"
#include "machine.h"

namespace crest_sim::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

struct Access {
  const char* gfx9;
  const char* gfx11;
  u32 bytes;
  /// Loads of less than a dword: loaded value and old register → register. Stores: register → value.
  u32 (*convert)(u32 value, u32 old) = nullptr;
};

const Access kLoads[] = {
    {"load_ubyte", "load_u8", 1, [](u32 x, u32) { return x & 255; }},
    {"load_sbyte", "load_i8", 1, [](u32 x, u32) { return u32(int32_t(int8_t(x))); }},
    {"load_ushort", "load_u16", 2, [](u32 x, u32) { return x & 65535; }},
    {"load_sshort", "load_i16", 2, [](u32 x, u32) { return u32(int32_t(int16_t(x))); }},
    {"load_ubyte_d16", "load_d16_u8", 1, [](u32 x, u32 old) { return (old & 0xffff0000) | (x & 255); }},
    {"load_ubyte_d16_hi", "load_d16_hi_u8", 1, [](u32 x, u32 old) { return (old & 0xffff) | (x & 255) << 16; }},
    {"load_sbyte_d16", "load_d16_i8", 1,
     [](u32 x, u32 old) { return (old & 0xffff0000) | (u32(int32_t(int8_t(x))) & 0xffff); }},
    {"load_sbyte_d16_hi", "load_d16_hi_i8", 1,
     [](u32 x, u32 old) { return (old & 0xffff) | u32(int32_t(int8_t(x))) << 16; }},
    {"load_short_d16", "load_d16_b16", 2, [](u32 x, u32 old) { return (old & 0xffff0000) | (x & 0xffff); }},
    {"load_short_d16_hi", "load_d16_hi_b16", 2, [](u32 x, u32 old) { return (old & 0xffff) | x << 16; }},
    {"load_dword", "load_b32", 4},
    {"load_dwordx2", "load_b64", 8},
    {"load_dwordx3", "load_b96", 12},
    {"load_dwordx4", "load_b128", 16}};
const Access kStores[] = {{"store_byte", "store_b8", 1, [](u32 x, u32) { return x; }},
                          {"store_byte_d16_hi", "store_d16_hi_b8", 1, [](u32 x, u32) { return x >> 16; }},
                          {"store_short", "store_b16", 2, [](u32 x, u32) { return x; }},
                          {"store_short_d16_hi", "store_d16_hi_b16", 2, [](u32 x, u32) { return x >> 16; }},
                          {"store_dword", "store_b32", 4},
                          {"store_dwordx2", "store_b64", 8},
                          {"store_dwordx3", "store_b96", 12},
                          {"store_dwordx4", "store_b128", 16}};

constexpr u32 kBytes = 8192;

class MemoryInstructions : public ::testing::TestWithParam<Arch> {
 protected:
  MemoryInstructions()
      : target_(target_info(GetParam())), lanes_(target_.default_wave_size), m_(GetParam(), lanes_, kBytes) {
    memory_ = *Memory::create();
    base_ = *memory_->allocate(kBytes);
    data_ = reinterpret_cast<uint8_t*>(base_);
    m_.use_memory(memory_);
  }
  std::string vector(int reg, u32 dwords) {
    return dwords == 1 ? fmt::format("v{}", reg) : fmt::format("v[{}:{}]", reg, reg + dwords - 1);
  }
  Decoded decode(const std::string& line) {
    auto a = assemble(std::string(target_.name), lanes_, {line});
    EXPECT_FALSE(a[0].bytes.empty()) << line;
    Decoded d = decode_one(target_, lanes_, a[0].bytes);
    EXPECT_TRUE(d.ok) << line << ": " << d.problem;
    return d;
  }
  std::string name(const Access& a, const char* prefix) {
    return std::string(prefix) + (target_.cdna ? a.gfx9 : a.gfx11);
  }
  void random_state(std::vector<uint8_t>& bytes) {
    for (auto& b : bytes) b = uint8_t(random_());
    for (int r = 0; r < 32; ++r)
      for (u32 l = 0; l < lanes_; ++l) m_.v(r, int(l)) = u32(random_());
    u64 pick = random_();
    m_.set_exec(pick % 3 == 0 ? ~u64(0) : random_());
  }
  /// Offset of a lane: consecutive, overlapping or scattered.
  u64 place(u32 lane, u32 bytes, u32 align, int round) {
    if (round % 3 == 0) return 64 + u64(lane) * bytes;
    return (random_() % (kBytes - 256)) / align * align + 64;
  }

  /// Runs `d` with per-lane places set by `set_address`, and compares with bytes copied one by one. `memory` is what
  /// the instruction sees; v20… is the destination or v24… the data.
  void check(const Access& a, bool store, const Decoded& d, uint8_t* memory, int rounds,
             const std::function<void(u32, u64)>& set_address, u32 align = 1) {
    u32 dwords = (a.bytes + 3) / 4;
    for (int round = 0; round < rounds; ++round) {
      std::vector<uint8_t> bytes(kBytes);
      random_state(bytes);
      std::memcpy(memory, bytes.data(), kBytes);
      std::vector<u64> at(lanes_);
      for (u32 l = 0; l < lanes_; ++l) set_address(l, at[l] = place(l, a.bytes, align, round));
      auto before = m_.snapshot();
      u64 exec = m_.wave.exec();
      m_.run(d);
      for (u32 l = 0; l < lanes_; ++l) {
        bool active = exec >> l & 1;
        u32 value[4] = {};
        if (store) {
          for (u32 k = 0; k < dwords; ++k) value[k] = before[(24 + k) * lanes_ + l];
          if (a.convert) value[0] = a.convert(value[0], 0);
          if (active) std::memcpy(&bytes[at[l]], value, a.bytes);
          continue;
        }
        std::memcpy(value, &bytes[at[l]], a.bytes);
        for (u32 k = 0; k < dwords; ++k) {
          u32 old = before[(20 + k) * lanes_ + l], want = !active     ? old
                                                          : a.convert ? a.convert(value[0], old)
                                                                      : value[k];
          ASSERT_EQ(m_.v(int(20 + k), int(l)), want) << d.text << " lane " << l << " dword " << k;
        }
      }
      ASSERT_EQ(std::memcmp(memory, bytes.data(), kBytes), 0) << d.text << ": memory differs";
      for (u32 r = 0; r < 32; ++r)
        for (u32 l = 0; l < lanes_; ++l)
          if (store || r < 20 || r >= 20 + dwords)
            ASSERT_EQ(m_.v(int(r), int(l)), before[r * lanes_ + l]) << d.text << " wrote v" << r;
    }
  }

  int rounds() const { return int(10240 / lanes_) + 1; }

  const TargetInfo& target_;
  u32 lanes_;
  Machine m_;
  std::shared_ptr<Memory> memory_;
  u64 base_;
  uint8_t* data_;
  std::mt19937_64 random_{13};
};

TEST_P(MemoryInstructions, Global) {
  for (bool store : {false, true})
    for (const Access& a : store ? std::span<const Access>(kStores) : std::span<const Access>(kLoads)) {
      u32 n = (a.bytes + 3) / 4;
      std::string op = name(a, "global_"), data = vector(24, n), dst = vector(20, n);
      Decoded pair =
          decode(store ? op + " v[2:3], " + data + ", off offset:-16" : op + " " + dst + ", v[2:3], off offset:-16");
      check(a, store, pair, data_, rounds() / 2 + 1, [&](u32 l, u64 at) { m_.set_v64(2, int(l), base_ + at + 16); });
      m_.wave.write64(8, base_ - 1000);
      Decoded scalar =
          decode(store ? op + " v2, " + data + ", s[8:9] offset:40" : op + " " + dst + ", v2, s[8:9] offset:40");
      check(a, store, scalar, data_, rounds() / 2 + 1, [&](u32 l, u64 at) { m_.v(2, int(l)) = u32(at + 960); });
      Decoded flat = decode(store ? name(a, "flat_") + " v[2:3], " + data : name(a, "flat_") + " " + dst + ", v[2:3]");
      check(a, store, flat, data_, 20, [&](u32 l, u64 at) { m_.set_v64(2, int(l), base_ + at); });
      check(a, store, flat, m_.lds.data(), 20, [&](u32 l, u64 at) { m_.set_v64(2, int(l), (u64(1) << 48) + at); });
    }
}

TEST_P(MemoryInstructions, Buffer) {
  m_.wave.s[8] = u32(base_);
  m_.wave.s[9] = u32(base_ >> 32) & 0xffff;
  m_.wave.s[10] = kBytes;
  m_.wave.s[11] = target_.cdna ? 0x00020000 : 0x31004000;
  m_.wave.s[12] = 32;
  for (bool store : {false, true})
    for (const Access& a : store ? std::span<const Access>(kStores) : std::span<const Access>(kLoads)) {
      Decoded d = decode(name(a, "buffer_") + " " + vector(store ? 24 : 20, (a.bytes + 3) / 4) +
                         ", v2, s[8:11], s12 offen offset:16");
      check(a, store, d, data_, rounds(), [&](u32 l, u64 at) { m_.v(2, int(l)) = u32(at - 48); });
    }
}

TEST_P(MemoryInstructions, Lds) {
  const Access loads[] = {{"ds_read_u8", "ds_load_u8", 1, kLoads[0].convert},
                          {"ds_read_i8", "ds_load_i8", 1, kLoads[1].convert},
                          {"ds_read_u16", "ds_load_u16", 2, kLoads[2].convert},
                          {"ds_read_i16", "ds_load_i16", 2, kLoads[3].convert},
                          {"ds_read_u16_d16", "ds_load_u16_d16", 2, kLoads[8].convert},
                          {"ds_read_u16_d16_hi", "ds_load_u16_d16_hi", 2, kLoads[9].convert},
                          {"ds_read_b32", "ds_load_b32", 4},
                          {"ds_read_b64", "ds_load_b64", 8},
                          {"ds_read_b96", "ds_load_b96", 12},
                          {"ds_read_b128", "ds_load_b128", 16}};
  const Access stores[] = {{"ds_write_b8", "ds_store_b8", 1, kStores[0].convert},
                           {"ds_write_b16", "ds_store_b16", 2, kStores[2].convert},
                           {"ds_write_b16_d16_hi", "ds_store_b16_d16_hi", 2, kStores[3].convert},
                           {"ds_write_b32", "ds_store_b32", 4},
                           {"ds_write_b64", "ds_store_b64", 8},
                           {"ds_write_b96", "ds_store_b96", 12},
                           {"ds_write_b128", "ds_store_b128", 16}};
  for (const Access& a : loads)
    check(a, false, decode(name(a, "") + " " + vector(20, (a.bytes + 3) / 4) + ", v2 offset:24"), m_.lds.data(),
          rounds(), [&](u32 l, u64 at) { m_.v(2, int(l)) = u32(at - 24); });
  for (const Access& a : stores)
    check(a, true, decode(name(a, "") + " v2, " + vector(24, (a.bytes + 3) / 4) + " offset:24"), m_.lds.data(),
          rounds(), [&](u32 l, u64 at) { m_.v(2, int(l)) = u32(at - 24); });
}

TEST_P(MemoryInstructions, Scratch) {
  for (int form = 0; form < 3; ++form) {
    std::string address = form == 0 ? "off, s8" : form == 1 ? "v2, off" : "off, off";
    for (const Access& a : kLoads) {
      u32 n = (a.bytes + 3) / 4;
      Decoded d = decode(name(a, "scratch_") + " " + vector(20, n) + ", " + address + " offset:8");
      for (int round = 0; round < rounds(); ++round) {
        std::vector<uint8_t> unused(1);
        random_state(unused);
        for (auto& b : m_.scratch) b = uint8_t(random_());
        u32 common = u32(random_() % 200) / (round % 2 ? 4 : 1) * (round % 2 ? 4 : 1);
        m_.wave.s[8] = common;
        for (u32 l = 0; l < lanes_; ++l) m_.v(2, int(l)) = u32(random_() % 200);
        auto before = m_.snapshot();
        m_.run(d);
        for (u32 l = 0; l < lanes_; ++l) {
          u32 at = 8 + (form == 0 ? common : form == 1 ? before[2 * lanes_ + l] : 0);
          u32 value[4] = {};
          for (u32 b = 0; b < a.bytes; ++b)
            reinterpret_cast<uint8_t*>(value)[b] = m_.scratch[((at + b) / 4 * lanes_ + l) * 4 + (at + b) % 4];
          for (u32 k = 0; k < n; ++k) {
            u32 old = before[(20 + k) * lanes_ + l], want = !(m_.wave.exec() >> l & 1) ? old
                                                            : a.convert                ? a.convert(value[0], old)
                                                                                       : value[k];
            ASSERT_EQ(m_.v(int(20 + k), int(l)), want) << d.text << " lane " << l;
          }
        }
      }
    }
    for (const Access& a : kStores) {  // what was stored is loaded back, and nothing beside it changes
      u32 n = (a.bytes + 3) / 4;
      Decoded d = decode(name(a, "scratch_") +
                         (form == 0   ? " off, "
                          : form == 1 ? " v2, "
                                      : " off, ") +
                         vector(24, n) + (form == 0 ? ", s8" : ", off") + " offset:8");
      for (int round = 0; round < rounds(); ++round) {
        std::vector<uint8_t> unused(1);
        random_state(unused);
        for (auto& b : m_.scratch) b = uint8_t(random_());
        auto want = m_.scratch;
        m_.wave.s[8] = u32(random_() % 200);
        for (u32 l = 0; l < lanes_; ++l) {
          m_.v(2, int(l)) = u32(random_() % 200);
          if (!(m_.wave.exec() >> l & 1)) continue;
          u32 at = 8 + (form == 0 ? m_.wave.s[8] : form == 1 ? m_.v(2, int(l)) : 0);
          u32 value[4] = {};
          for (u32 k = 0; k < n; ++k) value[k] = m_.v(int(24 + k), int(l));
          if (a.convert) value[0] = a.convert(value[0], 0);
          for (u32 b = 0; b < a.bytes; ++b)
            want[((at + b) / 4 * lanes_ + l) * 4 + (at + b) % 4] = reinterpret_cast<uint8_t*>(value)[b];
        }
        m_.run(d);
        ASSERT_EQ(m_.scratch, want) << d.text;
      }
    }
  }
}

TEST_P(MemoryInstructions, Atomics) {
  struct Op {
    const char* gfx9;
    const char* gfx11;
    u64 (*apply)(u64 old, u64 x, int bits);
  };
  static auto sx = [](u64 x, int bits) { return static_cast<int64_t>(x << (64 - bits)) >> (64 - bits); };
  const Op ops[] = {{"swap", "swap_b", [](u64, u64 x, int) { return x; }},
                    {"add", "add_u", [](u64 a, u64 x, int) { return a + x; }},
                    {"sub", "sub_u", [](u64 a, u64 x, int) { return a - x; }},
                    {"smin", "min_i", [](u64 a, u64 x, int b) { return sx(a, b) < sx(x, b) ? a : x; }},
                    {"umin", "min_u", [](u64 a, u64 x, int) { return std::min(a, x); }},
                    {"smax", "max_i", [](u64 a, u64 x, int b) { return sx(a, b) > sx(x, b) ? a : x; }},
                    {"umax", "max_u", [](u64 a, u64 x, int) { return std::max(a, x); }},
                    {"and", "and_b", [](u64 a, u64 x, int) { return a & x; }},
                    {"or", "or_b", [](u64 a, u64 x, int) { return a | x; }},
                    {"xor", "xor_b", [](u64 a, u64 x, int) { return a ^ x; }},
                    {"inc", "inc_u", [](u64 a, u64 x, int) { return a >= x ? u64(0) : a + 1; }},
                    {"dec", "dec_u", [](u64 a, u64 x, int) { return a == 0 || a > x ? x : a - 1; }}};
  for (const Op& op : ops)
    for (int bits : {32, 64}) {
      std::string global =
          std::string("global_atomic_") +
          (target_.cdna ? op.gfx9 + std::string(bits == 64 ? "_x2" : "") : op.gfx11 + std::to_string(bits));
      std::string ret = target_.cdna ? " sc0" : " glc";
      u32 n = u32(bits) / 32;
      Decoded d = decode(global + " " + vector(20, n) + ", v[2:3], " + vector(24, n) + ", off" + ret);
      Decoded silent = decode(global + " v[2:3], " + vector(24, n) + ", off");
      for (int round = 0; round < rounds(); ++round) {
        std::vector<uint8_t> bytes(kBytes);
        random_state(bytes);
        if (round % 3 == 0) std::fill(bytes.begin(), bytes.end(), uint8_t(round % 2 ? 0 : 255));
        std::memcpy(data_, bytes.data(), kBytes);
        std::vector<u64> at(lanes_);
        for (u32 l = 0; l < lanes_; ++l)
          m_.set_v64(2, int(l),
                     base_ + (at[l] = (random_() % (round % 2 ? 64 : kBytes - 64)) / 8 * 8));  // collisions too
        auto before = m_.snapshot();
        try {
          m_.run(round % 4 ? d : silent);
        } catch (const FaultException& f) {
          FAIL() << d.text << ": " << f.message;
        }
        for (u32 l = 0; l < lanes_; ++l) {  // lanes take effect in ascending order
          u64 mask = bits == 64 ? ~u64(0) : 0xffffffff, old = 0,
              x = (u64(before[25 * lanes_ + l]) << 32 | before[24 * lanes_ + l]) & mask;
          bool active = m_.wave.exec() >> l & 1;
          std::memcpy(&old, &bytes[at[l]], n * 4);
          u64 next = op.apply(old, x, bits) & mask;
          if (active) std::memcpy(&bytes[at[l]], &next, n * 4);
          for (u32 k = 0; k < n; ++k)
            ASSERT_EQ(m_.v(int(20 + k), int(l)),
                      active && round % 4 ? u32(old >> 32 * k) : before[(20 + k) * lanes_ + l])
                << global << " lane " << l;
        }
        ASSERT_EQ(std::memcmp(data_, bytes.data(), kBytes), 0) << global;
      }
    }
}

TEST_P(MemoryInstructions, ScalarLoads) {
  const std::pair<const char*, u32> sizes9[] = {
      {"dword", 1}, {"dwordx2", 2}, {"dwordx4", 4}, {"dwordx8", 8}, {"dwordx16", 16}};
  const std::pair<const char*, u32> sizes11[] = {{"b32", 1}, {"b64", 2}, {"b128", 4}, {"b256", 8}, {"b512", 16}};
  for (int k = 0; k < 5; ++k) {
    auto [size, n] = target_.cdna ? sizes9[k] : sizes11[k];
    std::string dst = n == 1 ? "s20" : fmt::format("s[20:{}]", 19 + n);
    Decoded immediate = decode(fmt::format("s_load_{} {}, s[4:5], 0x40", size, dst));
    Decoded both = decode(fmt::format("s_load_{} {}, s[4:5], s8 offset:0x10", size, dst));
    for (int round = 0; round < 10240; ++round) {
      if (round % 64 == 0)
        for (u32 b = 0; b < kBytes; ++b) data_[b] = uint8_t(random_());
      u64 at = random_() % (kBytes - 512);  // the lowest two bits are ignored
      m_.wave.write64(4, base_ + at);
      m_.wave.s[8] = u32(random_() % 128);
      u64 from = (at + (round % 2 ? 0x40 : 0x10 + m_.wave.s[8])) / 4 * 4;
      m_.run(round % 2 ? immediate : both);
      ASSERT_EQ(std::memcmp(&m_.wave.s[20], data_ + from, n * 4), 0) << size;
    }
  }
}

// Raw buffers: lanes whose bytes do not all lie below num_records - soffset load 0 and store nothing.
TEST_P(MemoryInstructions, BufferRangeCheck) {
  m_.wave.s[8] = u32(base_);
  m_.wave.s[11] = target_.cdna ? 0x00020000 : 0x31004000;
  Access dword = kLoads[10], store = kStores[4];
  Decoded load = decode(name(dword, "buffer_") + " v20, v2, s[8:11], s12 offen offset:4"),
          write = decode(name(store, "buffer_") + " v24, v2, s[8:11], s12 offen offset:4");
  for (u32 stride : {0u, 4u}) {
    m_.wave.s[9] = (u32(base_ >> 32) & 0xffff) | (target_.cdna ? stride << 16 : 0);
    for (int round = 0; round < rounds(); ++round) {
      std::vector<uint8_t> bytes(kBytes);
      random_state(bytes);
      std::memcpy(data_, bytes.data(), kBytes);
      u32 records = m_.wave.s[10] = u32(random_() % 300), soffset = m_.wave.s[12] = u32(random_() % 200);
      for (u32 l = 0; l < lanes_; ++l) m_.v(2, int(l)) = u32(random_() % 300);
      auto before = m_.snapshot();
      m_.run(load);
      m_.run(write);
      for (u32 l = 0; l < lanes_; ++l) {
        int64_t offset = int64_t(before[2 * lanes_ + l]) + 4;
        bool active = m_.wave.exec() >> l & 1, inside = offset + 4 <= int64_t(records) - int64_t(soffset);
        u32 value = 0;
        std::memcpy(&value, &bytes[size_t(offset) + soffset], 4);
        ASSERT_EQ(m_.v(20, int(l)), !active ? before[20 * lanes_ + l] : inside ? value : 0);
      }
      for (u32 l = 0; l < lanes_; ++l) {
        size_t at = before[2 * lanes_ + l] + 4 + soffset;
        if ((m_.wave.exec() >> l & 1) && before[2 * lanes_ + l] + 8 + soffset <= records)
          std::memcpy(&bytes[at], &before[24 * lanes_ + l], 4);
      }
      ASSERT_EQ(std::memcmp(data_, bytes.data(), kBytes), 0);
    }
  }
}

TEST_P(MemoryInstructions, LoadToLds) {
  if (!target_.cdna) GTEST_SKIP() << "RDNA3 has no LDS DMA";
  m_.wave.s[8] = u32(base_), m_.wave.s[9] = u32(base_ >> 32), m_.wave.s[10] = 4000, m_.wave.s[11] = 0x00020000;
  Decoded d = decode("buffer_load_dword v2, s[8:11], 0 offen offset:8 lds");
  for (int round = 0; round < rounds(); ++round) {
    std::vector<uint8_t> bytes(kBytes);
    random_state(bytes);
    std::memcpy(data_, bytes.data(), kBytes);
    for (auto& b : m_.lds) b = uint8_t(random_());
    auto want = m_.lds;
    m_.wave.s[cell::kM0] = u32(random_() % 64 * 64);
    for (u32 l = 0; l < lanes_; ++l) {
      u32 at = m_.v(2, int(l)) = round % 2 ? l * 4 : u32(random_() % 1200 * 4), value = 0;
      if (at + 12 <= 4000) std::memcpy(&value, &bytes[at + 8], 4);
      if (m_.wave.exec() >> l & 1) std::memcpy(&want[m_.wave.s[cell::kM0] + 8 + l * 4], &value, 4);
    }
    m_.run(d);
    ASSERT_EQ(m_.lds, want);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, MemoryInstructions,
                         ::testing::Values(Arch::kGfx942, Arch::kGfx950, Arch::kGfx1100, Arch::kGfx1151),
                         [](const auto& info) { return std::string(target_info(info.param).name); });

}  // namespace
}  // namespace crest_sim::test
