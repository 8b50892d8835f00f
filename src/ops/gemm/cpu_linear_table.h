// The kernels of one instruction set, one a weight type: the initialiser of a table. CREST_LINEAR_KERNEL is a function
// template from a weight type to its kernel.
#define CREST_LINEAR_ENTRY(type, suffix) \
  CREST_LINEAR_KERNEL<tensor::DType::type>(CREST_LINEAR_ARCH suffix, CREST_LINEAR_ARCH, CREST_LINEAR_PRIORITY)
{
  {
    CREST_LINEAR_ENTRY(kF32, "_f32"), CREST_LINEAR_ENTRY(kF16, "_f16"), CREST_LINEAR_ENTRY(kBF16, "_bf16"),
        CREST_LINEAR_ENTRY(kQ4_0, "_q4_0"), CREST_LINEAR_ENTRY(kQ4_1, "_q4_1"), CREST_LINEAR_ENTRY(kQ5_0, "_q5_0"),
        CREST_LINEAR_ENTRY(kQ5_1, "_q5_1"), CREST_LINEAR_ENTRY(kQ8_0, "_q8_0"), CREST_LINEAR_ENTRY(kQ2_K, "_q2_k"),
        CREST_LINEAR_ENTRY(kQ3_K, "_q3_k"), CREST_LINEAR_ENTRY(kQ4_K, "_q4_k"), CREST_LINEAR_ENTRY(kQ5_K, "_q5_k"),
        CREST_LINEAR_ENTRY(kQ6_K, "_q6_k"), CREST_LINEAR_ENTRY(kIQ4_NL, "_iq4_nl"),
        CREST_LINEAR_ENTRY(kIQ4_XS, "_iq4_xs"), CREST_LINEAR_ENTRY(kMXFP4, "_mxfp4"),
        CREST_LINEAR_ENTRY(kParoW4, "_paro_w4"),
  }
}
#undef CREST_LINEAR_ENTRY
