// SPDX-License-Identifier: Apache-2.0
/// The variables of the program's code: which there are, where each instance has them, and what is in them.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <utility>

#include "ground/base/units.h"
#include "ground/os/memory.h"
#include "ground/os/self.h"
#include "program/virtual/process.h"

namespace firebreak::virtual_driver {

namespace {

/// Code that kernels may have run of, and that may have changed variables: they are looked for by the same
/// names in each instance.
void for_each_with_variables(Objects& objects, const std::function<void(Object&)>& look) {
  const auto look_at_one = [&](Object& code) {
    if (code.is_used.load() && code.is_read.load() && !code.variables.empty()) look(code);
  };
  objects.for_each(Family::Module, look_at_one);
  objects.for_each(Family::Library, look_at_one);
}

/// Lazily loaded code is loaded by that.
std::optional<VariablePlace> place_of(const Instance& instance, CUcontext context, const Object& code,
                                      const std::string& name) {
  const std::uintptr_t own = code.in[instance.slot()].load();
  VariablePlace place;
  instance.driver().cuCtxSetCurrent(context);
  const CUresult found =
      code.family == Family::Module
          ? instance.driver().cuModuleGetGlobal_v2(&place.address, &place.size_bytes,
                                                   reinterpret_cast<CUmodule>(own), name.c_str())
          : instance.driver().cuLibraryGetGlobal(&place.address, &place.size_bytes,
                                                 reinterpret_cast<CUlibrary>(own), name.c_str());
  return found == CUDA_SUCCESS ? std::optional(place) : std::nullopt;
}

/// Bytes that lie at `from` in one instance and belong to `to` in the other.
struct Piece {
  CUdeviceptr from;
  CUdeviceptr to;
  std::size_t size_bytes;
  const Object* code;  ///< which has them
};

/// In the order of their addresses; one that is there twice is one.
void sort(std::vector<Piece>& pieces) {
  const auto begin_of = [](const Piece& piece) { return piece.from; };
  std::erase_if(pieces, [](const Piece& piece) { return piece.size_bytes == 0; });
  std::ranges::stable_sort(pieces, {}, begin_of);
  const auto rest = std::ranges::unique(pieces, {}, begin_of);
  pieces.erase(rest.begin(), rest.end());
}

/// From that one on: those of the same code that lie beside each other in both. What is between them is there
/// for their alignment.
std::size_t count_beside(const std::vector<Piece>& pieces, std::size_t first) {
  constexpr std::size_t alignment = 16;
  std::size_t next = first + 1;
  for (; next < pieces.size(); ++next) {
    const Piece& last = pieces[next - 1];
    const Piece& piece = pieces[next];
    const bool is_beside = piece.code == last.code && piece.from - last.from == piece.to - last.to &&
                           piece.from >= last.from + last.size_bytes &&
                           piece.from - (last.from + last.size_bytes) < alignment;
    if (!is_beside) break;
  }
  return next - first;
}

struct Side {
  const cuda::Backend& driver;
  CUcontext context;
};

/// By way of the host: a wait for each.
CUresult copy(const Side& from, const Side& to, const Piece& piece) {
  std::vector<char> content(piece.size_bytes);
  from.driver.cuCtxSetCurrent(from.context);
  const CUresult read = from.driver.cuMemcpyDtoH_v2(content.data(), piece.from, piece.size_bytes);
  if (read != CUDA_SUCCESS) return read;
  to.driver.cuCtxSetCurrent(to.context);
  return to.driver.cuMemcpyHtoD_v2(piece.to, content.data(), piece.size_bytes);
}

/// Gives `copy_one` as few pieces as can be, in the order of their addresses.
CUresult copy_each(const std::vector<Piece>& pieces, const std::function<CUresult(const Piece&)>& copy_one) {
  CUresult done = CUDA_SUCCESS;
  std::size_t count = 0;
  for (std::size_t first = 0; first < pieces.size() && done == CUDA_SUCCESS; first += count) {
    count = count_beside(pieces, first);
    const Piece& last = pieces[first + count - 1];
    Piece whole = pieces[first];
    whole.size_bytes = last.from + last.size_bytes - whole.from;
    done = copy_one(whole);
    // What lies beside each other may be two pieces of the driver's memory (H100).
    if (done != CUDA_ERROR_INVALID_VALUE || count == 1) continue;
    done = CUDA_SUCCESS;
    for (std::size_t i = first; i < first + count && done == CUDA_SUCCESS; ++i) done = copy_one(pieces[i]);
  }
  return done;
}

constexpr std::size_t room_alignment_bytes = 16;
/// Code is loaded all the time, so there is room for more than there is.
constexpr std::size_t least_room_bytes = std::size_t{256} << 10;
/// It is the program's memory that goes for it. More goes in several turns.
constexpr std::size_t room_bytes_max = std::size_t{16} << 20;

/// From that one on: as many as there is room for at once.
std::size_t count_within(const std::vector<Piece>& pieces, std::size_t first, std::size_t room_bytes) {
  std::size_t next = first;
  for (std::size_t bytes = 0; next < pieces.size(); ++next) {
    bytes += round_up(pieces[next].size_bytes, room_alignment_bytes) + room_alignment_bytes;
    if (bytes > room_bytes) break;
  }
  return next - first;
}

/// By way of memory that both have at the same place: in a domain that is half halted each wait takes some ms
/// (H100), and here are two.
CUresult copy_by_way_of(const Room& room, const Side& from, const Side& to,
                        const std::vector<Piece>& pieces) {
  std::vector<Piece> second_half;
  CUdeviceptr next = room.begin;
  from.driver.cuCtxSetCurrent(from.context);
  CUresult done = copy_each(pieces, [&](const Piece& piece) {
    const CUresult begun = from.driver.cuMemcpyDtoDAsync_v2(next, piece.from, piece.size_bytes, nullptr);
    if (begun != CUDA_SUCCESS) return begun;
    second_half.push_back({next, piece.to, piece.size_bytes, piece.code});
    next += round_up(piece.size_bytes, room_alignment_bytes);
    return begun;
  });
  if (done == CUDA_SUCCESS) done = from.driver.cuCtxSynchronize();
  if (done != CUDA_SUCCESS) return done;
  to.driver.cuCtxSetCurrent(to.context);
  for (const Piece& piece : second_half) {
    done = to.driver.cuMemcpyDtoDAsync_v2(piece.to, piece.from, piece.size_bytes, nullptr);
    if (done != CUDA_SUCCESS) return done;
  }
  return to.driver.cuCtxSynchronize();
}

/// Code that came just before a move has variables for which there is no room yet: then in several turns, and
/// what is larger than the room by way of the host.
CUresult copy_in_turns(const Room& room, const Side& from, const Side& to, const std::vector<Piece>& pieces) {
  CUresult done = CUDA_SUCCESS;
  for (std::size_t first = 0; first < pieces.size() && done == CUDA_SUCCESS;) {
    const std::size_t count = count_within(pieces, first, room.size_bytes);
    const auto at = pieces.begin() + static_cast<std::ptrdiff_t>(first);
    done = count == 0 ? copy(from, to, *at)
                      : copy_by_way_of(room, from, to, {at, at + static_cast<std::ptrdiff_t>(count)});
    first += std::max<std::size_t>(count, 1);
  }
  return done;
}

/// At most, with all that is between variables which are copied as one.
std::size_t room_bytes_of(const std::vector<std::size_t>& sizes_bytes) {
  std::size_t sum = 0;
  for (const std::size_t size : sizes_bytes)
    sum += round_up(size, room_alignment_bytes) + room_alignment_bytes;
  return sum;
}

}  // namespace

/// Which variables the program's code has. In the background, but for code that came just before a flip.
void VirtualProcess::read_code() {
  const std::lock_guard lock(reading_code_);
  const auto unread = objects_.unread_code();
  if (unread.empty()) return check_taken();
  const fatbin::TargetGpu gpu = target_gpu(own_driver_);
  for (const auto& [object, code] : unread) {
    CodeState state = code->read(gpu);
    if (state.why_unknown != nullptr) stand_aside(state.why_unknown);
    object->variables = std::move(state.variables);
    object->named = std::move(state.named);
    object->is_read.store(true, std::memory_order_release);
  }
  check_taken();
}

bool VirtualProcess::has_variables() {
  bool some = false;
  for_each_with_variables(objects_, [&](Object&) { some = true; });
  taken_.for_each([&](const TakenVariable& each) { some = some || each.is_unknown.load(); });
  return some;
}

/// By their names. False: the driver does not find one, so it cannot be copied.
bool VirtualProcess::find_variables(const Instance& instance) {
  const CUcontext context = only_context(instance);
  const Object* const of_context = only_own_context();
  const bool is_one = has_one_context();
  bool all = true;
  for_each_with_variables(objects_, [&](Object& code) {
    // Each context has a library's variables for itself; there is one in the other instance, too.
    all = all && (code.family == Family::Module || is_one);
    // What has just been loaded is made there later, at the latest while the gate is closed.
    const bool is_there = code.in[instance.slot()].load() != 0;
    if (!all || !is_there) return;
    if (std::exchange(code.variables_of, of_context) != of_context) code.variables_in.clear();
    if (code.variables_in.contains(instance.slot())) return;
    std::vector<VariablePlace> places;
    for (const std::string& name : code.variables) {
      const auto place = place_of(instance, context, code, name);
      if (!place) break;
      places.push_back(*place);
    }
    all = places.size() == code.variables.size() || code.is_gone.load();
    if (all && places.size() == code.variables.size()) code.variables_in[instance.slot()] = std::move(places);
  });
  forget_current(instance);
  return all;
}

/// Room in the window for all variables, in the instance that works and, with bring_to(), in the spare. Where
/// there is no memory left for it a move takes longer.
void VirtualProcess::make_room_for_variables() {
  std::vector<std::size_t> sizes_bytes;
  for_each_with_variables(objects_, [&](Object& code) {
    const auto places = code.variables_in.find(active().slot());
    if (places == code.variables_in.end()) return;
    for (const VariablePlace& place : places->second) sizes_bytes.push_back(place.size_bytes);
  });
  taken_.for_each([&](const TakenVariable& each) { sizes_bytes.push_back(each.size_bytes); });
  const std::size_t needed_bytes = std::min(room_bytes_of(sizes_bytes), room_bytes_max);
  if (needed_bytes <= room_.size_bytes) return;
  const std::size_t wanted_bytes =
      std::clamp(std::bit_ceil(2 * needed_bytes), least_room_bytes, room_bytes_max);
  const ContextScope scope(active(), only_context(active()));
  if (room_.size_bytes != 0) memory_.free(room_.begin, active());
  room_ = {};
  CUdeviceptr begin = 0;
  if (memory_.allocate(active(), wanted_bytes, 0, &begin) == CUDA_SUCCESS) {
    // A move after the domain's death would else fail for what the program does not know.
    if (memory_.make_movable(begin, active()))
      room_ = {begin, wanted_bytes};
    else
      memory_.free(begin, active());
  }
}

// ---- Variables whose address the program has ----

void Turn::beware_of_addresses() const {
  if (all.taken().any())
    all.stand_aside("it has the address of a variable, and gives the driver many at once");
}

std::optional<CUdeviceptr> VirtualProcess::take_variable(Object* code, const char* name, CUdeviceptr address,
                                                         std::size_t size_bytes, Slot slot) {
  if (is_traced()) std::fprintf(stderr, "firebreak: takes the address of %s, %zu bytes\n", name, size_bytes);
  const auto seen = code == nullptr ? std::nullopt : taken_.take(*code, name, address, size_bytes, slot);
  if (!seen) stand_aside("it takes the addresses of more variables than can be followed");
  CUdeviceptr word = 0;
  if (!os::copy_if_readable(&word, &address, sizeof word))
    stand_aside("it takes the address of a variable, and its copies cannot be looked at here");
  wake_keeper();
  if (!seen && taken_.holds(address)) return std::nullopt;
  return seen.value_or(address);
}

/// What is not named by what was read could be anything.
void VirtualProcess::check_taken() {
  taken_.for_each([&](TakenVariable& each) {
    if (each.is_known || !each.code->is_read.load(std::memory_order_acquire)) return;
    each.is_known = std::ranges::binary_search(each.code->named, each.name);
    if (!each.is_known) stand_aside("it takes the address of a variable that is not known", each.name);
  });
}

/// A kernel may look there for the address. What is larger hardly has any.
bool VirtualProcess::may_copy(const Turn& turn, CUdeviceptr address, const void* host,
                              std::size_t size_bytes) {
  constexpr std::size_t looked_at_bytes = std::size_t{64} << 10;
  if (!taken_.any() || size_bytes > looked_at_bytes) [[likely]]
    return true;
  std::array<CUdeviceptr, 512> words;
  constexpr std::size_t word_bytes = sizeof(CUdeviceptr);
  std::size_t at = (word_bytes - address % word_bytes) % word_bytes;
  while (at + word_bytes <= size_bytes) {
    const std::size_t count = std::min(words.size(), (size_bytes - at) / word_bytes);
    const char* const from = static_cast<const char*>(host) + at;
    if (!os::copy_if_readable(words.data(), from, count * word_bytes)) return true;
    const auto give = ArgumentAddresses::in_words(words.data(), count * word_bytes, turn.slot, taken_);
    if (give != ArgumentAddresses::Give::NoAddress) {
      stand_aside("it copies the address of a variable to the GPU");
      return give == ArgumentAddresses::Give::Address;
    }
    at += count * word_bytes;
  }
  return true;
}

/// Where they lie in that instance.
bool VirtualProcess::bring_taken(const Instance& instance) {
  if (!taken_.any()) return true;
  const CUcontext context = only_context(instance);
  const bool is_one = has_one_context();
  bool all = true;
  taken_.for_each([&](TakenVariable& each) {
    // Each context has a library's variables for itself; there is one in the other instance, too.
    if (each.code->family != Family::Module && !is_one) {
      all = all && each.is_gone();
      return;
    }
    if (each.in[instance.slot()].load() != 0 || each.code->in[instance.slot()].load() == 0) return;
    const auto place = place_of(instance, context, *each.code, each.name);
    const bool is_it = place && place->size_bytes == each.size_bytes;
    if (is_it) each.in[instance.slot()].store(place->address, std::memory_order_release);
    all = all && (is_it || each.is_gone());
  });
  forget_current(instance);
  return all;
}

/// What the program has written to them by the host, where the instance that had it is gone.
bool VirtualProcess::write_taken(const Instance& instance) {
  if (!taken_.any()) return true;
  bool whole = true;
  const ContextScope scope(instance, only_context(instance));
  taken_.for_each([&](const TakenVariable& each) {
    const CUdeviceptr begin = each.in[instance.slot()].load();
    for (const TakenVariables::Run& run : taken_.written_to(each)) {
      const CUresult written =
          instance.driver().cuMemcpyHtoD_v2(begin + run.offset_bytes, run.bytes.data(), run.bytes.size());
      whole = whole && written == CUDA_SUCCESS;
    }
  });
  return whole;
}

bool VirtualProcess::may_launch(const Turn& turn, CUfunction function, void** parameters, void** extra) {
  const Object* const kernel = objects_.find(Family::Code, number_of(function));
  const CUfunction own = objects_.translate(function, turn.slot);
  switch (arguments_.look(turn.driver, turn.slot, taken_, kernel, own, parameters, extra)) {
    case ArgumentAddresses::Give::NoAddress:
      return true;
    case ArgumentAddresses::Give::Address:
      stand_aside("it gives a kernel the address of a variable");
      return true;
    case ArgumentAddresses::Give::OldAddress:
      stand_aside("it gave a kernel the address of a variable after a move");
      return false;
    case ArgumentAddresses::Give::Unknown:
      stand_aside("it has the address of a variable, and its kernels' parameters are not known");
      return true;
  }
  return true;
}

/// What kernels may have stored in variables of their code, which each instance has for itself. Empty: all is
/// copied; else why not.
std::string VirtualProcess::copy_variables(const Instance& from, const Instance& to) {
  if (!find_variables(from) || !find_variables(to)) return "one is not in both";
  std::vector<Piece> pieces;
  std::string wrong;
  for_each_with_variables(objects_, [&](Object& code) {
    const auto sources = code.variables_in.find(from.slot());
    const auto targets = code.variables_in.find(to.slot());
    const bool are_in_both = sources != code.variables_in.end() && targets != code.variables_in.end();
    for (std::size_t i = 0; i < code.variables.size(); ++i) {
      if (!are_in_both || sources->second[i].size_bytes != targets->second[i].size_bytes) {
        wrong = code.variables[i] + " is not in both";
        return;
      }
      const VariablePlace& source = sources->second[i];
      pieces.push_back({source.address, targets->second[i].address, source.size_bytes, &code});
    }
  });
  taken_.for_each([&](TakenVariable& each) {
    pieces.push_back({each.in[from.slot()].load(), each.in[to.slot()].load(), each.size_bytes, each.code});
    if (pieces.back().from == 0 || pieces.back().to == 0) wrong = each.name + " has no address in both";
  });
  if (!wrong.empty()) return wrong;
  sort(pieces);
  const Side source{from.driver(), only_context(from)};
  const Side target{to.driver(), only_context(to)};
  const auto by_host = [&](const Piece& piece) { return copy(source, target, piece); };
  CUresult done = pieces.empty() ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  if (done != CUDA_SUCCESS && room_.size_bytes != 0) done = copy_in_turns(room_, source, target, pieces);
  // Nobody has seen anything of the first try.
  if (done != CUDA_SUCCESS) done = copy_each(pieces, by_host);
  forget_current(from);
  forget_current(to);
  return done == CUDA_SUCCESS ? "" : "a copy answers " + std::to_string(done);
}

// ---- While the program rests ----

/// Runs `act` on each variable, with its place in that instance, in an order that stays the same. False: one
/// of them is not found there.
bool VirtualProcess::each_variable_in(const Instance& instance,
                                      const std::function<void(const VariablePlace&)>& act) {
  if (!find_variables(instance) || !bring_taken(instance)) return false;
  bool all = true;
  for_each_with_variables(objects_, [&](Object& code) {
    const auto places = code.variables_in.find(instance.slot());
    all = all && places != code.variables_in.end();
    for (std::size_t i = 0; all && i < places->second.size(); ++i) act(places->second[i]);
  });
  taken_.for_each([&](const TakenVariable& each) {
    const CUdeviceptr begin = each.in[instance.slot()].load();
    all = all && (begin != 0 || each.is_gone());
    if (all) act({begin, begin == 0 ? 0 : each.size_bytes});
  });
  return all;
}

bool VirtualProcess::save_variables(const Instance& from, std::vector<std::vector<char>>* contents) {
  CUresult done = CUDA_SUCCESS;
  const CUcontext context = only_context(from);
  const bool all = each_variable_in(from, [&](const VariablePlace& place) {
    std::vector<char>& content = contents->emplace_back(place.size_bytes);
    from.driver().cuCtxSetCurrent(context);
    if (done == CUDA_SUCCESS && place.size_bytes != 0)
      done = from.driver().cuMemcpyDtoH_v2(content.data(), place.address, place.size_bytes);
  });
  forget_current(from);
  return all && done == CUDA_SUCCESS;
}

bool VirtualProcess::fill_variables(const Instance& to, const std::vector<std::vector<char>>& contents) {
  bool same = true;
  std::size_t next = 0;
  const CUcontext context = only_context(to);
  const bool all = each_variable_in(to, [&](const VariablePlace& place) {
    same = same && next < contents.size() && contents[next].size() == place.size_bytes;
    to.driver().cuCtxSetCurrent(context);
    if (same && place.size_bytes != 0)
      same =
          to.driver().cuMemcpyHtoD_v2(place.address, contents[next].data(), place.size_bytes) == CUDA_SUCCESS;
    ++next;
  });
  forget_current(to);
  return all && same && next == contents.size();
}

/// The program's, where it has made one of its own.
const Object* VirtualProcess::only_own_context() {
  const Object* own = nullptr;
  objects_.for_each(Family::Context, [&](Object& context) { own = &context; });
  return own;
}

/// The program's, as far as it has one: each context has the variables of a library for itself.
CUcontext VirtualProcess::only_context(const Instance& instance) {
  std::uintptr_t own = number_of(instance.primary());
  objects_.for_each(Family::Context, [&](Object& context) {
    if (const std::uintptr_t its = context.in[instance.slot()].load(); its != 0) own = its;
  });
  return reinterpret_cast<CUcontext>(own);
}

}  // namespace firebreak::virtual_driver
