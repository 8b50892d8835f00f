// Pairs of kernels: NAME has one fault, at the label at_NAME; NAME_ok is the same kernel without it.
// Arguments: out (8 bytes), in (8 bytes).

#ifdef CDNA
#define LANES 64
#define WORD3 0x00027000
#define VCC vcc
#else
#define LANES 32
#define WORD3 0x31004000
#define VCC vcc_lo
#endif

.macro begin name
  .text
  .globl \name
  .p2align 8
  .type \name,@function
\name:
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
.endm

.macro finish name
  s_endpgm
.Lend_\name:
  .size \name, .Lend_\name-\name
  .rodata
  .p2align 6
  .amdhsa_kernel \name
    .amdhsa_next_free_vgpr 64
    .amdhsa_next_free_sgpr 32
    .amdhsa_group_segment_fixed_size 4096
    .amdhsa_kernarg_size 16
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_user_sgpr_count 2
    .amdhsa_system_sgpr_workgroup_id_x 1
#ifdef CDNA
    .amdhsa_accum_offset 64
#else
    .amdhsa_wavefront_size32 1
#endif
  .end_amdhsa_kernel
  .text
.endm

.macro store_and_finish name, register
  global_store_dword v1, \register, s[4:5]
  finish \name
.endm

.macro zero first, count
  .set i, \first
  .rept \count
  v_mov_b32 v[i], 0
  .set i, i+1
  .endr
  s_nop 4
.endm

// A load is used at once.
.macro wait_load name, ok
  begin \name
  global_load_dword v2, v1, s[6:7]
  .if \ok
  s_waitcnt vmcnt(0)
  .endif
at_\name:
  v_mov_b32 v3, v2
  store_and_finish \name, v3
.endm
wait_load wait_load, 0
wait_load wait_load_ok, 1

// Of two loads only the first is waited for.
.macro wait_weak name, ok
  begin \name
  global_load_dword v2, v1, s[6:7]
  global_load_dword v3, v1, s[6:7]
  .if \ok
  s_waitcnt vmcnt(0)
  .else
  s_waitcnt vmcnt(1)
  .endif
at_\name:
  v_or_b32 v4, v2, v3
  store_and_finish \name, v4
.endm
wait_weak wait_weak, 0
wait_weak wait_weak_ok, 1

// vmcnt counts loads only on RDNA3, loads and stores on CDNA: one operation behind the load may be left.
.macro wait_store name, ok
  begin \name
  v_mov_b32 v5, 0
  global_load_dword v2, v1, s[6:7]
  global_store_dword v1, v5, s[4:5]
#ifdef CDNA
  .if \ok
  s_waitcnt vmcnt(1)
  .else
  s_waitcnt vmcnt(2)
  .endif
#else
  .if \ok
  s_waitcnt vmcnt(0)
  .else
  s_waitcnt vmcnt(1)
  s_waitcnt_vscnt null, 0x0
  .endif
#endif
at_\name:
  v_mov_b32 v3, v2
  store_and_finish \name, v3
.endm
wait_store wait_store, 0
wait_store wait_store_ok, 1

.macro wait_lds name, ok
  begin \name
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  ds_read_b32 v2, v1
  .if \ok
  s_waitcnt lgkmcnt(0)
  .else
  s_waitcnt vmcnt(0)
  .endif
at_\name:
  v_mov_b32 v3, v2
  store_and_finish \name, v3
.endm
wait_lds wait_lds, 0
wait_lds wait_lds_ok, 1

// Scalar loads return in any order: a wait for all but one proves nothing.
.macro wait_scalar name, ok
  begin \name
  s_load_dword s8, s[6:7], 0x0
  s_load_dword s9, s[6:7], 0x4
  .if \ok
  s_waitcnt lgkmcnt(0)
  .else
  s_waitcnt lgkmcnt(1)
  .endif
at_\name:
  s_add_u32 s10, s8, 1
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v3, s10
  store_and_finish \name, v3
