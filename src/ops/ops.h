#pragma once

// All operators.
#include "ops/activation/activation.h"
#include "ops/attention/attention.h"
#include "ops/attention/output_gate.h"
#include "ops/embedding/embedding.h"
#include "ops/gemm/linear.h"
#include "ops/kv_cache/kv_cache.h"
#include "ops/linear_attention/causal_conv1d.h"
#include "ops/linear_attention/gated_delta.h"
#include "ops/moe/moe.h"
#include "ops/norm/norm.h"
#include "ops/quant/rotation.h"
#include "ops/rope/rope.h"
#include "ops/sampling/sampling.h"
