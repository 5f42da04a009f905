"""The driver's two libraries, by ctypes: no compiler and no package is needed. Nothing here changes a setting."""

import ctypes
import os
import uuid

NOT_SUPPORTED = 3
NO_PERMISSION = 4
INSUFFICIENT_SIZE = 7
FUNCTION_NOT_FOUND = 13
VERSION_MISMATCH = 25
GPU_IS_LOST = 15

INFO_BYTES = 32  # of the longest entry of a process list that a driver is known to write
UNTOUCHED = 0xAA


class Failed(Exception):
    """A call of the driver that did not answer 0."""

    def __init__(self, call, code):
        super().__init__("%s answers %d" % (call, code))
        # CUDA that does not start, or a call that this GPU does not know, says nothing of what is
        # looked for.
        self.shows_nothing = call.startswith("cu") or code in (
            NOT_SUPPORTED,
            FUNCTION_NOT_FOUND,
            NO_PERMISSION,
        )
        self.code = code


class Library:
    def __init__(self, name):
        self.library = ctypes.CDLL(name)

    def has(self, name):
        return hasattr(self.library, name)

    def code(self, name, *arguments):
        """What the call answers; 13 if the library has no such function."""
        if not self.has(name):
            return FUNCTION_NOT_FOUND
        return getattr(self.library, name)(*arguments)

    def ask(self, name, *arguments):
        code = self.code(name, *arguments)
        if code != 0:
            raise Failed(name, code)

    def number(self, name, *arguments, kind=ctypes.c_uint):
        out = kind()
        self.ask(name, *arguments, ctypes.byref(out))
        return out.value

    def text(self, name, *before, length=96):
        out = ctypes.create_string_buffer(length)
        self.ask(name, *before, out, length)
        return out.value.decode(errors="replace")


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class MemoryV2(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint),
        *((name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")),
    ]


class Pci(ctypes.Structure):
    _fields_ = [
        ("legacy", ctypes.c_char * 16),
        *((name, ctypes.c_uint) for name in ("domain", "bus", "device", "model", "subsystem")),
        ("bus_id", ctypes.c_char * 32),
    ]

    @property
    def place(self):
        return (self.domain, self.bus, self.device)

    @property
    def text(self):
        """As CUDA writes it, in small letters."""
        return "%04x:%02x:%02x.0" % self.place


class FieldValue(ctypes.Structure):
    """A value of nvmlDeviceGetFieldValues. It says itself whether it is there."""

    _fields_ = [
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp_us", ctypes.c_longlong),
        ("latency_us", ctypes.c_longlong),
        ("kind", ctypes.c_uint),
        ("code", ctypes.c_uint),
        ("raw", ctypes.c_ulonglong),
    ]
    UNSIGNED_32 = 1

    @property
    def value(self):
        return self.raw & 0xFFFFFFFF if self.kind == self.UNSIGNED_32 else self.raw


class Listing:
    """A process list as the driver wrote it: how many bytes, for how many entries."""

    def __init__(self, raw, count):
        self.raw = bytes(raw)
        self.count = count
        self.written = len(self.raw.rstrip(bytes([UNTOUCHED])))

    @property
    def entry_bytes(self):
        """None if what was written is no whole number of bytes for each entry."""
        return self.written // self.count if self.count and self.written % self.count == 0 else None

    def number(self, entry, offset, length):
        start = entry * (self.entry_bytes or INFO_BYTES) + offset
        return int.from_bytes(self.raw[start : start + length], "little")

    @property
    def processes(self):
        """Bytes by pid; None where the driver does not know them."""
        known = {}
        for entry in range(self.count):
            used = self.number(entry, 8, 8)
            known[self.number(entry, 0, 4)] = None if used == 2**64 - 1 else used
        return known


class Nvml(Library):
    def __init__(self):
        super().__init__("libnvidia-ml.so.1")
        self.ask("nvmlInit_v2")

    @property
    def driver(self):
        return self.text("nvmlSystemGetDriverVersion", length=80)

    def count(self):
        return self.number("nvmlDeviceGetCount_v2")

    def handle(self, index):
        out = ctypes.c_void_p()
        self.ask("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(out))
        return out

    def name(self, handle):
        return self.text("nvmlDeviceGetName", handle)

    def uuid(self, handle):
        return self.text("nvmlDeviceGetUUID", handle)

    def pci(self, handle):
        out = Pci()
        self.ask("nvmlDeviceGetPciInfo_v3", handle, ctypes.byref(out))
        return out

    def memory(self, handle):
        out = Memory()
        self.ask("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(out))
        return out

    def memory_v2(self, handle, version=ctypes.sizeof(MemoryV2) | 2 << 24):
        out = MemoryV2(version=version)
        self.ask("nvmlDeviceGetMemoryInfo_v2", handle, ctypes.byref(out))
        return out

    def used(self, handle):
        try:
            return self.memory_v2(handle).used
        except Failed:
            return self.memory(handle).used

    def listing(self, call, handle):
        """The process list, with its buffer of a known pattern, so that what was written shows."""
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(bytes([UNTOUCHED]) * ((room + 1) * INFO_BYTES))
            count = ctypes.c_uint(room)
            code = self.code(call, handle, ctypes.byref(count), buffer)
            if code == INSUFFICIENT_SIZE and room < 65536:
                room = max(2 * room, count.value + 16)
                continue
            if code != 0:
                raise Failed(call, code)
            return Listing(buffer.raw[: (room + 1) * INFO_BYTES], count.value)

    def process_list(self, handle):
        """Of the newest function that answers."""
        names = ["nvmlDeviceGetComputeRunningProcesses" + end for end in ("_v3", "_v2", "")]
        for name in names:
            try:
                return self.listing(name, handle)
            except Failed as failed:
                last = failed
        raise last

    def fields(self, handle, numbers):
        """The values of these fields, by number."""
        values = (FieldValue * len(numbers))(*(FieldValue(field=number) for number in numbers))
        self.ask("nvmlDeviceGetFieldValues", handle, ctypes.c_int(len(numbers)), values)
        return {value.field: value for value in values}

    def is_split(self, handle):
        now, pending = ctypes.c_uint(), ctypes.c_uint()
        code = self.code("nvmlDeviceGetMigMode", handle, ctypes.byref(now), ctypes.byref(pending))
        return code == 0 and now.value == 1

    def instances(self, handle):
        found = []
        for slot in range(self.number("nvmlDeviceGetMaxMigDeviceCount", handle)):
            out = ctypes.c_void_p()
            name = "nvmlDeviceGetMigDeviceHandleByIndex"
            if self.code(name, handle, ctypes.c_uint(slot), ctypes.byref(out)) == 0:
                found.append(out)
        return found


class CudaDevice:
    def __init__(self, ordinal, identity, bus_id, integrated):
        self.ordinal = ordinal
        self.uuid = identity
        self.bus_id = bus_id
        self.integrated = integrated


class Cuda(Library):
    INTEGRATED = 18  # CU_DEVICE_ATTRIBUTE_INTEGRATED

    def __init__(self, **environment):
        """The variables count only if they are set before the library starts."""
        os.environ.update(environment)
        super().__init__("libcuda.so.1")
        self.ask("cuInit", ctypes.c_uint(0))

    def devices(self):
        return [self.device(ordinal) for ordinal in range(self.number("cuDeviceGetCount", kind=ctypes.c_int))]

    def device(self, ordinal):
        device = ctypes.c_int()
        self.ask("cuDeviceGet", ctypes.byref(device), ordinal)
        raw = ctypes.create_string_buffer(16)
        newest = "cuDeviceGetUuid_v2" if self.has("cuDeviceGetUuid_v2") else "cuDeviceGetUuid"
        self.ask(newest, raw, device)
        bus_id = ctypes.create_string_buffer(32)
        self.ask("cuDeviceGetPCIBusId", bus_id, 32, device)
        integrated = ctypes.c_int()
        self.code("cuDeviceGetAttribute", ctypes.byref(integrated), self.INTEGRATED, device)
        identity = "GPU-%s" % uuid.UUID(bytes=raw.raw)
        return CudaDevice(ordinal, identity, bus_id.value.decode().lower(), bool(integrated.value))

    def use(self, ordinal, bytes_wanted):
        """A context on this device, and so much of its memory, until the process ends."""
        context, memory = ctypes.c_void_p(), ctypes.c_ulonglong()
        self.ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
        self.ask("cuCtxSetCurrent", context)
        self.ask("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(bytes_wanted))
        self.ask("cuMemsetD8_v2", memory, ctypes.c_ubyte(1), ctypes.c_size_t(bytes_wanted))
        self.ask("cuCtxSynchronize")
