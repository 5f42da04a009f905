#!/usr/bin/env python3
"""example.py [--share] [--wait] UUID COMMAND…: the command runs while it holds the GPU. Status 75: it is taken."""

import os
import sys
import time

from hold import NoLockFile, has_by_lease, try_hold

words = sys.argv[1:]
options = {word for word in ("--share", "--wait") if word in words[:2]}
uuid, *command = words[len(options) :]
try:
    while not has_by_lease(uuid):
        file = try_hold(uuid, share="--share" in options)
        if file is not None:
            os.set_inheritable(file, True)  # the command holds the GPU as long as it lives
            break
        if "--wait" not in options:
            sys.exit(75)
        time.sleep(1)
except NoLockFile as error:
    sys.exit(f"example.py: {error}")
os.environ["CUDA_VISIBLE_DEVICES"] = uuid
os.execvp(command[0], command)
