# Writes a C++ source `out` that has the bytes of the file `in` as xgrad::detail::NAME.
file(READ ${in} bytes HEX)
string(REGEX REPLACE "(................................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(
  WRITE ${out}
  "#include <string_view>

namespace xgrad::detail {
namespace {

constexpr unsigned char ${name}_bytes[] = {
${bytes}};

}  // namespace

extern const std::string_view ${name};
const std::string_view ${name}(reinterpret_cast<const char*>(${name}_bytes), sizeof ${name}_bytes);

}  // namespace xgrad::detail
")
