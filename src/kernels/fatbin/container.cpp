// SPDX-License-Identifier: Apache-2.0
#include "kernels/fatbin/container.h"

#include <lz4.h>
#include <zstd.h>

#include <limits>
#include <new>

#include "kernels/fatbin/bytes.h"

namespace firebreak::fatbin {
namespace {

struct Header {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t content_bytes;
};
static_assert(sizeof(Header) == 16);

struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t padded_bytes;
  std::uint32_t compressed_bytes;  ///< size without the padding; 0: it is not compressed
  std::uint32_t options_offset;
  std::uint16_t minor;
  std::uint16_t major;
  std::uint32_t arch;
  std::uint32_t name_offset;
  std::uint32_t name_bytes;
  std::uint64_t flags;
  std::uint64_t unused;
  std::uint64_t unpacked_bytes;
};
static_assert(sizeof(EntryHeader) == 64);

constexpr std::uint64_t flag_compressed_by_lz4 = 0x2000;
constexpr std::uint64_t flag_compressed_by_zstd = 0x8000;
/// The other bits around these two say how something is compressed, too, in some version of the format.
constexpr std::uint64_t flag_compressed_otherwise = 0x5000;
constexpr std::uint64_t flag_only_this_arch = 0x100000;

Compression compression_of(std::uint64_t flags) {
  if ((flags & flag_compressed_otherwise) != 0) return Compression::Unknown;
  switch (flags & (flag_compressed_by_lz4 | flag_compressed_by_zstd)) {
    case 0:
      return Compression::None;
    case flag_compressed_by_lz4:
      return Compression::Lz4;
    case flag_compressed_by_zstd:
      return Compression::Zstd;
    default:
      return Compression::Unknown;
  }
}

tl::unexpected<Error> malformed(const char* what) {
  return fail(ErrorCode::Protocol, std::string("a fat binary ") + what);
}

Result<Header> header_of(std::string_view image) {
  const auto header = read_at<Header>(image, 0);
  if (!header || header->magic != fat_binary_magic) return malformed("does not begin with its magic");
  if (header->version != 1 || header->header_bytes < sizeof(Header))
    return malformed("is of a version that is not known");
  const std::uint64_t rest = image.size() - sizeof(Header);
  if (header->header_bytes - sizeof(Header) > rest ||
      header->content_bytes > rest - (header->header_bytes - sizeof(Header)))
    return malformed("is cut off");
  return *header;
}

CodeKind kind_of(std::uint16_t number) {
  const auto kind = static_cast<CodeKind>(number);
  return kind == CodeKind::Ptx || kind == CodeKind::Elf ? kind : CodeKind::Other;
}

/// The entry that begins at `offset`, which moves behind it.
Result<CodeEntry> next_entry(std::string_view content, std::uint64_t& offset) {
  const auto header = read_at<EntryHeader>(content, offset);
  if (!header || header->header_bytes < sizeof(EntryHeader))
    return malformed("has an entry without a header");
  const auto behind = part_of(content, offset, header->header_bytes);
  if (!behind) return malformed("has an entry that is cut off");
  const auto stored = part_of(content, offset + header->header_bytes, header->padded_bytes);
  if (!stored) return malformed("has an entry that is cut off");
  CodeEntry entry;
  entry.kind = kind_of(header->kind);
  entry.number = header->kind;
  entry.arch = header->arch;
  entry.only_this_arch = (header->flags & flag_only_this_arch) != 0;
  entry.compression = compression_of(header->flags);
  entry.payload = *stored;
  entry.unpacked_bytes = header->padded_bytes;
  if (entry.compression != Compression::None) {
    if (header->compressed_bytes > header->padded_bytes)
      return malformed("has an entry larger than its place");
    entry.payload = stored->substr(0, header->compressed_bytes);
    entry.unpacked_bytes = header->unpacked_bytes;
  }
  offset += header->header_bytes + header->padded_bytes;
  return entry;
}

/// A block without a frame around it: it does not say its size itself.
bool unpack_lz4(std::string_view from, char* to, std::uint64_t size_bytes) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
  if (from.size() > most || size_bytes > most) return false;
  const int done =
      LZ4_decompress_safe(from.data(), to, static_cast<int>(from.size()), static_cast<int>(size_bytes));
  return done >= 0 && static_cast<std::uint64_t>(done) == size_bytes;
}

bool unpack_zstd(std::string_view from, char* to, std::uint64_t size_bytes) {
  return ZSTD_decompress(to, size_bytes, from.data(), from.size()) == size_bytes;
}

/// True when so little can become so much.
bool is_possible(const CodeEntry& entry) {
  constexpr std::uint64_t lz4_at_most = 255;  // a byte of a length stands for so many
  if (entry.compression == Compression::Lz4)
    return entry.unpacked_bytes / lz4_at_most <= entry.payload.size();
  return ZSTD_getFrameContentSize(entry.payload.data(), entry.payload.size()) == entry.unpacked_bytes;
}

}  // namespace

Result<std::uint64_t> fat_binary_bytes(std::string_view image) {
  const auto header = header_of(image);
  if (!header) return propagate(header);
  return header->header_bytes + header->content_bytes;
}

Result<std::vector<CodeEntry>> entries_of(std::string_view image) {
  const auto header = header_of(image);
  if (!header) return propagate(header);
  const std::string_view content = image.substr(header->header_bytes, header->content_bytes);
  std::vector<CodeEntry> entries;
  for (std::uint64_t offset = 0; offset < content.size();) {
    auto entry = next_entry(content, offset);
    if (!entry) return propagate(entry);
    entries.push_back(*entry);
  }
  return entries;
}

Result<Unpacked> unpack(const CodeEntry& entry, std::uint64_t most_bytes) {
  if (entry.compression == Compression::None) return Unpacked{entry.payload, nullptr};
  if (entry.compression == Compression::Unknown)
    return malformed("has an entry compressed in a way that is not known");
  if (entry.unpacked_bytes > most_bytes || !is_possible(entry))
    return malformed("has an entry that says a wrong size of itself, or one beyond all bounds");
  std::unique_ptr<char[]> own(new (std::nothrow) char[entry.unpacked_bytes]);
  if (own == nullptr) return fail(ErrorCode::ResourceExhausted, "no memory for a fat binary's entry");
  const auto unpack_it = entry.compression == Compression::Lz4 ? unpack_lz4 : unpack_zstd;
  if (!unpack_it(entry.payload, own.get(), entry.unpacked_bytes))
    return malformed("has an entry that is torn");
  const std::string_view bytes(own.get(), entry.unpacked_bytes);
  return Unpacked{bytes, std::move(own)};
}

Result<std::vector<std::string_view>> fat_binaries_in(std::string_view section) {
  std::vector<std::string_view> found;
  for (std::uint64_t offset = 0; offset < section.size();) {
    if (section[offset] == '\0') {
      ++offset;
      continue;
    }
    const auto size_bytes = fat_binary_bytes(section.substr(offset));
    if (!size_bytes) return propagate(size_bytes);
    found.push_back(section.substr(offset, *size_bytes));
    offset += *size_bytes;
  }
  return found;
}

}  // namespace firebreak::fatbin
