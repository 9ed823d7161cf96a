// SPDX-License-Identifier: Apache-2.0
#include "idempotency/instrument.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "kernels/ptx/memory_effect.h"

namespace firebreak::idempotency {
namespace {

// Offsets of TraceHeader's and TraceRecord's members stand in the text.
constexpr const char* note_function = R"(
.visible .global .align 8 .u64 firebreak_trace = 0;
.func firebreak_note(.param .b64 firebreak_address, .param .b32 firebreak_line, .param .b32 firebreak_what)
{
  .reg .pred %p<6>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<24>;
  ld.param.u64 %rd1, [firebreak_address];
  ld.param.u32 %r2, [firebreak_what];
  and.b32 %r14, %r2, 0x80;
  setp.eq.u32 %p5, %r14, 0;
  @%p5 bra $firebreak_global;
  isspacep.global %p0, %rd1;
  @!%p0 bra $firebreak_end;
$firebreak_global:
  mov.u64 %rd20, firebreak_trace;
  ld.global.u64 %rd2, [%rd20];
  setp.eq.u64 %p1, %rd2, 0;
  @%p1 bra $firebreak_end;
  ld.param.u32 %r1, [firebreak_line];
  shr.u32 %r3, %r2, 8;
  cvt.u64.u32 %rd3, %r3;
  add.u64 %rd4, %rd1, %rd3;
  ld.global.u64 %rd5, [%rd2+32];
  add.u64 %rd6, %rd2, 48;
$firebreak_next:
  setp.eq.u64 %p2, %rd5, 0;
  @%p2 bra $firebreak_stray;
  ld.global.u64 %rd7, [%rd6];
  ld.global.u64 %rd8, [%rd6+8];
  add.u64 %rd6, %rd6, 16;
  sub.u64 %rd5, %rd5, 1;
  setp.lt.u64 %p3, %rd1, %rd7;
  @%p3 bra $firebreak_next;
  setp.gt.u64 %p3, %rd4, %rd8;
  @%p3 bra $firebreak_next;
  atom.global.add.u64 %rd9, [%rd2], 1;
  ld.global.u64 %rd10, [%rd2+16];
  setp.ge.u64 %p4, %rd9, %rd10;
  @%p4 exit;
  ld.global.u64 %rd11, [%rd2+8];
  setp.ge.u64 %p4, %rd9, %rd11;
  @%p4 bra $firebreak_end;
  mov.u32 %r4, %ctaid.z;
  mov.u32 %r5, %nctaid.y;
  mov.u32 %r6, %ctaid.y;
  mad.lo.u32 %r4, %r4, %r5, %r6;
  mov.u32 %r5, %nctaid.x;
  mov.u32 %r6, %ctaid.x;
  cvt.u64.u32 %rd12, %r4;
  cvt.u64.u32 %rd13, %r5;
  cvt.u64.u32 %rd14, %r6;
  mad.lo.u64 %rd12, %rd12, %rd13, %rd14;
  mov.u32 %r7, %ntid.x;
  mov.u32 %r8, %ntid.y;
  mov.u32 %r9, %ntid.z;
  mul.lo.u32 %r10, %r7, %r8;
  mul.lo.u32 %r9, %r9, %r10;
  cvt.u64.u32 %rd13, %r9;
  mul.lo.u64 %rd12, %rd12, %rd13;
  mov.u32 %r11, %tid.z;
  mov.u32 %r12, %tid.y;
  mov.u32 %r13, %tid.x;
  mad.lo.u32 %r12, %r11, %r8, %r12;
  mad.lo.u32 %r13, %r12, %r7, %r13;
  cvt.u64.u32 %rd14, %r13;
  add.u64 %rd12, %rd12, %rd14;
  ld.global.u64 %rd15, [%rd2+24];
  mad.lo.u64 %rd16, %rd9, 24, %rd15;
  st.global.u64 [%rd16], %rd1;
  st.global.u64 [%rd16+8], %rd12;
  st.global.u32 [%rd16+16], %r1;
  st.global.u32 [%rd16+20], %r2;
$firebreak_end:
  ret;
$firebreak_stray:
  add.u64 %rd2, %rd2, 40;
  atom.global.add.u64 %rd17, [%rd2], 1;
  exit;
}
)";

class Instrumenter {
 public:
  Instrumenter(const std::string& text, const ptx::Module& module, const ptx::Function& kernel)
      : module_(module), kernel_(kernel) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines_.push_back(std::move(line));
    before_.resize(lines_.size());
  }

