// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include "kernels/ptx/literal.h"
#include "kernels/ptx/parser.h"

namespace firebreak::ptx {
namespace {

class InitializerParser {
 public:
  InitializerParser(Parser& parser, Variable& variable) : parser_(parser), variable_(variable) {
    element_bytes_ = size_bytes(variable.type);
    unsized_ = !variable.dimensions.empty() && variable.dimensions.front() == 0;
  }

  void run() {
    if (parser_.tokens.at("{"))
      braces(0, 0);
    else
      element(0);
    if (unsized_ && !parser_.tokens.failed()) give_size();
  }

 private:
  // One pair of braces: the sub-array at `offset`, `level` dimensions deep.
  void braces(std::size_t level, std::uint64_t offset) {
    TokenStream& tokens = parser_.tokens;
    const SourceLocation location = tokens.peek().location;
    if (level >= deepest_braces()) return tokens.fail(location, "more braces than dimensions");
    const std::uint64_t inner_bytes = bytes_of_element(level);
    tokens.expect("{");
    std::uint64_t position = offset;
    while (!tokens.at_end() && !tokens.at("}")) {
      if (tokens.at("{")) {
        position = offset + align_up(position - offset, inner_bytes);
        braces(level + 1, position);
        position += inner_bytes;
      } else {
        element(position);
        position += element_bytes_;
      }
      if (!tokens.accept(",")) break;
    }
    tokens.expect("}");
    end_ = std::max(end_, position);
  }

  std::size_t deepest_braces() const {
    return std::max<std::size_t>(1, variable_.dimensions.size() + (variable_.vector_arity > 1 ? 1 : 0));
  }

  // Returns the size of an element that stands directly in the braces at this level; at the last level a
  // vector's component.
  std::uint64_t bytes_of_element(std::size_t level) const {
    std::uint64_t bytes = element_bytes_ * (level < variable_.dimensions.size() ? variable_.vector_arity : 1);
    for (std::size_t i = level + 1; i < variable_.dimensions.size(); ++i) bytes *= variable_.dimensions[i];
    return bytes;
  }

  void element(std::uint64_t offset) {
    TokenStream& tokens = parser_.tokens;
    const SourceLocation location = tokens.peek().location;
    end_ = std::max(end_, offset + element_bytes_);
    if (!unsized_ && offset + element_bytes_ > variable_.size_bytes)
      return tokens.fail(location, quoted(variable_.name) + " has more initial values than elements");
    if (tokens.at_word() && tokens.peek().text != "WARP_SZ") return address(offset, std::nullopt);
    const Constant constant = parse_constant(parser_);
    if (tokens.at("(")) return masked_address(offset, constant);
    const std::optional<std::uint64_t> bits =
        literal_bits({constant.bits, constant.is_float, constant.is_single}, variable_.type);
    if (!bits && !tokens.failed())
      return tokens.fail(location,
                         std::string("this number cannot initialise a .") + name_of(variable_.type));
    store(offset, bits.value_or(0), location);
  }

  void store(std::uint64_t offset, std::uint64_t bits, SourceLocation location) {
    const std::uint64_t end = offset + element_bytes_;
    std::vector<std::byte>& bytes = variable_.initial;
    if (end > bytes.size()) {
      parser_.initial_bytes += end - bytes.size();
      if (parser_.initial_bytes > max_initial_bytes_per_module)
        return parser_.tokens.fail(location, "the module has too many initial values");
      bytes.resize(end);
    }
    std::memcpy(bytes.data() + offset, &bits, std::min<std::size_t>(element_bytes_, sizeof bits));
  }

  // 0xFF00(symbol): one byte, or more, of an address.
  void masked_address(std::uint64_t offset, const Constant& mask) {
    TokenStream& tokens = parser_.tokens;
    const auto shift = static_cast<std::uint32_t>(std::countr_zero(mask.bits));
    const std::uint64_t low = mask.is_float || mask.bits == 0 ? 0 : mask.bits >> shift;
    const std::uint64_t element_mask = element_bytes_ >= 8 ? ~0ULL : (1ULL << (8 * element_bytes_)) - 1;
    if (low != element_mask || shift % 8 != 0)
      tokens.fail(mask.location, "the mask of an address must select the bytes of one element");
    tokens.expect("(");
    address(offset, shift);
    tokens.expect(")");
  }

  // symbol, symbol+4, generic(symbol), generic(symbol)+4
  void address(std::uint64_t offset, std::optional<std::uint32_t> shift_bits) {
    TokenStream& tokens = parser_.tokens;
    Token name = tokens.next();
    const bool generic = name.text == "generic" && tokens.accept("(");
    if (generic) name = tokens.expect_word("the name of a variable or function");
    Relocation relocation{offset, element_bytes_, shift_bits.value_or(0), generic, {}, 0};
    const NameEntry* entry = tokens.failed() ? nullptr : parser_.names.find(name.text);
    if (entry == nullptr || entry->kind != NameKind::Symbol) {
      tokens.fail(name.location, quoted(name.text) + " is not a variable or function declared before");
      return;
    }
    relocation.symbol = entry->symbol;
    if (tokens.accept("+")) relocation.addend = static_cast<std::int64_t>(parse_constant(parser_).bits);
    if (generic) tokens.expect(")");
    if (tokens.accept("+")) relocation.addend += static_cast<std::int64_t>(parse_constant(parser_).bits);
    if (!shift_bits && element_bytes_ < 4)
      tokens.fail(name.location, "an address does not fit in a ." + std::string(name_of(variable_.type)));
    store(offset, 0, name.location);
    variable_.relocations.push_back(relocation);
  }

  // name[] = {...} has as many elements as values.
  void give_size() {
    const std::uint64_t element = bytes_of_element(0);
    variable_.dimensions.front() = (end_ + element - 1) / element;
    variable_.size_bytes = variable_.dimensions.front() * element;
  }

  Parser& parser_;
  Variable& variable_;
  std::uint32_t element_bytes_ = 1;
  bool unsized_ = false;
  std::uint64_t end_ = 0;
};

}  // namespace

void parse_initializer(Parser& parser, Variable& variable) {
  if (variable.space != StateSpace::Global && variable.space != StateSpace::Const)
    parser.tokens.fail(variable.location, "only .global and .const variables can have initial values");
  if (size_bytes(variable.type) == 0 || parser.tokens.failed()) return;
  InitializerParser(parser, variable).run();
}

}  // namespace firebreak::ptx
