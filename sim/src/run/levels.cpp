#include "run/levels.h"

#include <cstdlib>
#include <vector>

namespace crest_sim {

#define CREST_SIM_DECLARE(level) \
  namespace level_##level {      \
    extern const Level kLevel;   \
  }
#if CREST_SIM_HAVE_V2
CREST_SIM_DECLARE(v2)
#endif
#if CREST_SIM_HAVE_V3
CREST_SIM_DECLARE(v3)
#endif
#if CREST_SIM_HAVE_V4
CREST_SIM_DECLARE(v4)
#endif
#undef CREST_SIM_DECLARE

namespace {

const Level& choose() {
  std::vector<const Level*> usable;
  __builtin_cpu_init();
#if CREST_SIM_HAVE_V2
  usable.push_back(&level_v2::kLevel);
#endif
#if CREST_SIM_HAVE_V3
  if (usable.empty() || __builtin_cpu_supports("x86-64-v3")) usable.push_back(&level_v3::kLevel);
#endif
#if CREST_SIM_HAVE_V4
  if (usable.empty() || __builtin_cpu_supports("x86-64-v4")) usable.push_back(&level_v4::kLevel);
#endif
  const char* wanted = std::getenv("CREST_SIM_LEVEL");
  for (const Level* level : usable)
    if (wanted && level->name == wanted) return *level;
  return *usable.back();
}

}  // namespace

const Level& levels() {
  static const Level& level = choose();
  return level;
}

}  // namespace crest_sim