.endm
wait_scalar wait_scalar, 0
wait_scalar wait_scalar_ok, 1

// The load arrives after the register got another value.
.macro wait_overwrite name, ok
  begin \name
  global_load_dword v2, v1, s[6:7]
  .if \ok
  s_waitcnt vmcnt(0)
  .endif
at_\name:
  v_mov_b32 v2, 0
  s_waitcnt vmcnt(0)
  store_and_finish \name, v2
.endm
wait_overwrite wait_overwrite, 0
wait_overwrite wait_overwrite_ok, 1

// Two waves exchange through LDS without a barrier.
.macro lds_race name, ok
  begin \name
from_\name:
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  .if \ok
  s_barrier
  .endif
  v_xor_b32 v2, LANES*4, v1
at_\name:
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  .if \ok
  global_store_dword v1, v3, s[4:5]
  .endif
  finish \name
.endm
lds_race lds_race, 0
lds_race lds_race_ok, 1

// Two waves write one dword; the correct one writes halves of it.
.macro lds_write_race name, ok
  begin \name
  v_readfirstlane_b32 s8, v0
  s_lshr_b32 s8, s8, (LANES / 64) + 4
  v_mov_b32 v2, s8
at_\name:
  .if \ok
  ds_write_b16 v2, v0
  .else
  ds_write_b8 v2, v0 offset:0
  ds_write_b16 v2, v0 offset:1
  .endif
  s_waitcnt lgkmcnt(0)
  finish \name
.endm
lds_write_race lds_write_race, 0
lds_write_race lds_write_race_ok, 1

// The barrier does not wait for the write.
.macro lds_late name, ok
  begin \name
from_\name:
  ds_write_b32 v1, v0
  .if \ok
  s_waitcnt lgkmcnt(0)
  .endif
  s_barrier
  v_xor_b32 v2, LANES*4, v1
at_\name:
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  store_and_finish \name, v3
.endm
lds_late lds_late, 0
lds_late lds_late_ok, 1

#ifdef CDNA
// Data loaded straight into LDS is read before vmcnt says that it is there.
.macro lds_dma name, ok
  begin \name
  s_mov_b32 m0, 0
  s_nop 0
from_\name:
  global_load_lds_dword v1, s[6:7]
  .if \ok
  s_waitcnt vmcnt(0)
  .else
  s_waitcnt lgkmcnt(0)
  .endif
at_\name:
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(0)
  store_and_finish \name, v3
.endm
lds_dma lds_dma, 0
lds_dma lds_dma_ok, 1
#endif

.macro uninitialised_vgpr name, ok
  begin \name
  .if \ok
  v_mov_b32 v7, 0
  .endif
  v_lshlrev_b32 v8, 3, v7
at_\name:
  store_and_finish \name, v8
.endm
uninitialised_vgpr uninitialised_vgpr, 0
uninitialised_vgpr uninitialised_vgpr_ok, 1

.macro uninitialised_sgpr name, ok
  begin \name
  .if \ok
  s_mov_b32 s20, 0
  .endif
  s_add_u32 s21, s20, 5
  s_cmp_gt_u32 s21, 7
at_\name:
  s_cbranch_scc1 .Lnext_\name
  s_nop 0
.Lnext_\name:
  finish \name
.endm
uninitialised_sgpr uninitialised_sgpr, 0
uninitialised_sgpr uninitialised_sgpr_ok, 1

// Lanes chosen by a comparison with a register that only half of the lanes wrote.
.macro uninitialised_mask name, ok
  begin \name
  v_cmp_gt_u32 VCC, 7, v0
  s_nop 4
#ifdef CDNA
  s_and_saveexec_b64 s[10:11], vcc
  v_mov_b32 v2, 3
  s_mov_b64 exec, s[10:11]
#else
  s_and_saveexec_b32 s10, vcc_lo
  v_mov_b32 v2, 3
  s_mov_b32 exec_lo, s10
#endif
  s_nop 4
