#include "gguf_fields.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/detail/text/json_tree.hpp"
#include "../../../base/error.hpp"

namespace xgrad::pretrained::detail {

using xgrad::detail::fail, xgrad::detail::in_quotes;

GgufFields::GgufFields(const GgufFile& file, const std::string& path, std::string architecture)
    : file_(file), path_(path), prefix_(std::move(architecture) + ".") {}

const GgufValue* GgufFields::find(const char* key) const { return file_.find(prefix_ + key); }
const GgufValue& GgufFields::at(const char* key) const { return file_.at(prefix_ + key); }
std::int64_t GgufFields::size(const char* key) const { return at(key).integer(1, most_size); }

std::int64_t GgufFields::size_or(const char* key, std::int64_t otherwise) const {
  const GgufValue* const value = find(key);
  return value != nullptr ? value->integer(1, most_size) : otherwise;
}

std::int64_t GgufFields::layers() const {
  const std::int64_t count = size("block_count");
  const auto in_file = std::ranges::count_if(file_.tensors(), [](const TensorView& one) {
    return one.name.starts_with("blk.") && one.name.ends_with(".attn_norm.weight");
  });
  if (count != in_file)
    at("block_count").refuse("the number of layers in the file, " + std::to_string(in_file));
  return count;
}

const TensorView* GgufFields::tensor(std::string_view name) const {
  const auto found = std::ranges::find(file_.tensors(), name, &TensorView::name);
  return found == file_.tensors().end() ? nullptr : &*found;
}

xgrad::detail::JsonTree GgufFields::rotary(std::size_t head) const {
  const auto* const base = find("rope.freq_base");
  const auto* const type = find("rope.scaling.type");
  xgrad::detail::JsonTree all{{"rope_theta", base != nullptr ? base->number() : 10000.0},
                              {"rope_type", "default"}};
  const TensorView* const divisors = tensor(frequencies);
  if (type != nullptr && type->text() != "none") {
    if (divisors != nullptr) type->refuse("none beside the tensor " + in_quotes(std::string(frequencies)));
    if (type->text() != "linear" && type->text() != "yarn") type->refuse("none, linear or yarn");
    all["rope_type"] = type->text();
    all["factor"] = at("rope.scaling.factor").number();
    if (type->text() == "yarn")
      all["original_max_position_embeddings"] = size("rope.scaling.original_context_length");
  } else if (divisors != nullptr) {
    const auto numbers = xgrad::detail::array_from<double>(path_, *divisors);
    if (numbers.size() != head / 2)
      fail<FileError>(path_, ": tensor ", in_quotes(divisors->name), ": shape must be (", head / 2,
                      "), half of a head, got ", divisors->shape);
    // divides frequencies at every length, and changes nothing else
    const std::vector<double> factors(numbers.begin(), numbers.end());
    all["rope_type"] = "longrope";
    all["short_factor"] = all["long_factor"] = factors;
    all["factor"] = all["attention_factor"] = 1.0;
  }
  return all;
}

}  // namespace xgrad::pretrained::detail
