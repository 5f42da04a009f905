"""What an original gpu_scheduler does to hold a GPU: an exclusive flock on a file, which it removes after it has let go.

As a program: GPU_LOCK MARK tries for ever, makes MARK while it has the GPU (and says "both" where somebody else has
made it), and lets go again."""

import fcntl
import os
import pathlib
import sys
import time


class OriginalLock:
    def __init__(self, path: pathlib.Path):
        self.path = path
        self.file = None

    def acquire(self) -> bool:
        self.path.parent.mkdir(exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self.file = file
        return True

    def release(self) -> None:
        fcntl.flock(self.file, fcntl.LOCK_UN)
        os.close(self.file)
        self.file = None
        self.path.unlink(missing_ok=True)


def main(path: str, mark: str) -> None:
    lock = OriginalLock(pathlib.Path(path))
    while True:
        if lock.acquire():
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                time.sleep(0.001)
                os.unlink(mark)
                print("held", flush=True)
            except FileExistsError:
                print("both", flush=True)
            lock.release()
        time.sleep(0.002)


if __name__ == "__main__":
    main(*sys.argv[1:])
