"""torch.cuda: the devices that CUDA shows this process, in CUDA's order."""

import ctypes
import types
import uuid

_driver = None
_current = 0
_up = False


def _cuda() -> ctypes.CDLL:
    global _driver
    if _driver is None:
        library = ctypes.CDLL("libcuda.so.1")
        if library.cuInit(0) != 0:
            raise RuntimeError("No CUDA GPUs are available")
        _driver = library
    return _driver


def _checked(code: int) -> None:
    if code != 0:
        raise RuntimeError(f"CUDA error: {code}")


def _handle(index: int) -> ctypes.c_int:
    found = ctypes.c_int()
    _checked(_cuda().cuDeviceGet(ctypes.byref(found), index))
    return found


def _allocate(index: int, size: int) -> ctypes.c_uint64:
    global _up
    _up = True
    context, block = ctypes.c_void_p(), ctypes.c_uint64()
    _checked(_cuda().cuDevicePrimaryCtxRetain(ctypes.byref(context), _handle(index)))
    _checked(_cuda().cuCtxSetCurrent(context))
    _checked(_cuda().cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)))
    return block


def _free(block: ctypes.c_uint64) -> None:
    _checked(_cuda().cuMemFree_v2(block))


def device_count() -> int:
    count = ctypes.c_int()
    try:
        _checked(_cuda().cuDeviceGetCount(ctypes.byref(count)))
    except (OSError, RuntimeError):
        return 0
    return count.value


def is_available() -> bool:
    return device_count() > 0


def is_initialized() -> bool:
    return _up


def init() -> None:
    global _up
    _cuda()
    _up = True


def current_device() -> int:
    init()
    return _current


def set_device(index) -> None:
    global _current
    init()
    _current = getattr(index, "index", index)


class device:  # noqa: N801
    def __init__(self, index):
        self.index = index

    def __enter__(self):
        self.before = current_device()
        set_device(int(str(self.index).rpartition(":")[2]))

    def __exit__(self, *_):
        set_device(self.before)


def get_device_name(index=0) -> str:
    name = ctypes.create_string_buffer(256)
    _checked(_cuda().cuDeviceGetName(name, len(name), _handle(index)))
    return name.value.decode()


def get_device_properties(index):
    init()
    total, raw = ctypes.c_size_t(), (ctypes.c_ubyte * 16)()
    _checked(_cuda().cuDeviceTotalMem_v2(ctypes.byref(total), _handle(index)))
    _checked(_cuda().cuDeviceGetUuid(raw, _handle(index)))
    return types.SimpleNamespace(
        name=get_device_name(index), total_memory=total.value, uuid=uuid.UUID(bytes=bytes(raw))
    )


def mem_get_info(index=0) -> tuple:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _allocate(index, 1)
    _checked(_cuda().cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
    return free.value, total.value


def memory_reserved(index=0) -> int:  # noqa: ARG001
    return 0


def memory_allocated(index=0) -> int:  # noqa: ARG001
    return 0


def empty_cache() -> None:
    pass
