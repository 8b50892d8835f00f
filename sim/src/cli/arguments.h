// Kernel arguments as the command line gives them, and the buffers behind them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/values.h"
#include "crest_sim/device.h"

namespace crest_sim::cli {

/// --arg: "f32=0.5" (a value), "f32:1000:random" (a buffer of 1000 elements), "f32:@in.npy", "@in.npy" (a buffer from a
/// file), "same:0" (the buffer of argument 0 again), "null", "pad:12" (unused bytes, for kernels without metadata).
struct ArgumentSpec {
  enum class Kind : uint8_t { kValue, kBuffer, kSame, kNull, kPad } kind = Kind::kValue;
  std::string text;  ///< as given
  Format format{Type::kF32, false};
  std::vector<uint8_t> bytes;  ///< kValue: the value; kBuffer: contents at the start
  bool unwritten = false;      ///< kBuffer without a fill: zeros that the kernel is not meant to read
  size_t number = 0;           ///< kSame: which argument; kPad: bytes
};

Result<ArgumentSpec> parse_argument(const std::string& text, Arch arch, uint64_t seed);

/// A buffer placed in device memory.
struct PlacedBuffer {
  size_t argument = 0;
  Format format{Type::kF32, false};
  uint64_t address = 0;
  size_t bytes = 0;
  bool unwritten = false;

  std::span<uint8_t> contents() const { return {reinterpret_cast<uint8_t*>(address), bytes}; }
};

struct BoundArguments {
  std::vector<uint8_t> bytes;  ///< of the kernel argument segment
  std::vector<PlacedBuffer> buffers;

  const PlacedBuffer* buffer_of(size_t argument) const;
};

/// Compares with the kernel's metadata (number, size, pointer or value) and places the buffers.
Result<BoundArguments> bind_arguments(const Kernel& kernel, const std::vector<ArgumentSpec>& specs, Memory& memory);

/// "arg 0: a, pointer (8 bytes at 0)", one line per explicit argument.
std::string describe_arguments(const Kernel& kernel);

}  // namespace crest_sim::cli
