#include "hip/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

namespace crest_sim::hip {
namespace {

constexpr size_t kMaxDevices = 64;

std::string known_targets() {
  std::string names;
  for (const TargetInfo& t : all_targets()) names += (names.empty() ? "" : ", ") + std::string(t.name);
  return names;
}

Status read_number(const char* name, uint64_t least, uint64_t most, uint64_t& out) {
  const char* text = std::getenv(name);
  if (!text || !*text) return Unit{};
  std::string_view view(text);
  uint64_t value = 0;
  auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < least || value > most)
    return Error{fmt::format("{}={}: allowed are {} to {}", name, text, least, most)};
  out = value;
  return Unit{};
}

Status read_devices(std::vector<Arch>& out) {
  const char* text = std::getenv("CREST_SIM_DEVICES");
  std::string_view rest = text && *text ? text : "gfx942";
  while (true) {
    size_t comma = rest.find(',');
    std::string_view name = rest.substr(0, comma);
    auto arch = parse_arch(name);
    if (!arch) return Error{fmt::format("CREST_SIM_DEVICES={}: \"{}\" is not one of {}", text, name, known_targets())};
    out.push_back(*arch);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (out.size() > kMaxDevices)
    return Error{fmt::format("CREST_SIM_DEVICES names {} devices; at most {}", out.size(), kMaxDevices)};
  return Unit{};
}

}  // namespace

Result<Options> options_from_environment() {
  Options o;
  uint64_t threads = 0, strict = 0, follow = 0, gib = 0;
  for (const Status& s :
       {read_devices(o.devices), read_number("CREST_SIM_THREADS", 0, 1024, threads),
        read_number("CREST_SIM_STRICT_MATRIX", 0, 1, strict), read_number("CREST_SIM_FOLLOW_APPROXIMATE", 0, 1, follow),
        read_number("CREST_SIM_MAX_INSTRUCTIONS", 0, ~uint64_t(0), o.max_wave_instructions),
        read_number("CREST_SIM_MEMORY_GIB", 1, 1024, gib)})
    if (!s) return Error{s.error()};
  o.threads = static_cast<int>(threads);
  o.strict_matrix = strict != 0;
  o.follow_approximate = follow != 0;
  if (const char* checks = std::getenv("CREST_SIM_CHECKS")) {
    auto parsed = CheckOptions::parse(checks);
    if (!parsed) return Error{fmt::format("CREST_SIM_CHECKS={}: {}", checks, parsed.error())};
    o.checks = *parsed;
  }
  if (const char* file = std::getenv("CREST_SIM_REPORT")) o.report_file = file;
  o.memory_bytes = gib << 30;
  return o;
}

}  // namespace crest_sim::hip