#ifdef CDNA
  v_cmp_eq_u32 s[12:13], 3, v2
  .if \ok
  s_and_b64 s[12:13], s[12:13], vcc
  .endif
at_\name:
  s_and_saveexec_b64 s[10:11], s[12:13]
#else
  v_cmp_eq_u32 s12, 3, v2
  .if \ok
  s_and_b32 s12, s12, vcc_lo
  .endif
at_\name:
  s_and_saveexec_b32 s10, s12
#endif
  global_store_dword v1, v0, s[4:5]
  finish \name
.endm
uninitialised_mask uninitialised_mask, 0
uninitialised_mask uninitialised_mask_ok, 1

.macro uninitialised_lds name, ok
  begin \name
  .if \ok
  ds_write_b32 v1, v0
  .endif
  ds_read_b32 v2, v1
  s_waitcnt lgkmcnt(0)
at_\name:
  store_and_finish \name, v2
.endm
uninitialised_lds uninitialised_lds, 0
uninitialised_lds uninitialised_lds_ok, 1

// Wave 0 waits at one barrier, wave 1 at another.
.macro barrier_two name, ok
  begin \name
  v_readfirstlane_b32 s8, v0
  s_cmp_eq_u32 s8, 0
  .if \ok
  s_nop 0
  .else
  s_cbranch_scc1 .Lother_\name
  .endif
at_\name:
  s_barrier
  s_branch .Lleave_\name
.Lother_\name:
from_\name:
  s_barrier
.Lleave_\name:
  finish \name
.endm
barrier_two barrier_two, 0
barrier_two barrier_two_ok, 1

// Wave 0 never comes.
.macro barrier_ended name, ok
  begin \name
  v_readfirstlane_b32 s8, v0
  s_cmp_eq_u32 s8, 0
  .if \ok
  s_nop 0
  .else
  s_cbranch_scc1 .Lleave_\name
  .endif
at_\name:
  s_barrier
.Lleave_\name:
  finish \name
.endm
barrier_ended barrier_ended, 0
barrier_ended barrier_ended_ok, 1

.macro misaligned name, ok
  begin \name
  v_lshlrev_b32 v2, 4, v0
  zero 4, 4
  ds_write_b128 v2, v[4:7]
  .if \ok
  s_nop 0
  .else
  v_or_b32 v2, 4, v2
  .endif
at_\name:
  ds_read_b128 v[4:7], v2
  s_waitcnt lgkmcnt(0)
  finish \name
.endm
misaligned misaligned, 0
misaligned misaligned_ok, 1

// The last element lies beyond num_records.
.macro buffer_bounds name, ok
  begin \name
  s_mov_b32 s8, s6
  s_and_b32 s9, s7, 0xffff
  .if \ok
  s_movk_i32 s10, 256
  .else
  s_movk_i32 s10, 252
  .endif
  s_mov_b32 s11, WORD3
at_\name:
  buffer_load_dword v2, v1, s[8:11], 0 offen
  s_waitcnt vmcnt(0)
  store_and_finish \name, v2
.endm
buffer_bounds buffer_bounds, 0
buffer_bounds buffer_bounds_ok, 1

#ifdef CDNA
.macro hazard_matrix_result name, ok
  begin \name
  zero 4, 4
from_\name:
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[6:7], 0
  .if \ok
  s_nop 7
  .else
  s_nop 3
  .endif
at_\name:
  v_mov_b32 v12, v8
  store_and_finish \name, v12
.endm
hazard_matrix_result hazard_matrix_result, 0
hazard_matrix_result hazard_matrix_result_ok, 1

// The next matrix instruction takes the whole result as C, which is forwarded, or as A, which is not.
.macro hazard_matrix_chain name, ok
  begin \name
  zero 4, 8
from_\name:
  v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], 0
  v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], v[16:31]
at_\name:
  .if \ok
  v_mfma_f32_32x32x8_f16 v[16:31], v[8:9], v[10:11], v[16:31]
  .else
  v_mfma_f32_32x32x8_f16 v[32:47], v[16:17], v[6:7], 0
  .endif
  finish \name
