#include "berth/sys/process.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "berth/sys/file.h"

namespace berth::sys {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void replace_environment(const std::vector<std::string>& variables) {
  ::clearenv();
  for (const std::string& each : variables) {
    const std::size_t equals = each.find('=');
    if (equals != std::string::npos) ::setenv(each.substr(0, equals).c_str(), each.c_str() + equals + 1, 1);
  }
}

Result<std::string> current_folder() {
  std::array<char, PATH_MAX> buffer;
  if (::getcwd(buffer.data(), buffer.size()) == nullptr) return fail_errno("looking in which folder we are");
  return std::string(buffer.data());
}

// Linux shows the memory in which it has put the arguments. The environment follows them. If the
// last byte of the arguments is no NUL, Linux takes the text for one that was written over both,
// and shows it up to the first NUL.

void show_as(std::string_view words) {
  constexpr std::ptrdiff_t kMost = 1 << 20;
  char* const begin = program_invocation_name;
  char* const end = environ != nullptr ? *environ : nullptr;
  if (end == nullptr || end <= begin || end - begin > kMost || end[-1] != '\0') return;
  char* room = end;
  for (char** each = environ; *each == room && room < begin + words.size() + 1; ++each) {
    room += std::strlen(room) + 1;
    *each = ::strdup(*each);
    if (*each == nullptr) return;
  }
  if (room < begin + words.size() + 1) return;
  std::fill(begin, end, '\0');
  std::ranges::copy(words, begin);
  begin[words.size()] = '\0';
  if (begin + words.size() < end) std::replace(begin, begin + words.size(), ' ', '\0');
}

namespace {

constexpr std::string_view kUnlimited = "unlimited";

struct Limit {
  int resource;
  std::string_view name;       ///< as in prlimit(1)
  std::string_view in_words;   ///< as bash has it
  bool can_hold_us_up = true;  ///< a core file is none of our work, and a large stack moves what is mapped
};
// The limits that Slurm takes from the shell, too.
constexpr std::array<Limit, 10> kLimits{{
    {RLIMIT_AS, "as", "virtual memory (ulimit -v)"},
    {RLIMIT_CORE, "core", "the size of a core file (ulimit -c)", false},
    {RLIMIT_CPU, "cpu", "CPU time (ulimit -t)"},
    {RLIMIT_DATA, "data", "the data segment (ulimit -d)"},
    {RLIMIT_FSIZE, "fsize", "the size of a file (ulimit -f)"},
    {RLIMIT_MEMLOCK, "memlock", "locked memory (ulimit -l)"},
    {RLIMIT_NOFILE, "nofile", "open files (ulimit -n)"},
    {RLIMIT_NPROC, "nproc", "processes of the user (ulimit -u)"},
    {RLIMIT_RSS, "rss", "resident memory (ulimit -m)"},
    {RLIMIT_STACK, "stack", "the stack (ulimit -s)", false},
}};

std::optional<rlimit> limit_of(int resource) {
  rlimit limit{};
  // The C library has a type of its own for the names.
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return std::nullopt;
  return limit;
}

void set_soft(int resource, rlim_t most) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
  limit.rlim_cur = most;
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

std::string to_text(rlim_t most) {
  return most == RLIM_INFINITY ? std::string(kUnlimited) : std::to_string(most);
}

std::optional<rlim_t> limit_from_text(std::string_view text) {
  if (text == kUnlimited) return RLIM_INFINITY;
  rlim_t most = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), most);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return most;
}

}  // namespace

std::vector<std::string> soft_limits() {
  std::vector<std::string> texts;
  for (const Limit& each : kLimits) {
    if (const auto limit = limit_of(each.resource))
      texts.push_back(fmt::format("{}={}", each.name, to_text(limit->rlim_cur)));
  }
  return texts;
}

void set_limits(const CommandLimits& limits) {
  for (const SoftLimit& each : limits.soft) set_soft(each.resource, each.most);
  if (limits.nice) ::setpriority(PRIO_PROCESS, 0, *limits.nice);
}

PossibleLimits possible_limits(const std::vector<std::string>& soft, std::optional<int> nice) {
  PossibleLimits possible;
  for (const std::string_view text : soft) {
    const auto* const each = std::ranges::find(kLimits, text.substr(0, text.find('=')), &Limit::name);
    if (each == kLimits.end() || text.size() == each->name.size()) continue;
    const auto wanted = limit_from_text(text.substr(each->name.size() + 1));
    const auto here = limit_of(each->resource);
    if (!wanted || !here) continue;
    possible.limits.soft.push_back({each->resource, std::min(*wanted, here->rlim_max)});
    if (*wanted > here->rlim_max)
      possible.less.push_back(fmt::format("the limit on {} is {}, not {}", each->in_words,
                                          to_text(here->rlim_max), to_text(*wanted)));
  }
  const int here = ::getpriority(PRIO_PROCESS, 0);
  if (!nice || *nice == here) return possible;
  // All may raise it. Only some may lower it, and to ask who may is to try.
  const bool may = *nice > here || ::setpriority(PRIO_PROCESS, 0, *nice) == 0;
  if (may && *nice < here) ::setpriority(PRIO_PROCESS, 0, here);
  if (may)
    possible.limits.nice = nice;
  else
    possible.less.push_back(fmt::format("nice is {}, not {}", here, *nice));
  return possible;
}

void raise_limits() {
  for (const Limit& each : kLimits) {
    const auto limit = each.can_hold_us_up ? limit_of(each.resource) : std::nullopt;
    if (limit) set_soft(each.resource, limit->rlim_max);
  }
}

rlim_t most_open_files() {
  const auto limit = limit_of(RLIMIT_NOFILE);
  return limit ? limit->rlim_max : RLIM_INFINITY;
}

void give_back_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
  if (::gettid() != ::getpid()) return;
  // The frames below are of calls that have returned; a page is left for the calls from here. Below
  // a first stack Linux keeps more than this free of other mappings, whatever its limit is. If a
  // part is not mapped, the call fails and has done the rest.
  constexpr std::uintptr_t kDeepest = 1 << 20;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const std::uintptr_t end = (here - page) & ~(page - 1);
  ::madvise(reinterpret_cast<void*>(end - kDeepest), kDeepest, MADV_DONTNEED);
}

Result<DynamicLibrary> DynamicLibrary::open(const std::string& name) {
  // Someone's old error would else be taken for ours.
  dlerror();
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return DynamicLibrary(handle);
  const char* reason = dlerror();
  return fail(ErrorCode::failure, reason != nullptr ? reason : name + ": cannot be loaded");
}

void* DynamicLibrary::symbol(const char* name) const {
  return dlsym(handle_, name);
}

}  // namespace berth::sys
