"""What selecting a GPU can fail with."""


class GPUUtilsError(Exception):
    """Any error of this library."""


class EmptyGPUListError(GPUUtilsError):
    """There was nothing to select from."""


class NoGPUAvailableError(GPUUtilsError):
    """No GPU has the memory."""
