// A tiled layout is a reshape: each tiled dimension becomes (number of tiles, place in the tile), and the places of all
// tiled dimensions stand behind the numbers. A second tile is applied to the result of the first.
#include "daemon/cost/int_array.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace kernelwright::cost {
namespace {

constexpr int64_t kMaxBytes = int64_t{64} << 20;
constexpr size_t kMaxRank = 16;
constexpr size_t kMaxTiles = 4;

// Comma-separated numbers up to `close`; moves `text` behind it.
std::optional<std::vector<int64_t>> Numbers(std::string_view* text, char close) {
  const size_t end = text->find(close);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view list = text->substr(0, end);
  text->remove_prefix(end + 1);
  std::vector<int64_t> out;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (error != std::errc{} || stop != item.data() + item.size() || value < 0) return std::nullopt;
    out.push_back(value);
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return out;
}

// The layout behind the dimensions: "1,0:T(8,128)(2,1)S(1)" without the braces.
bool ParseLayout(std::string_view layout, ArrayType* type) {
  const size_t colon = layout.find(':');
  std::string order(layout.substr(0, colon));
  order += '}';
  std::string_view view = order;
  const auto minor_to_major = Numbers(&view, '}');
  if (!minor_to_major || minor_to_major->size() != type->dims.size()) return false;
  std::vector<bool> seen(type->dims.size(), false);
  for (size_t i = 0; i < minor_to_major->size(); ++i) {
    const auto dim = static_cast<size_t>((*minor_to_major)[i]);
    if (dim >= seen.size() || seen[dim]) return false;
    seen[dim] = true;
    type->minor_to_major[i] = dim;
  }
  if (colon == std::string_view::npos) return true;
  std::string_view rest = layout.substr(colon + 1);
  if (!rest.starts_with('T')) return rest.starts_with("S(");
  rest.remove_prefix(1);
  while (rest.starts_with('(')) {
    rest.remove_prefix(1);
    auto tile = Numbers(&rest, ')');
    if (!tile || tile->empty() || tile->size() > kMaxRank || type->tiles.size() == kMaxTiles) return false;
    for (const int64_t extent : *tile) {
      if (extent <= 0 || extent > kMaxElements) return false;
    }
    type->tiles.push_back(*std::move(tile));
  }
  // A memory space may follow; a sub-byte element size or anything else changes the layout.
  return rest.empty() || (rest.starts_with("S(") && rest.ends_with(')'));
}

// Product, at most a little above kMaxBytes.
int64_t SizeOf(const std::vector<int64_t>& extents) {
  int64_t size = 1;
  for (const int64_t extent : extents) {
    if (extent > 0 && size > kMaxBytes / extent) return kMaxBytes + 1;
    size *= extent;
  }
  return size;
}

// Splits the last dimensions of `extents` and of an `index` into them by the tile.
void ApplyTile(const std::vector<int64_t>& tile, std::vector<int64_t>* extents, std::vector<int64_t>* index) {
  while (extents->size() < tile.size()) {
    extents->insert(extents->begin(), 1);
    index->insert(index->begin(), 0);
  }
  const size_t first = extents->size() - tile.size();
  for (size_t i = 0; i < tile.size(); ++i) {
    extents->push_back(tile[i]);
    index->push_back((*index)[first + i] % tile[i]);
    (*extents)[first + i] = ((*extents)[first + i] + tile[i] - 1) / tile[i];
    (*index)[first + i] /= tile[i];
  }
}

}  // namespace

int64_t ArrayType::elements() const {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
}

