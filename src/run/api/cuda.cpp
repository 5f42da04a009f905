#include "berth/api/cuda.h"

#include "berth/base/text.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace berth {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr int kNotInitialized = 3;  // CUDA_ERROR_NOT_INITIALIZED
constexpr int kNoDevice = 100;      // CUDA_ERROR_NO_DEVICE: the mask hides them all
// As much as the driver gives out at the least.
constexpr std::size_t kBlockBytes = 2 << 20;

using Context = void*;

/// The calls of libcuda.so.1 that are needed here. Once loaded it stays: its own threads may be in
/// it.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*retain)(Context*, int) = nullptr;
  int (*release)(int) = nullptr;
  int (*push)(Context) = nullptr;
  int (*pop)(Context*) = nullptr;
  int (*allocate)(std::uint64_t*, std::size_t) = nullptr;
  int (*free)(std::uint64_t) = nullptr;
  int (*error_string)(int, const char**) = nullptr;

  static Result<Driver> load() {
    void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr)
      return fail(ErrorCode::no_driver, "a placeholder needs CUDA's driver library: {}", ::dlerror());
    Driver driver;
    const bool whole =
        find(library, "cuInit", driver.init) && find(library, "cuDeviceGet", driver.device_get) &&
        find(library, "cuDevicePrimaryCtxRetain", driver.retain) &&
        find(library, "cuDevicePrimaryCtxRelease_v2", driver.release) &&
        find(library, "cuCtxPushCurrent_v2", driver.push) &&
        find(library, "cuCtxPopCurrent_v2", driver.pop) && find(library, "cuMemAlloc_v2", driver.allocate) &&
        find(library, "cuMemFree_v2", driver.free) && find(library, "cuGetErrorString", driver.error_string);
    if (!whole) return fail(ErrorCode::no_driver, "this {} is too old for a placeholder", kLibrary);
    return driver;
  }

  Result<void> check(int status, std::string_view doing) const {
    if (status == 0) return {};
    const char* text = nullptr;
    if (error_string(status, &text) != 0 || text == nullptr) text = "unknown";
    return fail(ErrorCode::failure, "{} for a placeholder: CUDA error {} ({})", doing, status, text);
  }

 private:
  template <class Function>
  static bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
  }
};

Result<std::uint64_t> allocate(const Driver& driver, int device) {
  Context context = nullptr;
  if (auto made = driver.check(driver.retain(&context, device), "making a context"); !made)
    return std::unexpected(made.error());
  std::uint64_t address = 0;
  auto allocated = driver.check(driver.push(context), "entering a context");
  if (allocated) {
    allocated = driver.check(driver.allocate(&address, kBlockBytes), "taking memory");
    driver.pop(&context);
  }
  if (allocated) return address;
  driver.release(device);
  return std::unexpected(allocated.error());
}

}  // namespace

bool cuda_is_up() {
  void* library = ::dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  // It answers that before cuInit, which reads the mask, and never after.
  using DeviceCount = int (*)(int*);
  const auto device_count = reinterpret_cast<DeviceCount>(::dlsym(library, "cuDeviceGetCount"));
  int count = 0;
  const bool up = device_count != nullptr && device_count(&count) != kNotInitialized;
  ::dlclose(library);
  return up;
}

Result<std::vector<std::string>> cuda_order() {
  using Uuid = std::array<unsigned char, 16>;
  void* library = ::dlopen(kLibrary, RTLD_NOW);
  if (library == nullptr)
    return fail(ErrorCode::no_driver, "CUDA's driver library cannot be loaded: {}", ::dlerror());
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(library, "cuInit"));
  const auto count_devices = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuDeviceGetCount"));
  const auto uuid_of = reinterpret_cast<int (*)(Uuid*, int)>(::dlsym(library, "cuDeviceGetUuid"));
  if (init == nullptr || count_devices == nullptr || uuid_of == nullptr)
    return fail(ErrorCode::no_driver, "this {} is too old to say how it counts", kLibrary);
  std::vector<std::string> order;
  const int begun = init(0);
  if (begun == kNoDevice) return order;
  int count = 0;
  if (begun != 0 || count_devices(&count) != 0)
    return fail(ErrorCode::failure, "CUDA does not start (error {})", begun);
  for (int number = 0; number < count; ++number) {
    Uuid uuid{};
    if (uuid_of(&uuid, number) != 0) return fail(ErrorCode::failure, "CUDA does not tell a device's UUID");
    std::string text = fmt::format("{:02x}", fmt::join(uuid, ""));
    for (const std::size_t dash : {8, 13, 18, 23}) text.insert(dash, "-");
    order.push_back("GPU-" + text);
  }
  return order;
}

Result<CudaPlaceholder> CudaPlaceholder::take(const std::vector<std::size_t>& ordinals) {
  BERTH_LET(const auto driver, Driver::load());
  BERTH_DO(driver.check(driver.init(0), "bringing CUDA up"));
  CudaPlaceholder placeholder;
  placeholder.taker_ = ::getpid();
  for (const std::size_t ordinal : ordinals) {
    int device = 0;
    if (auto found = driver.check(driver.device_get(&device, static_cast<int>(ordinal)), "finding a device");
        !found)
      return std::unexpected(found.error());
    BERTH_LET(const auto address, allocate(driver, device));
    placeholder.blocks_.push_back({device, address});
  }
  return placeholder;
}

void CudaPlaceholder::release() {
  const std::vector<Block> blocks = std::exchange(blocks_, {});
  if (blocks.empty() || ::getpid() != taker_) return;
  const auto driver = Driver::load();
  if (!driver) return;
  for (const Block& block : blocks) {
    Context context = nullptr;
    // A second reference, for the time that it takes: the context is not ours alone.
    if (driver->retain(&context, block.device) != 0) continue;
    if (driver->push(context) == 0) {
      driver->free(block.address);
      driver->pop(&context);
    }
    driver->release(block.device);
    driver->release(block.device);
  }
}

}  // namespace berth