.endm
hazard_matrix_chain hazard_matrix_chain, 0
hazard_matrix_chain hazard_matrix_chain_ok, 1

.macro hazard_matrix_operand name, ok
  begin \name
  zero 4, 4
from_\name:
  v_mov_b32 v4, 0
  .if \ok
  s_nop 1
  .endif
at_\name:
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[6:7], 0
  finish \name
.endm
hazard_matrix_operand hazard_matrix_operand, 0
hazard_matrix_operand hazard_matrix_operand_ok, 1

// A memory instruction takes its base address from the VALU.
.macro hazard_scalar_address name, ok
  begin \name
  v_mov_b32 v2, s6
  v_mov_b32 v3, s7
  s_nop 0
  v_readfirstlane_b32 s8, v2
from_\name:
  v_readfirstlane_b32 s9, v3
  .if \ok
  s_nop 4
  .else
  s_nop 3
  .endif
at_\name:
  global_load_dword v4, v1, s[8:9]
  s_waitcnt vmcnt(0)
  store_and_finish \name, v4
.endm
hazard_scalar_address hazard_scalar_address, 0
hazard_scalar_address hazard_scalar_address_ok, 1

// A scalar result of the VALU is an operand of the VALU; as a lane mask it may be used at once.
.macro hazard_scalar_operand name, ok
  begin \name
  v_cmp_eq_u32 vcc, 0, v0
  v_cndmask_b32 v2, v0, v1, vcc
from_\name:
  v_readfirstlane_b32 s8, v0
  .if \ok
  s_nop 1
  .else
  s_nop 0
  .endif
at_\name:
  v_add_u32 v2, s8, v2
  store_and_finish \name, v2
.endm
hazard_scalar_operand hazard_scalar_operand, 0
hazard_scalar_operand hazard_scalar_operand_ok, 1

.macro hazard_dpp name, ok
  begin \name
from_\name:
  v_mov_b32 v2, v0
  .if \ok
  s_nop 1
  .else
  s_nop 0
  .endif
at_\name:
  v_mov_b32_dpp v3, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
  store_and_finish \name, v3
.endm
hazard_dpp hazard_dpp, 0
hazard_dpp hazard_dpp_ok, 1

.macro hazard_lane name, ok
  begin \name
from_\name:
  v_readfirstlane_b32 s8, v0
  .if \ok
  s_nop 3
  .else
  s_nop 2
  .endif
at_\name:
  v_readlane_b32 s9, v1, s8
  s_nop 4
  v_mov_b32 v3, s9
  store_and_finish \name, v3
.endm
hazard_lane hazard_lane, 0
hazard_lane hazard_lane_ok, 1

.macro hazard_transcendental name, ok
  begin \name
  v_mov_b32 v3, 1.0
from_\name:
  v_rcp_f32 v2, v3
  .if \ok
  s_nop 0
  .endif
at_\name:
  v_add_f32 v4, v2, v2
  store_and_finish \name, v4
.endm
hazard_transcendental hazard_transcendental, 0
hazard_transcendental hazard_transcendental_ok, 1
#else
.macro hazard_transcendental name, ok
  begin \name
  v_mov_b32 v3, 1.0
from_\name:
  v_rcp_f32 v2, v3
  v_mov_b32 v5, 0
  .if \ok
  s_waitcnt_depctr 0x0fff
  .endif
at_\name:
  v_add_f32 v4, v2, v2
  store_and_finish \name, v4
.endm
hazard_transcendental hazard_transcendental, 0
hazard_transcendental hazard_transcendental_ok, 1

.macro hazard_wmma name, ok
  begin \name
  zero 8, 48
from_\name:
  v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], v[8:15]
  .if \ok
  v_nop
  .endif
at_\name:
  v_wmma_f32_16x16x16_f16 v[32:39], v[8:15], v[24:31], v[32:39]
  finish \name
.endm
hazard_wmma hazard_wmma, 0
hazard_wmma hazard_wmma_ok, 1
#endif
