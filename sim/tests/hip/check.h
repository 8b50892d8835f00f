// The programs of this folder are whole HIP programs: host and device code in one file, no part of the simulator in
// them. Each returns 0 if everything was right and says what was not.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

#define REQUIRE(condition)                                                           \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (0)

#define HIP(call)                                                                                          \
  do {                                                                                                     \
    hipError_t hip_status = (call);                                                                        \
    if (hip_status != hipSuccess) {                                                                        \
      std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call, hipGetErrorName(hip_status), \
                   hipGetErrorString(hip_status));                                                         \
      std::exit(1);                                                                                        \
    }                                                                                                      \
  } while (0)
