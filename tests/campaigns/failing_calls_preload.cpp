// Loaded into a program before all others (LD_PRELOAD), lets one of its allocations or system calls fail,
// from main on: XGRAD_FAIL_CALL names it ("memory", "write", ...), XGRAD_FAIL_AFTER says how many before it
// succeed, XGRAD_FAIL_ERROR is errno, or 0 for half of what was to be read or written, and
// XGRAD_FAIL_FOR_GOOD lets all after it fail, too. Without XGRAD_FAIL_CALL, the numbers of calls go to the
// file XGRAD_FAIL_COUNTS. Calls of OpenBLAS, of OpenMP's runtime and of the C library's own are left alone:
// what they do then is theirs.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

enum Call {
  memory,
  open_call,
  read_call,
  write_call,
  fsync_call,
  rename_call,
  mmap_call,
  close_call,
  ftruncate_call,
  fchmod_call,
  flock_call,
  mkdir_call,
  num_calls
};
constexpr std::array<const char*, num_calls> names{"memory",    "open",   "read",  "write",
                                                   "fsync",     "rename", "mmap",  "close",
                                                   "ftruncate", "fchmod", "flock", "mkdir"};

std::atomic<bool> active = false;
std::array<std::atomic<unsigned long>, num_calls> counts{};
int failing = -1, error = 0;
unsigned long after = 0;
bool for_good = false;

struct Range {
  std::uintptr_t begin, end;
};
std::array<Range, 8> foreign{};
std::size_t num_foreign = 0;

int note_foreign(dl_phdr_info* info, std::size_t, void*) {
  bool is_foreign = false;
  for (const char* name : {"openblas", "libblas", "libgomp", "libomp", "libc.so", "ld-linux"})
    is_foreign = is_foreign || std::strstr(info->dlpi_name, name) != nullptr;
  if (!is_foreign) return 0;
  Range range{UINTPTR_MAX, 0};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (begin < range.begin) range.begin = begin;
    if (begin + part.p_memsz > range.end) range.end = begin + part.p_memsz;
  }
  if (num_foreign < foreign.size()) foreign[num_foreign++] = range;
  return 0;
}

/// Whether this call, made from there, fails.
bool fails(Call call, void* from) noexcept {
  if (!active.load(std::memory_order_relaxed)) return false;
  const auto at = reinterpret_cast<std::uintptr_t>(from);
  for (std::size_t i = 0; i < num_foreign; ++i)
    if (at >= foreign[i].begin && at < foreign[i].end) return false;
  const unsigned long before = counts[call].fetch_add(1, std::memory_order_relaxed);
  if (failing != call || (for_good ? before < after : before != after)) return false;
  errno = error;
  return true;
}

/// The function of this name that comes next: the C library's.
template <class F>
F* next(const char* name) noexcept {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

int (*real_main)(int, char**, char**) = nullptr;

int begin_main(int argc, char** argv, char** environment) {
  ::dl_iterate_phdr(note_foreign, nullptr);
  if (const char* name = std::getenv("XGRAD_FAIL_CALL")) {
    for (int call = 0; call < num_calls; ++call)
      if (std::strcmp(name, names[static_cast<std::size_t>(call)]) == 0) failing = call;
    after = std::strtoul(std::getenv("XGRAD_FAIL_AFTER"), nullptr, 10);
    error = std::atoi(std::getenv("XGRAD_FAIL_ERROR"));
    for_good = std::getenv("XGRAD_FAIL_FOR_GOOD") != nullptr;
  }
  active = true;
  return real_main(argc, argv, environment);
}

[[gnu::destructor]] void write_counts() {
  active = false;
  const char* const path = std::getenv("XGRAD_FAIL_COUNTS");
  if (path == nullptr) return;
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  for (std::size_t call = 0; call < num_calls; ++call)
    ::dprintf(file, "%s %lu\n", names[call], counts[call].load());
  ::close(file);
}

/// A read or write of so many bytes: all of them, half, or an error.
template <class F>
ssize_t transferred(Call call, void* from, std::size_t count, const F& f) {
  if (!fails(call, from)) return f(count);
  return error == 0 && count > 1 ? f(count / 2) : error == 0 ? f(count) : -1;
}

}  // namespace

#define FROM __builtin_return_address(0)
#define REAL(name) static auto* const real = next<decltype(name)>(#name)

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  real_main = main;
  REAL(__libc_start_main);
  return real(begin_main, argc, argv, init, fini, rtld_fini, stack_end);
}

