"""gpu_utilities on Berth: information about GPUs, and strategies to select one by free memory.

    >>> from gpu_utilities.obtainers.nvml import NvmlGPUInfoObtainer
    >>> from gpu_utilities.gpu_selector import GPUSelectorFactory, GPUSelectStrategy
    >>> selector = GPUSelectorFactory().selector(GPUSelectStrategy.WORST_FIT)
    >>> selector.select(NvmlGPUInfoObtainer().gpus(), 800 * 1024 * 1024).to_torch_device()
    'cuda:0'

It only looks: nothing is held for the caller, and a GPU that somebody leased is not offered.
"""

from berth_dropin.beside import warn_of_original

warn_of_original("gpu_utilities")
