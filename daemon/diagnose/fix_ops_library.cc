// The texts of the replacements; see fix_ops_library.h. Each computes in 32 bit and returns the type it was given.
#include "daemon/diagnose/fix_ops_library.h"

#include <algorithm>

namespace kernelwright::diagnose {
namespace {

constexpr std::string_view kCumsum = R"(def _cumsum(x, axis=-1):
    """Running sum by shifts of 1, 2, 4, …: the TPU has no cumsum."""
    axis %= x.ndim
    total = x.astype({jnp}.float32) if {jnp}.issubdtype(x.dtype, {jnp}.floating) else x
    position = {lax}.broadcasted_iota({jnp}.int32, x.shape, axis)
    shift = 1
    while shift < x.shape[axis]:
        total = total + {jnp}.where(position >= shift, {jnp}.roll(total, shift, axis), 0)
        shift *= 2
    return total.astype(x.dtype))";

constexpr std::string_view kCumprod = R"(def _cumprod(x, axis=-1):
    """Running product by shifts of 1, 2, 4, …: the TPU has no cumprod."""
    axis %= x.ndim
    total = x.astype({jnp}.float32) if {jnp}.issubdtype(x.dtype, {jnp}.floating) else x
    position = {lax}.broadcasted_iota({jnp}.int32, x.shape, axis)
    shift = 1
    while shift < x.shape[axis]:
        total = total * {jnp}.where(position >= shift, {jnp}.roll(total, shift, axis), 1)
        shift *= 2
    return total.astype(x.dtype))";

constexpr std::string_view kCummax = R"(def _cummax(x, axis=0):
    """Running maximum by shifts of 1, 2, 4, …: the TPU has no cummax."""
    axis %= x.ndim
    position = {lax}.broadcasted_iota({jnp}.int32, x.shape, axis)
    shift = 1
    while shift < x.shape[axis]:
        x = {jnp}.where(position >= shift, {jnp}.maximum(x, {jnp}.roll(x, shift, axis)), x)
        shift *= 2
    return x)";

constexpr std::string_view kProd = R"(def _prod(x, axis=-1, keepdims=False):
    """Product along one axis by shifts of 1, 2, 4, …: the TPU has no product reduction."""
    axis %= x.ndim
    total = x.astype({jnp}.float32) if {jnp}.issubdtype(x.dtype, {jnp}.floating) else x
    position = {lax}.broadcasted_iota({jnp}.int32, x.shape, axis)
    shift = 1
    while shift < x.shape[axis]:
        total = total * {jnp}.where(position >= shift, {jnp}.roll(total, shift, axis), 1)
        shift *= 2
    total = {lax}.slice_in_dim(total, x.shape[axis] - 1, x.shape[axis], axis=axis).astype(x.dtype)
    return total if keepdims else {jnp}.squeeze(total, axis))";

constexpr std::string_view kErfc = R"(def _erfc(x):
    """1 - erf: the TPU has erf and no erfc."""
    return (1 - {lax}.erf(x.astype({jnp}.float32))).astype(x.dtype))";

constexpr std::string_view kGelu = R"(def _exact_gelu(x):
    """Exact gelu through erf: the TPU has no erfc."""
    v = x.astype({jnp}.float32)
    return (0.5 * v * (1 + {lax}.erf(v * 0.7071067811865476))).astype(x.dtype))";

constexpr std::string_view kExpm1 = R"(def _expm1(x):
    """exp(x) - 1, by its series near 0: the TPU has no expm1."""
    v = x.astype({jnp}.float32)
    series = v * (1 + v * (1 / 2 + v * (1 / 6 + v * (1 / 24 + v * (1 / 120)))))
    return {jnp}.where({jnp}.abs(v) < 0.25, series, {jnp}.exp(v) - 1).astype(x.dtype))";

constexpr std::string_view kElu = R"(def _elu(x, alpha=1.0):
    return {jnp}.where(x > 0, x, alpha * _expm1({jnp}.minimum(x, 0))).astype(x.dtype))";

constexpr std::string_view kCelu = R"(def _celu(x, alpha=1.0):
    return {jnp}.where(x > 0, x, alpha * _expm1({jnp}.minimum(x, 0) / alpha)).astype(x.dtype))";

constexpr std::string_view kSelu = R"(def _selu(x):
    value = {jnp}.where(x > 0, x, 1.6732632423543772 * _expm1({jnp}.minimum(x, 0)))
    return (1.0507009873554805 * value).astype(x.dtype))";

constexpr std::string_view kAtan = R"(def _atan(x):
    v = x.astype({jnp}.float32)
    return {jnp}.arctan2(v, {jnp}.ones_like(v)).astype(x.dtype))";

constexpr std::string_view kAsin = R"(def _asin(x):
    v = x.astype({jnp}.float32)
    return {jnp}.arctan2(v, {jnp}.sqrt((1 - v) * (1 + v))).astype(x.dtype))";

constexpr std::string_view kAcos = R"(def _acos(x):
    v = x.astype({jnp}.float32)
    return {jnp}.arctan2({jnp}.sqrt((1 - v) * (1 + v)), v).astype(x.dtype))";

