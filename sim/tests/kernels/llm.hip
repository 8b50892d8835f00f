#include "gpu.h"
// Kernels of a language model beyond the basic ones, written plainly: any sizes, one workgroup of 128 per row unless
// the name says otherwise.

#define GROUP 128
#define KERNEL extern "C" __global__ LB(GROUP) void

DEV float exp_(float x) { return exp2_(x * 1.44269504f); }
DEV float sigmoid_(float x) { return rcp_(1.f + exp_(-x)); }

// Sum and maximum over the workgroup; every thread gets the result.
DEV float group_sum(float x, float* shared) {
  x = wave_sum(x);
  if ((tid() & (WAVE - 1)) == 0) shared[tid() / WAVE] = x;
  sync();
  float t = 0;
  for (int k = 0; k < GROUP / WAVE; k++) t += shared[k];
  sync();
  return t;
}
DEV float group_max(float x, float* shared) {
  x = wave_max(x);
  if ((tid() & (WAVE - 1)) == 0) shared[tid() / WAVE] = x;
  sync();
  float t = shared[0];
  for (int k = 1; k < GROUP / WAVE; k++) t = __builtin_fmaxf(t, shared[k]);
  sync();
  return t;
}

// residual += x; y = rmsnorm(residual) * w
KERNEL add_rmsnorm(const float* x, float* residual, const float* w, float* y, int n, float eps) {
  __shared__ float shared[GROUP / WAVE];
  x += (u64)bidx() * n, residual += (u64)bidx() * n, y += (u64)bidx() * n;
  float s = 0;
  for (int i = tid(); i < n; i += GROUP) {
    float v = residual[i] + x[i];
    residual[i] = v;
    s += v * v;
  }
  float r = rsq_(group_sum(s, shared) / (float)n + eps);
  for (int i = tid(); i < n; i += GROUP) y[i] = residual[i] * r * w[i];
}
KERNEL layernorm(const float* x, const float* w, const float* b, float* y, int n, float eps) {
  __shared__ float shared[GROUP / WAVE];
  x += (u64)bidx() * n, y += (u64)bidx() * n;
  float s = 0;
  for (int i = tid(); i < n; i += GROUP) s += x[i];
  float mean = group_sum(s, shared) / (float)n;
  s = 0;
  for (int i = tid(); i < n; i += GROUP) s += (x[i] - mean) * (x[i] - mean);
  float r = rsq_(group_sum(s, shared) / (float)n + eps);
  for (int i = tid(); i < n; i += GROUP) y[i] = (x[i] - mean) * r * w[i] + b[i];
}
KERNEL gelu_tanh(const float* x, float* y, int n) {
  int i = bidx() * GROUP + tid();
  if (i >= n) return;
  float v = x[i], t = 0.7978845608f * (v + 0.044715f * v * v * v);
  y[i] = v * (1.f - rcp_(1.f + exp_(2.f * t)));
}
KERNEL swiglu_f16(const f16* gate, const f16* up, f16* y, int n, float limit) {
  int i = bidx() * GROUP + tid();
  if (i >= n) return;
  float g = __builtin_fminf((float)gate[i], limit), u = (float)up[i];
  u = __builtin_fmaxf(__builtin_fminf(u, limit), -limit);
  y[i] = (f16)(g * sigmoid_(1.702f * g) * (u + 1.f));
}
// pairs (2i, 2i + 1)
KERNEL rope_pairs(float* q, const float* cosine, const float* sine, int dim) {
  for (int i = tid(); i < dim / 2; i += GROUP) {
    float* p = q + (u64)bidx() * dim + 2 * i;
    float c = cosine[bidx() * (dim / 2) + i], s = sine[bidx() * (dim / 2) + i], a = p[0], b = p[1];
    p[0] = a * c - b * s;
    p[1] = a * s + b * c;
  }
}
KERNEL embed(const int* ids, const u16* table, float* y, int dim, float scale) {
  for (int i = tid(); i < dim; i += GROUP) y[(u64)bidx() * dim + i] = bf2f(table[(u64)ids[bidx()] * dim + i]) * scale;
}
KERNEL row_argmax(const float* x, int* out, int n) {
  __shared__ float best[GROUP];
  __shared__ int place[GROUP];
  x += (u64)bidx() * n;
  float b = -__builtin_inff();
  int at = 0;
  for (int i = tid(); i < n; i += GROUP)
    if (x[i] > b) b = x[i], at = i;
  best[tid()] = b, place[tid()] = at;
  for (int step = GROUP / 2; step; step /= 2) {
    sync();
    if (tid() < step) {
      float other = best[tid() + step];
      int where = place[tid() + step];
      if (other > best[tid()] || (other == best[tid()] && where < place[tid()]))
        best[tid()] = other, place[tid()] = where;
    }
  }
  if (tid() == 0) out[bidx()] = place[0];
}
// the k largest of n <= 1024 values, in order
KERNEL top_k(const float* x, int* out, float* value, int n, int k) {
  __shared__ float v[1024];
  __shared__ float shared[GROUP / WAVE];
  __shared__ int found;
  x += (u64)bidx() * n;
  for (int i = tid(); i < n; i += GROUP) v[i] = x[i];
  sync();
  for (int r = 0; r < k; ++r) {
    float m = -__builtin_inff();
    for (int i = tid(); i < n; i += GROUP) m = __builtin_fmaxf(m, v[i]);
    m = group_max(m, shared);
    if (tid() == 0) found = n;
    sync();
    for (int i = tid(); i < n; i += GROUP)
      if (v[i] == m) __hip_atomic_fetch_min(&found, i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    sync();
    if (tid() == 0) {
      out[bidx() * k + r] = found, value[bidx() * k + r] = m;
      v[found] = -__builtin_inff();
    }
    sync();
  }
}
// softmax over experts, the two largest probabilities renormalised; one thread per token
KERNEL gate_top2(const float* logits, int* expert, float* weight, int tokens, int experts) {
  int t = bidx() * GROUP + tid();
  if (t >= tokens) return;
  const float* x = logits + (u64)t * experts;
  int a = 0, b = -1;
  for (int e = 1; e < experts; ++e)
    if (x[e] > x[a])
      b = a, a = e;
    else if (b < 0 || x[e] > x[b])
      b = e;
  float second = exp_(x[b] - x[a]);
  expert[2 * t] = a, expert[2 * t + 1] = b;
  weight[2 * t] = 1.f / (1.f + second), weight[2 * t + 1] = second / (1.f + second);
}
// counting sort of tokens by expert, one workgroup; stable within an expert is not promised
KERNEL sort_experts(const int* expert, int* first, int* order, int n, int experts) {
  __shared__ int count[64];
  __shared__ int next[64];
  if (tid() < 64) count[tid()] = 0;
  sync();
  for (int i = tid(); i < n; i += GROUP)
    __hip_atomic_fetch_add(&count[expert[i]], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  sync();
  if (tid() == 0) {
    int sum = 0;
    for (int e = 0; e < experts; ++e) {
      first[e] = next[e] = sum;
      sum += count[e];
    }
    first[experts] = sum;
  }
  sync();
  for (int i = tid(); i < n; i += GROUP)
    order[__hip_atomic_fetch_add(&next[expert[i]], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)] = i;
}
// inclusive prefix sum of a row of any length
KERNEL prefix_sum(const u32* x, u32* y, int n) {
  __shared__ u32 part[GROUP];
  x += (u64)bidx() * n, y += (u64)bidx() * n;
  u32 carry = 0;
  for (int base = 0; base < n; base += GROUP) {
    int i = base + tid();
    u32 v = i < n ? x[i] : 0;
    part[tid()] = v;
    for (int step = 1; step < GROUP; step *= 2) {
      sync();
      u32 left = tid() >= step ? part[tid() - step] : 0;
      sync();
      part[tid()] += left;
    }
    sync();
    if (i < n) y[i] = carry + part[tid()];
    carry += part[GROUP - 1];
    sync();
  }
}
KERNEL transpose(const float* x, float* y, int rows, int columns) {
  __shared__ float tile[32][33];
  int r0 = bidy() * 32, c0 = bidx() * 32;
  for (int r = tid() / 32; r < 32; r += GROUP / 32)
    if (r0 + r < rows && c0 + tid() % 32 < columns) tile[r][tid() % 32] = x[(u64)(r0 + r) * columns + c0 + tid() % 32];
  sync();
  for (int c = tid() / 32; c < 32; c += GROUP / 32)
    if (c0 + c < columns && r0 + tid() % 32 < rows) y[(u64)(c0 + c) * rows + r0 + tid() % 32] = tile[tid() % 32][c];
}
// writes one token's key or value into its page; slot < 0: the token is padding
KERNEL kv_write(const float* x, u16* cache, const int* slots, int dim, int page_size) {
  int slot = slots[bidx()];
  if (slot < 0) return;
  u16* to = cache + ((u64)(slot / page_size) * page_size + slot % page_size) * dim;
  for (int i = tid(); i < dim; i += GROUP) to[i] = f2bf(x[(u64)bidx() * dim + i]);
}
// one query, paged keys and values, online softmax; one workgroup per (head, sequence), dim <= GROUP
KERNEL paged_decode(const float* q, const u16* keys, const u16* values, const int* table, const int* lengths,
                    float* out, int dim, int page_size, int pages, float scale) {
  __shared__ float shared[GROUP / WAVE];
  int head = bidx(), heads = ((const u32*)__builtin_amdgcn_implicitarg_ptr())[0], sequence = bidy(), d = tid();
  u64 at = ((u64)sequence * heads + head) * dim;
  float query = d < dim ? q[at + d] : 0.f, top = -__builtin_inff(), sum = 0, o = 0;
  for (int t = 0; t < lengths[sequence]; ++t) {
    u64 row = ((u64)table[sequence * pages + t / page_size] * page_size + t % page_size) * heads + head;
    float s = group_sum(d < dim ? query * bf2f(keys[row * dim + d]) : 0.f, shared) * scale;
    float larger = __builtin_fmaxf(top, s), keep = exp_(top - larger), p = exp_(s - larger);
    sum = sum * keep + p;
    o = o * keep + (d < dim ? p * bf2f(values[row * dim + d]) : 0.f);
    top = larger;
  }
  if (d < dim) out[at + d] = sum > 0 ? o / sum : 0.f;
}
// blocks of 32 nibbles with an f16 scale: w = (nibble - 8) * scale, low nibbles first
KERNEL gemv_q4(const u8* nibbles, const f16* scales, const float* x, float* y, int k) {
  __shared__ float shared[GROUP / WAVE];
  float s = 0;
  for (int b = tid(); b < k / 32; b += GROUP) {
    u64 block = (u64)bidx() * (k / 32) + b;
    float t = 0;
    for (int j = 0; j < 16; ++j) {
      int n = nibbles[block * 16 + j];
      t += (float)((n & 15) - 8) * x[b * 32 + j] + (float)((n >> 4) - 8) * x[b * 32 + 16 + j];
    }
    s += t * (float)scales[block];
  }
  s = group_sum(s, shared);
  if (tid() == 0) y[bidx()] = s;
}
KERNEL gemv_bf16(const u16* w, const float* x, float* y, int k) {
  __shared__ float shared[GROUP / WAVE];
  float s = 0;
  for (int i = tid(); i < k; i += GROUP) s += bf2f(w[(u64)bidx() * k + i]) * x[i];
  s = group_sum(s, shared);
  if (tid() == 0) y[bidx()] = s;
}
// C = A B, tiles of 16 x 8 outputs
KERNEL gemm_f32(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float ta[8][17];
  __shared__ float tb[16][17];
  int x = tid() % 16, y = tid() / 16, row = bidy() * 8 + y, column = bidx() * 16 + x;
  float s = 0;
  for (int base = 0; base < k; base += 16) {
    ta[y][x] = row < m && base + x < k ? a[(u64)row * k + base + x] : 0.f;
    for (int r = y; r < 16; r += 8) tb[r][x] = base + r < k && column < n ? b[(u64)(base + r) * n + column] : 0.f;
    sync();
    for (int t = 0; t < 16; ++t) s += ta[y][t] * tb[t][x];
    sync();
  }
  if (row < m && column < n) c[(u64)row * n + column] = s;
}
KERNEL quantise_rows(const float* x, i8* q, float* scale, int n) {
  __shared__ float shared[GROUP / WAVE];
  x += (u64)bidx() * n, q += (u64)bidx() * n;
  float m = 0;
  for (int i = tid(); i < n; i += GROUP) m = __builtin_fmaxf(m, __builtin_fabsf(x[i]));
  m = group_max(m, shared);
  float d = m / 127.f;
  if (tid() == 0) scale[bidx()] = d;
  for (int i = tid(); i < n; i += GROUP) q[i] = m > 0 ? (i8)__builtin_rintf(x[i] / d) : (i8)0;
}
KERNEL dequantise_q4(const u8* nibbles, const f16* scales, f16* y, int n) {
  int i = bidx() * GROUP + tid();
  if (i >= n / 2) return;
  int block = i / 16, j = i % 16, v = nibbles[i];
  f16 s = scales[block];
  y[block * 32 + j] = (f16)((float)((v & 15) - 8) * (float)s);
  y[block * 32 + 16 + j] = (f16)((float)((v >> 4) - 8) * (float)s);
}
// Walsh-Hadamard transform of rows of 128 through LDS
KERNEL hadamard(float* x) {
  __shared__ float v[GROUP];
  x += (u64)bidx() * GROUP;
  float mine = x[tid()];
  for (int step = 1; step < GROUP; step *= 2) {
    v[tid()] = mine;
    sync();
    float other = v[tid() ^ step];
    mine = tid() & step ? other - mine : mine + other;
    sync();
  }
  x[tid()] = mine * 0.08838834764831845f;
}
// depthwise convolution of width 4 over time with SiLU; state holds the three inputs before the first
KERNEL conv_step(const float* x, float* state, const float* w, float* y, int channels, int steps) {
  int c = bidx() * GROUP + tid();
  if (c >= channels) return;
  float a = state[c * 3], b = state[c * 3 + 1], d = state[c * 3 + 2];
  for (int t = 0; t < steps; ++t) {
    float v = x[(u64)t * channels + c], s = a * w[c * 4] + b * w[c * 4 + 1] + d * w[c * 4 + 2] + v * w[c * 4 + 3];
    y[(u64)t * channels + c] = s * sigmoid_(s);
    a = b, b = d, d = v;
  }
  state[c * 3] = a, state[c * 3 + 1] = b, state[c * 3 + 2] = d;
}
// gated delta rule, one step: S = g S + b k (v - g k·S); o = q·S. Thread d owns column d of the state [keys][GROUP].
KERNEL delta_step(const float* q, const float* k, const float* v, const float* gate, const float* beta, float* state,
                  float* out, int keys) {
  u64 head = bidx();
  float* s = state + head * keys * GROUP;
  float g = exp_(gate[head]), b = beta[head], memory = 0, o = 0;
  for (int i = 0; i < keys; ++i) memory += k[head * keys + i] * s[i * GROUP + tid()] * g;
  float delta = b * (v[head * GROUP + tid()] - memory);
  for (int i = 0; i < keys; ++i) {
    float n = s[i * GROUP + tid()] * g + k[head * keys + i] * delta;
    s[i * GROUP + tid()] = n;
    o += q[head * keys + i] * n;
  }
  out[head * GROUP + tid()] = o;
}
KERNEL histogram(const u8* x, u32* out, int n) {
  __shared__ u32 h[256];
  for (int i = tid(); i < 256; i += GROUP) h[i] = 0;
  sync();
  for (int i = bidx() * GROUP + tid(); i < n; i += GROUP * 4)
    __hip_atomic_fetch_add(&h[x[i]], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  sync();
  for (int i = tid(); i < 256; i += GROUP)
    if (h[i]) __hip_atomic_fetch_add(&out[i], h[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
// sorts 256 keys ascending
KERNEL bitonic_sort(u32* x) {
  __shared__ u32 v[256];
  x += (u64)bidx() * 256;
  v[tid()] = x[tid()], v[tid() + 128] = x[tid() + 128];
  for (u32 size = 2; size <= 256; size *= 2)
    for (u32 step = size / 2; step; step /= 2) {
      sync();
      u32 i = 2 * tid() - (tid() & (step - 1)), a = v[i], b = v[i + step];
      bool up = (i & size) == 0;
      if ((a > b) == up) v[i] = b, v[i + step] = a;
    }
  sync();
  x[tid()] = v[tid()], x[tid() + 128] = v[tid() + 128];
}
KERNEL log_sum_exp(const float* x, float* y, int n) {
  __shared__ float shared[GROUP / WAVE];
  x += (u64)bidx() * n;
  float m = -__builtin_inff(), s = 0;
  for (int i = tid(); i < n; i += GROUP) m = __builtin_fmaxf(m, x[i]);
  m = group_max(m, shared);
  for (int i = tid(); i < n; i += GROUP) s += exp_(x[i] - m);
  s = group_sum(s, shared);
  if (tid() == 0) y[bidx()] = m + log2_(s) * 0.69314718056f;
}
// index of the first element whose running sum of integer weights exceeds the threshold of its row
KERNEL sample(const u32* weight, const u32* threshold, int* out, int n) {
  __shared__ u32 part[GROUP];
  weight += (u64)bidx() * n;
  int share = (n + GROUP - 1) / GROUP, begin = tid() * share, end = begin + share < n ? begin + share : n;
  u32 s = 0;
  for (int i = begin; i < end; ++i) s += weight[i];
  part[tid()] = s;
  sync();
  u32 before = 0;
  for (int t = 0; t < (int)tid(); ++t) before += part[t];
  for (int i = begin; i < end; ++i) {
    if (before <= threshold[bidx()] && before + weight[i] > threshold[bidx()]) out[bidx()] = i;
    before += weight[i];
  }
}
// joins partial attention outputs by their log-sum-exp
KERNEL merge_splits(const float* part, const float* lse, float* out, int splits, int dim) {
  float m = -__builtin_inff(), s = 0;
  for (int k = 0; k < splits; ++k) m = __builtin_fmaxf(m, lse[bidx() * splits + k]);
  for (int k = 0; k < splits; ++k) s += exp_(lse[bidx() * splits + k] - m);
  for (int d = tid(); d < dim; d += GROUP) {
    float o = 0;
    for (int k = 0; k < splits; ++k)
      o += exp_(lse[bidx() * splits + k] - m) * part[((u64)bidx() * splits + k) * dim + d];
    out[(u64)bidx() * dim + d] = o / s;
  }
}
typedef _Float16 f16x2 __attribute__((ext_vector_type(2)));
KERNEL axpy_f16(const f16x2* x, f16x2* y, f16 a, int pairs) {
  int i = bidx() * GROUP + tid();
  if (i < pairs) y[i] = __builtin_elementwise_fma((f16x2){a, a}, x[i], y[i]);
}
// keeps the odd values, order within a wave kept
KERNEL compact_odd(const u32* x, u32* out, u32* count, int n) {
  int i = bidx() * GROUP + tid();
  bool keep = i < n && (x[i] & 1);
  u64 votes = WAVE == 64 ? __builtin_amdgcn_ballot_w64(keep) : __builtin_amdgcn_ballot_w32(keep);
  u32 before = __builtin_popcountll(votes & ((1ull << (tid() & (WAVE - 1))) - 1));
  u32 base = 0;
  if ((tid() & (WAVE - 1)) == 0)
    base = __hip_atomic_fetch_add(count, (u32)__builtin_popcountll(votes), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  base = __builtin_amdgcn_readfirstlane(base);
  if (keep) out[base + before] = x[i];
}
KERNEL hash64(const u64* x, u64* y, u64 modulus, int n) {
  int i = bidx() * GROUP + tid();
  if (i >= n) return;
  u64 h = x[i];
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdull;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ull;
  h ^= h >> 33;
  y[i] = h % modulus;
}
// maximum of floats by compare-and-swap
KERNEL cas_max(const float* x, u32* best, int n) {
  int i = bidx() * GROUP + tid();
  if (i >= n) return;
  u32 old = __hip_atomic_load(best, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  while (x[i] > __builtin_bit_cast(float, old) &&
         !__hip_atomic_compare_exchange_strong(best, &old, __builtin_bit_cast(u32, x[i]), __ATOMIC_RELAXED,
                                               __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) {
  }
}
// repetition penalty on the logits of tokens seen before, each of them once
KERNEL penalise(float* logits, const int* seen, int count, float penalty) {
  for (int i = tid(); i < count; i += GROUP) {
    float v = logits[seen[i]];
    logits[seen[i]] = v > 0 ? v / penalty : v * penalty;
  }
}
KERNEL dot_double(const double* a, const double* b, double* out, int n) {
  __shared__ double part[GROUP];
  double s = 0;
  for (int i = tid(); i < n; i += GROUP) s = __builtin_fma(a[i], b[i], s);
  part[tid()] = s;
  for (int step = GROUP / 2; step; step /= 2) {
    sync();
    if (tid() < step) part[tid()] += part[tid() + step];
  }
  if (tid() == 0) *out = part[0];
}
// copies bytes between unaligned places
KERNEL copy_bytes(const u8* from, u8* to, int n) {
  for (int i = bidx() * GROUP + tid(); i < n; i += GROUP * 3) to[i] = from[i];
}
// one step of a small interpreter per thread: a switch with many cases
KERNEL interpret(const u8* code, const int* input, int* out, int steps) {
  u32 a = input[tid()], b = tid();
  for (int s = 0; s < steps; ++s) {
    switch (code[(s + tid()) % steps]) {
      case 0:
        a += b;
        break;
      case 1:
        b ^= a << 3;
        break;
      case 2:
        a = a * 31 + 7;
        break;
      case 3:
        b = b >> 5 | b << 27;
        break;
      case 4:
        a -= b;
        break;
      case 5:
        b = (int)a / (int)(1 + (b & 15));
        break;
      case 6:
        a = (int)a < (int)b ? a : b;
        break;
      default:
        a ^= b;
        break;
    }
  }
  out[tid()] = a ^ b;
}
