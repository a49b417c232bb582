// zlib's streaming interface over whole buffers; see gzip.h. Input goes in by pieces because zlib counts in 32 bits.
#include "daemon/base/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

namespace kernelwright {
namespace {

constexpr int kGzipWindow = 15 + 16;  // largest window, gzip wrapper
constexpr size_t kPiece = size_t{64} << 20;

Status Broken(const char* detail) {
  return Status(ErrorKind::kInternal, std::string("the compressed data is damaged") +
                                          (detail != nullptr ? std::string(" (") + detail + ")" : ""));
}

// Hands the next piece of `rest` to the stream.
void Feed(z_stream& stream, std::string_view& rest) {
  if (stream.avail_in != 0 || rest.empty()) return;
  const size_t size = std::min(kPiece, rest.size());
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));  // NOLINT: zlib's interface lacks const
  stream.avail_in = static_cast<uInt>(size);
  rest.remove_prefix(size);
}

}  // namespace

Expected<std::string> GzipCompress(std::string_view bytes, int level) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return Fail(ErrorKind::kInternal, "cannot start the compressor");
  }
  std::string result;
  std::vector<char> buffer(size_t{256} << 10);
  int code = Z_OK;
  while (code == Z_OK || code == Z_BUF_ERROR) {
    Feed(stream, bytes);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    code = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    result.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  if (code != Z_STREAM_END) return Fail(ErrorKind::kInternal, "compression failed");
  return result;
}

Expected<std::string> GzipDecompress(std::string_view bytes, size_t max_bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return Fail(ErrorKind::kInternal, "cannot start the decompressor");
  std::string result;
  std::vector<char> buffer(size_t{256} << 10);
  Status status;
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    Feed(stream, bytes);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    code = inflate(&stream, Z_NO_FLUSH);
    result.append(buffer.data(), buffer.size() - stream.avail_out);
    if (result.size() > max_bytes) {
      status =
          Status(ErrorKind::kLimit, "the data is larger than " + std::to_string(max_bytes) + " bytes when unpacked");
      break;
    }
    if (code == Z_STREAM_END) {
      if (stream.avail_in != 0 || !bytes.empty()) status = Broken("bytes after the end");
      break;
    }
    if (code != Z_OK) {
      status = Broken(stream.msg);
      break;
    }
  }
  inflateEnd(&stream);
  if (!status) return Fail(std::move(status));
  return result;
}

}  // namespace kernelwright