  Result<std::string> run(std::uint32_t threads) {
    std::vector<const ptx::Function*> reached{&kernel_};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const ptx::Instruction& instruction : reached[i]->instructions)
        if (const Status noted = note(*reached[i], instruction); !noted) return propagate(noted);
      for (const ptx::Call& call : reached[i]->calls) {
        if (call.function_index == ptx::no_index) continue;
        const ptx::Function* const callee = &module_.functions[call.function_index];
        if (std::ranges::find(reached, callee) == reached.end()) reached.push_back(callee);
      }
    }
    for (const ptx::Function& other : module_.functions)
      if (other.is_entry && &other != &kernel_) remove(other);
    const bool is_bounded = kernel_.bounds.maxntid[0] != 0 || kernel_.bounds.reqntid[0] != 0;
    if (!is_bounded) bound(threads);
    return text();
  }

 private:
  static Status unsupported(const std::string& what) { return fail(ErrorCode::Unsupported, what); }

  Status note(const ptx::Function& function, const ptx::Instruction& instruction) {
    if (instruction.opcode == ptx::Opcode::Opaque)
      if (const ptx::OpaqueInstruction& opaque = function.opaque_instructions[instruction.opaque_index];
          opaque.has_address && !opaque.only_shared)
        return unsupported("an instruction that is not known: " + opaque.text);
    if (instruction.opcode == ptx::Opcode::Call &&
        function.calls[instruction.call_index].function_index == ptx::no_index)
      return unsupported("it calls a function by its address");
    for (const ptx::MemoryEffect& effect : ptx::memory_effects(instruction)) {
      const bool is_memory = effect.space == ptx::StateSpace::None || effect.space == ptx::StateSpace::Global;
      if (effect.kind == ptx::EffectKind::None || !is_memory || effect.operand == ptx::no_index) continue;
      const std::string address = address_of(function, instruction.operands[effect.operand]);
      if (address.empty()) continue;  // of parameters, or shared or local memory by name
      const std::uint32_t line = instruction.location.line;
      if (line == 0 || line > lines_.size()) return unsupported("an instruction without a line");
      const std::uint32_t what =
          what_of(effect.kind, effect.space == ptx::StateSpace::None, ptx::access_bytes(instruction));
      before_[line - 1] += call(function, address, line, what, instruction.guard);
    }
    return {};
  }

  // In words of PTX: what makes %firebreak_at the address.
  std::string address_of(const ptx::Function& function, const ptx::Operand& operand) const {
    switch (operand.kind) {
      case ptx::OperandKind::RegisterAddress: {
        const ptx::Register& base = function.registers[operand.register_index];
        return fmt::format("  add.s64 %firebreak_at, {}, {};\n", base.name, operand.offset);
      }
      case ptx::OperandKind::SymbolAddress: {
        if (operand.symbol.kind != ptx::SymbolKind::ModuleVariable) return {};
        const ptx::Variable& variable = module_.variables[operand.symbol.index];
        if (variable.space != ptx::StateSpace::Global) return {};
        return fmt::format("  mov.u64 %firebreak_at, {};\n  add.s64 %firebreak_at, %firebreak_at, {};\n",
                           variable.name, operand.offset);
      }
      default:
        return {};
    }
  }

  static std::string call(const ptx::Function& function, const std::string& address, std::uint32_t line,
                          std::uint32_t what, const ptx::Guard& guard) {
    std::string when;
    if (guard.register_index != ptx::no_index)
      when = fmt::format("@{}{} ", guard.negated ? "!" : "", function.registers[guard.register_index].name);
    return fmt::format(
        "  {{\n  .reg .b64 %firebreak_at;\n{}"
        "  .param .b64 firebreak_0;\n  st.param.b64 [firebreak_0], %firebreak_at;\n"
        "  .param .b32 firebreak_1;\n  st.param.b32 [firebreak_1], {};\n"
        "  .param .b32 firebreak_2;\n  st.param.b32 [firebreak_2], {};\n"
        "  {}call firebreak_note, (firebreak_0, firebreak_1, firebreak_2);\n  }}\n",
        address, line, what, when);
  }

  // It needs more registers than before: a block still has to fit.
  void bound(std::uint32_t threads) {
    std::size_t at = kernel_.location.line - 1;
    while (at < lines_.size() && lines_[at].find('{') == std::string::npos) ++at;
    if (at < lines_.size()) {
      const std::string directive = fmt::format(".maxntid {}, 1, 1\n", threads);
      lines_[at].insert(lines_[at].find('{'), directive);
    }
  }

  // From the line of its name, or what stands before that, to its last brace.
  void remove(const ptx::Function& function) {
    std::size_t at = function.location.line - 1;
    while (at > 0 && lines_[at].find(".entry") == std::string::npos) --at;
    for (int depth = 0; at < lines_.size(); ++at) {
      const std::string line = std::exchange(lines_[at], std::string());
      if (line.find(';') != std::string::npos && depth == 0 && !function.has_body) return;
      for (const char each : line) depth += each == '{' ? 1 : each == '}' ? -1 : 0;
      if (depth == 0 && line.find('}') != std::string::npos) return;
    }
  }

  // What notes stands before all functions.
  std::string text() const {
    std::string whole;
    bool is_noting = false;
    for (std::size_t at = 0; at < lines_.size(); ++at) {
      whole += before_[at];
      whole += lines_[at] + '\n';
      if (!is_noting && lines_[at].find(".address_size") != std::string::npos) {
        whole += note_function;
        is_noting = true;
      }
    }
    return whole;
  }

  const ptx::Module& module_;
  const ptx::Function& kernel_;
  std::vector<std::string> lines_;
  std::vector<std::string> before_;  ///< by line
};

}  // namespace

softgpu::ObservedAccess observed(const TraceRecord& record) {
  using softgpu::GpuAccess;
  const auto kind = static_cast<ptx::EffectKind>(record.what & 0xFU);
  const GpuAccess access = kind == ptx::EffectKind::Read    ? GpuAccess::Load
                           : kind == ptx::EffectKind::Write ? GpuAccess::Store
                                                            : GpuAccess::Atomic;
  return {record.address, record.what >> 8U, access, record.line, record.thread};
}

Result<std::string> instrument(const std::string& text, const ptx::Module& module,
                               const ptx::Function& kernel, std::uint32_t threads) {
  return Instrumenter(text, module, kernel).run(threads);
}

}  // namespace firebreak::idempotency