std::optional<ArrayType> ParseArrayType(std::string_view text) {
  const size_t open = text.find('[');
  if (open == std::string_view::npos || open == 0 || text.starts_with('(')) return std::nullopt;
  ArrayType type;
  type.dtype = std::string(text.substr(0, open));
  text.remove_prefix(open + 1);
  const auto dims = Numbers(&text, ']');
  if (!dims || dims->size() > kMaxRank) return std::nullopt;
  int64_t elements = 1;
  for (const int64_t dim : *dims) {
    if (dim > 0 && elements > kMaxElements / dim) return std::nullopt;
    elements *= dim;
  }
  type.dims = *dims;
  type.minor_to_major.resize(dims->size());
  for (size_t i = 0; i < dims->size(); ++i) type.minor_to_major[i] = dims->size() - 1 - i;
  if (text.empty()) return type;
  if (!text.starts_with('{') || !text.ends_with('}')) return std::nullopt;
  if (!ParseLayout(text.substr(1, text.size() - 2), &type)) return std::nullopt;
  return type;
}

int IntegerBits(std::string_view dtype) {
  if (dtype == "pred" || dtype == "s8" || dtype == "u8") return 8;
  if (dtype == "s16" || dtype == "u16") return 16;
  if (dtype == "s32" || dtype == "u32") return 32;
  return 0;
}

bool IsSignedInteger(std::string_view dtype) { return dtype.starts_with('s'); }

int64_t WrapTo(std::string_view dtype, int64_t value) {
  if (dtype == "pred") return value != 0 ? 1 : 0;
  const int bits = IntegerBits(dtype);
  if (bits == 0) return value;
  const auto low = static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1);
  if (IsSignedInteger(dtype) && (low >> (bits - 1)) != 0) return static_cast<int64_t>(low) - (int64_t{1} << bits);
  return static_cast<int64_t>(low);
}

std::optional<IntArray> FromBytes(const ArrayType& type, std::string_view bytes) {
  const auto width = static_cast<size_t>(IntegerBits(type.dtype) / 8);
  const auto count = static_cast<size_t>(type.elements());
  if (width == 0 || count > static_cast<size_t>(kMaxElements) || bytes.size() != count * width) return std::nullopt;
  IntArray out;
  out.type = type;
  out.values.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = 0;
    for (size_t b = 0; b < width; ++b) {
      value |= uint64_t{static_cast<unsigned char>(bytes[i * width + b])} << (8 * b);
    }
    out.values.push_back(WrapTo(type.dtype, static_cast<int64_t>(value)));
  }
  return out;
}

std::optional<std::string> LayOut(const IntArray& array) {
  const ArrayType& type = array.type;
  const auto width = IntegerBits(type.dtype) / 8;
  const size_t rank = type.dims.size();
  if (width == 0 || array.values.size() != static_cast<size_t>(type.elements())) return std::nullopt;
  std::vector<int64_t> tiled;  // major to minor
  for (size_t i = rank; i-- > 0;) tiled.push_back(type.dims[type.minor_to_major[i]]);
  const std::vector<int64_t> untiled = tiled;
  std::vector<int64_t> ignored(rank, 0);
  for (const auto& tile : type.tiles) {
    ApplyTile(tile, &tiled, &ignored);
    if (SizeOf(tiled) > kMaxBytes) return std::nullopt;
  }
  const int64_t size = SizeOf(tiled);
  if (size > kMaxBytes / width) return std::nullopt;
  std::string out(static_cast<size_t>(size * width), '\0');
  std::vector<int64_t> index(rank, 0);
  for (const int64_t value : array.values) {
    std::vector<int64_t> place;
    for (size_t i = rank; i-- > 0;) place.push_back(index[type.minor_to_major[i]]);
    std::vector<int64_t> extents = untiled;
    for (const auto& tile : type.tiles) ApplyTile(tile, &extents, &place);
    int64_t at = 0;
    for (size_t i = 0; i < extents.size(); ++i) at = at * extents[i] + place[i];
    for (int b = 0; b < width; ++b) {
      out[static_cast<size_t>(at * width + b)] = static_cast<char>((static_cast<uint64_t>(value) >> (8 * b)) & 0xff);
    }
    for (size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < type.dims[axis]) break;
      index[axis] = 0;
    }
  }
  return out;
}

}  // namespace kernelwright::cost
