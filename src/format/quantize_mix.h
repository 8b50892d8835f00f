#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "format/metadata.h"
#include "format/model_file.h"
#include "tensor/dtype.h"

namespace crest::format {

/// A target of quantisation: one element type for most tensors and rules that give some tensors more bits. The rules
/// are those of llama.cpp, so files have the types and sizes that its users expect.
struct QuantMix {
  std::string_view name;        // "Q4_K_M"
  tensor::DType default_dtype;  // of tensors that no rule names
  uint32_t file_type;           // value of general.file_type
  std::string_view about;       // one line for --help
  bool experts_only = false;    // the rest is Q8_0
};

std::span<const QuantMix> quant_mixes();
/// Case-insensitive; "Q3_K", "Q4_K" and "Q5_K" mean their _M mixes. An error lists what there is.
Result<const QuantMix*> find_quant_mix(std::string_view name);

/// What is to become of one tensor.
struct QuantChoice {
  tensor::DType dtype = tensor::DType::kF32;
  /// False: the tensor keeps its type (norms, biases, routers, convolutions, integers).
  bool quantise = false;
  /// The type that the mix wanted, when the row length is no multiple of its block.
  std::optional<tensor::DType> fell_back_from;
};

/// One choice per tensor of the model, in file order.
/// Rules depend on the tensor's name, its place among its like (counted by block), the number of blocks (block_count,
/// multi-token prediction blocks included), the ratio of query to key-value heads and on whether an importance matrix
/// is used.
Result<std::vector<QuantChoice>> choose_quant_types(const Metadata& metadata, std::span<const TensorEntry> tensors,
                                                    const QuantMix& mix, bool has_imatrix);

}  // namespace crest::format