constexpr std::string_view kSinh = R"(def _sinh(x):
    v = x.astype({jnp}.float32)
    small = v * (1 + v * v * (1 / 6 + v * v * (1 / 120 + v * v * (1 / 5040))))
    return {jnp}.where({jnp}.abs(v) < 1, small, ({jnp}.exp(v) - {jnp}.exp(-v)) / 2).astype(x.dtype))";

constexpr std::string_view kCosh = R"(def _cosh(x):
    v = x.astype({jnp}.float32)
    return (({jnp}.exp(v) + {jnp}.exp(-v)) / 2).astype(x.dtype))";

constexpr std::string_view kAsinh = R"(def _asinh(x):
    v = {jnp}.abs(x.astype({jnp}.float32))
    value = {jnp}.log1p(v + v * v / (1 + {jnp}.sqrt(v * v + 1)))
    return ({jnp}.sign(x) * value).astype(x.dtype))";

constexpr std::string_view kAcosh = R"(def _acosh(x):
    v = x.astype({jnp}.float32)
    return {jnp}.log(v + {jnp}.sqrt((v - 1) * (v + 1))).astype(x.dtype))";

constexpr std::string_view kAtanh = R"(def _atanh(x):
    v = x.astype({jnp}.float32)
    return (({jnp}.log1p(v) - {jnp}.log1p(-v)) / 2).astype(x.dtype))";

constexpr std::string_view kCbrt = R"(def _cbrt(x):
    v = {jnp}.abs(x.astype({jnp}.float32))
    root = {jnp}.where(v == 0, 0.0, {jnp}.exp({jnp}.log({jnp}.where(v == 0, 1.0, v)) / 3))
    return ({jnp}.sign(x) * root).astype(x.dtype))";

constexpr std::string_view kLgamma = R"(def _lgamma(x):
    """log |gamma(x)|: Stirling's series beyond 6, reflected below 1/2."""
    v = x.astype({jnp}.float32)
    z = {jnp}.where(v < 0.5, 1 - v, v)
    shifted = z * (z + 1) * (z + 2) * (z + 3) * (z + 4) * (z + 5)
    far = {jnp}.where(z < 6, z + 6, z)
    s = 1 / (far * far)
    series = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s / 1680))) / far
    value = (far - 0.5) * {jnp}.log(far) - far + 0.9189385332046727 + series
    value = {jnp}.where(z < 6, value - {jnp}.log({jnp}.where(z < 6, shifted, 1.0)), value)
    sine = {jnp}.abs({jnp}.sin(3.141592653589793 * (v - {jnp}.floor(v))))
    return {jnp}.where(v < 0.5, 1.1447298858494002 - {jnp}.log(sine) - value, value).astype(x.dtype))";

const std::vector<Replacement>& Library() {
  static const std::vector<Replacement> library = {
      {"D100", {"cumsum"}, "_cumsum", {"axis"}, {}, kCumsum},
      {"D100", {"cumprod"}, "_cumprod", {"axis"}, {}, kCumprod},
      {"D100", {"cummax"}, "_cummax", {"axis"}, {}, kCummax},
      {"D108", {"prod"}, "_prod", {"axis", "keepdims"}, {}, kProd},
      {"D104", {"erfc"}, "_erfc", {}, {}, kErfc},
      {"D104", {"gelu"}, "_exact_gelu", {}, {}, kGelu},
      {"D105", {"expm1"}, "_expm1", {}, {}, kExpm1},
      {"D105", {"elu"}, "_elu", {"alpha"}, {"expm1"}, kElu},
      {"D105", {"celu"}, "_celu", {"alpha"}, {"expm1"}, kCelu},
      {"D105", {"selu"}, "_selu", {}, {"expm1"}, kSelu},
      {"D106", {"atan", "arctan"}, "_atan", {}, {}, kAtan},
      {"D106", {"asin", "arcsin"}, "_asin", {}, {}, kAsin},
      {"D106", {"acos", "arccos"}, "_acos", {}, {}, kAcos},
      {"D106", {"sinh"}, "_sinh", {}, {}, kSinh},
      {"D106", {"cosh"}, "_cosh", {}, {}, kCosh},
      {"D106", {"asinh", "arcsinh"}, "_asinh", {}, {}, kAsinh},
      {"D106", {"acosh", "arccosh"}, "_acosh", {}, {}, kAcosh},
      {"D106", {"atanh", "arctanh"}, "_atanh", {}, {}, kAtanh},
      {"D106", {"cbrt"}, "_cbrt", {}, {}, kCbrt},
      {"D107", {"lgamma", "gammaln"}, "_lgamma", {}, {}, kLgamma},
  };
  return library;
}

void Substitute(std::string& text, std::string_view key, const std::function<std::string()>& value) {
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at))
    text.replace(at, key.size(), value());
}

}  // namespace

const Replacement* FindReplacement(std::string_view callee) {
  if (callee.empty()) return nullptr;
  for (const Replacement& replacement : Library()) {
    if (std::find(replacement.callees.begin(), replacement.callees.end(), callee) != replacement.callees.end()) {
      return &replacement;
    }
  }
  return nullptr;
}

std::string ReplacementText(const Replacement& replacement, FixBuilder& builder) {
  std::string text(replacement.text);
  Substitute(text, "{jnp}", [&] { return builder.Jnp(); });
  Substitute(text, "{lax}", [&] { return builder.Lax(); });
  return text;
}

}  // namespace kernelwright::diagnose
