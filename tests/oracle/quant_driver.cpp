// quant_driver dequantize TYPE < blocks > floats: every byte of standard input is taken as one row.
// quant_driver quantize TYPE COLUMNS [IMPORTANCE] < floats > blocks: rows of COLUMNS floats.
// quant_driver file MIX IN OUT [IMATRIX]: a whole model; prints the type of every tensor.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "format/quantize.h"
#include "tensor/quant.h"

namespace {

using crest::tensor::DType;

std::vector<char> read_all(std::FILE* file) {
  std::vector<char> bytes;
  char buffer[65536];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) bytes.insert(bytes.end(), buffer, buffer + n);
  return bytes;
}

int fail(const std::string& message) {
  std::fprintf(stderr, "quant_driver: %s\n", message.c_str());
  return 1;
}

int write_out(const void* data, size_t bytes) { return std::fwrite(data, 1, bytes, stdout) == bytes ? 0 : 1; }

int dequantize(DType dtype) {
  const std::vector<char> blocks = read_all(stdin);
  const auto& type = crest::tensor::info(dtype);
  const auto size = static_cast<int64_t>(blocks.size());
  if (type.block_bytes == 0 || size % type.block_bytes != 0) return fail("not a whole number of blocks");
  std::vector<float> values(static_cast<size_t>(size / type.block_bytes * type.block_size));
  crest::tensor::dequantize_row(dtype, blocks.data(), values.data(), static_cast<int64_t>(values.size()));
  return write_out(values.data(), values.size() * sizeof(float));
}

int quantize(DType dtype, int64_t columns, const char* importance_path) {
  std::vector<float> importance;
  if (importance_path != nullptr) {
    std::FILE* file = std::fopen(importance_path, "rb");
    if (file == nullptr) return fail("cannot open the importance file");
    const std::vector<char> bytes = read_all(file);
    std::fclose(file);
    importance.resize(static_cast<size_t>(columns));
    if (bytes.size() != importance.size() * sizeof(float)) return fail("the importance file has another length");
    std::memcpy(importance.data(), bytes.data(), bytes.size());
  }
  const std::vector<char> input = read_all(stdin);
  const auto row_floats = static_cast<size_t>(columns);
  if (columns <= 0 || columns % crest::tensor::info(dtype).block_size != 0) return fail("COLUMNS is no whole block");
  if (input.size() % (row_floats * sizeof(float)) != 0) return fail("not a whole number of rows");
  const size_t rows = input.size() / (row_floats * sizeof(float));
  const auto row_size = static_cast<size_t>(crest::tensor::row_bytes(dtype, columns));
  std::vector<char> output(rows * row_size);
  std::vector<float> row(row_floats);
  for (size_t r = 0; r < rows; ++r) {
    std::memcpy(row.data(), input.data() + r * row_floats * sizeof(float), row_floats * sizeof(float));
    const auto status = crest::tensor::quantize_row(dtype, row.data(), output.data() + r * row_size, columns,
                                                    importance.empty() ? nullptr : importance.data());
    if (!status.ok()) return fail(status.error().message);
  }
  return write_out(output.data(), output.size());
}

int file(const char* mix, const char* in, const char* out, const char* imatrix_path) {
  using namespace crest::format;
  QuantizeOptions options;
  options.allow_requantize = true;
  Imatrix imatrix;
  if (imatrix_path != nullptr) {
    auto read = Imatrix::read(imatrix_path);
    if (!read.ok()) return fail(read.error().message);
    imatrix = *std::move(read);
    options.imatrix = &imatrix;
    options.imatrix_name = imatrix_path;
  }
  crest::core::ThreadPool pool;
  const auto report = quantize_file(in, out, mix, options, pool);
  if (!report.ok()) return fail(report.error().message);
  for (const auto& tensor : report->tensors) {
    std::printf("%s %s\n", tensor.name.c_str(), std::string(crest::tensor::name(tensor.choice.dtype)).c_str());
  }
  std::fprintf(stderr, "%zu tensors, %zu quantised, %zu fell back\n", report->tensors.size(), report->quantised,
               report->fallbacks);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    return fail("usage: quant_driver dequantize TYPE | quantize TYPE COLUMNS [IMPORTANCE] | file MIX IN OUT [IMATRIX]");
  }
  if (std::strcmp(argv[1], "file") == 0 && argc >= 5)
    return file(argv[2], argv[3], argv[4], argc > 5 ? argv[5] : nullptr);
  const auto dtype = crest::tensor::dtype_from_name(argv[2]);
  if (!dtype) return fail(std::string("unknown type ") + argv[2]);
  if (std::strcmp(argv[1], "dequantize") == 0) return dequantize(*dtype);
  if (std::strcmp(argv[1], "quantize") == 0 && argc >= 4) {
    return quantize(*dtype, std::strtoll(argv[3], nullptr, 10), argc > 4 ? argv[4] : nullptr);
  }
  return fail(std::string("unknown command ") + argv[1]);
}
