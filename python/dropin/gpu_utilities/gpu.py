"""A GPU and its memory at one instant."""


class GPU:
    """One GPU. All amounts are bytes; the misspelt attribute is part of the interface."""

    def __init__(
        self,
        cuda_id: int,
        name: str,
        max_available_memory_bytes: int,
        current_memory_utlization_bytes: int,
        uuid: str = "",
    ) -> None:
        self.cuda_id = cuda_id
        self.name = name
        self.max_available_memory_bytes = max_available_memory_bytes
        self.current_memory_utlization_bytes = current_memory_utlization_bytes
        self.uuid = uuid

    def free_memory_bytes(self) -> int:
        return self.max_available_memory_bytes - self.current_memory_utlization_bytes

    def to_torch_device(self) -> str:
        """The name that PyTorch has for it in this process, "cuda:0"."""
        return f"cuda:{self.cuda_id}"

    def __repr__(self) -> str:
        return repr(vars(self))