void* malloc(std::size_t size) { return fails(memory, FROM) ? nullptr : __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) {
  return fails(memory, FROM) ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* block, std::size_t size) {
  return fails(memory, FROM) ? nullptr : __libc_realloc(block, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  return fails(memory, FROM) ? nullptr : __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails(memory, FROM) ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  if (fails(memory, FROM)) return ENOMEM;
  *block = __libc_memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}

#define OPEN(name)                                                      \
  int name(const char* path, int flags, ...) {                          \
    va_list arguments;                                                  \
    va_start(arguments, flags);                                         \
    const auto mode = static_cast<mode_t>(va_arg(arguments, unsigned)); \
    va_end(arguments);                                                  \
    REAL(name);                                                         \
    return fails(open_call, FROM) ? -1 : real(path, flags, mode);       \
  }
#define OPENAT(name)                                                      \
  int name(int folder, const char* path, int flags, ...) {                \
    va_list arguments;                                                    \
    va_start(arguments, flags);                                           \
    const auto mode = static_cast<mode_t>(va_arg(arguments, unsigned));   \
    va_end(arguments);                                                    \
    REAL(name);                                                           \
    return fails(open_call, FROM) ? -1 : real(folder, path, flags, mode); \
  }
#define FOPEN(name)                                             \
  std::FILE* name(const char* path, const char* mode) {         \
    REAL(name);                                                 \
    return fails(open_call, FROM) ? nullptr : real(path, mode); \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
FOPEN(fopen)
FOPEN(fopen64)

ssize_t read(int file, void* to, std::size_t count) {
  REAL(read);
  return transferred(read_call, FROM, count, [&](std::size_t n) { return real(file, to, n); });
}
ssize_t write(int file, const void* bytes, std::size_t count) {
  REAL(write);
  return transferred(write_call, FROM, count, [&](std::size_t n) { return real(file, bytes, n); });
}
#define AT_OFFSET(name, call, Bytes)                                                                    \
  ssize_t name(int file, Bytes bytes, std::size_t count, off_t offset) {                                \
    REAL(name);                                                                                         \
    return transferred(call, FROM, count, [&](std::size_t n) { return real(file, bytes, n, offset); }); \
  }
AT_OFFSET(pread, read_call, void*)
AT_OFFSET(pread64, read_call, void*)
AT_OFFSET(pwrite, write_call, const void*)
AT_OFFSET(pwrite64, write_call, const void*)

int close(int file) {  // is done in any case, as Linux does it
  REAL(close);
  const bool wrong = fails(close_call, FROM);
  const int result = real(file);
  if (!wrong) return result;
  errno = error;
  return -1;
}
void* mmap(void* at, std::size_t size, int protection, int flags, int file, off_t offset) noexcept {
  REAL(mmap);
  return file >= 0 && fails(mmap_call, FROM) ? MAP_FAILED : real(at, size, protection, flags, file, offset);
}
void* mmap64(void* at, std::size_t size, int protection, int flags, int file, off_t offset) noexcept {
  REAL(mmap64);
  return file >= 0 && fails(mmap_call, FROM) ? MAP_FAILED : real(at, size, protection, flags, file, offset);
}
int fsync(int file) {
  REAL(fsync);
  return fails(fsync_call, FROM) ? -1 : real(file);
}
int rename(const char* from, const char* to) noexcept {
  REAL(rename);
  return fails(rename_call, FROM) ? -1 : real(from, to);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  REAL(renameat2);
  return fails(rename_call, FROM) ? -1 : real(from_folder, from, to_folder, to, flags);
}
int ftruncate(int file, off_t size) noexcept {
  REAL(ftruncate);
  return fails(ftruncate_call, FROM) ? -1 : real(file, size);
}
int fchmod(int file, mode_t mode) noexcept {
  REAL(fchmod);
  return fails(fchmod_call, FROM) ? -1 : real(file, mode);
}
int flock(int file, int operation) noexcept {
  REAL(flock);
  return fails(flock_call, FROM) ? -1 : real(file, operation);
}
int mkdir(const char* path, mode_t mode) noexcept {
  REAL(mkdir);
  return fails(mkdir_call, FROM) ? -1 : real(path, mode);
}

}  // extern "C"
