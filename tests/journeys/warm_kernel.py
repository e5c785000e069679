"""Kernels that begin where their imports have ended: one process imports what every lesson does, and forks for each.

Run as ``python warm_kernel.py SOCKET`` it forks until it is ended. Nothing of the course is imported before the fork.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

INLINE = "module://matplotlib_inline.backend_inline"  # as ipykernel sets it, but matplotlib reads it when imported
# in Jupyter's hands in the kernel's place: asks for a kernel, and ends with it
ASK = """
import json, os, signal, socket, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Jupyter stops what runs, then asks the kernel itself to end
with socket.socket(socket.AF_UNIX) as kernel:
    kernel.connect(sys.argv[1])
    kernel.sendall(json.dumps([sys.argv[2], os.getcwd(), dict(os.environ)]).encode())
    kernel.shutdown(socket.SHUT_WR)
    kernel.recv(1)
"""


@contextmanager
def start_warm_process(folder: Path, environment: Mapping[str, str]) -> Iterator[list[str]]:
    """Start that process; give the command that starts a kernel, but for its last word, the connection file.

    Args:
        folder: an empty one.
        environment: of the process, which decides what can be imported.
    """
    address = folder / "kernels"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()  # so that who asks early waits
        command = [sys.executable, __file__, str(listener.fileno())]
        options = {"pass_fds": [listener.fileno()], "start_new_session": True}
        with subprocess.Popen(command, cwd=folder, env=environment, **options) as process:
            try:
                yield [sys.executable, "-I", "-S", "-c", ASK, str(address)]
            finally:
                os.killpg(process.pid, signal.SIGKILL)  # a kernel that hangs, too


def main() -> None:
    """Import, then fork for each that asks."""
    del sys.path[0]  # this file's folder, which no kernel looks into
    os.environ["MPLBACKEND"] = INLINE
    import matplotlib.pyplot  # noqa: F401
    import torch._dynamo  # noqa: F401  # an optimizer imports it
    import torchvision  # noqa: F401
    from ipykernel.kernelapp import IPKernelApp

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        while True:
            asker, _ = listener.accept()
            if os.fork() == 0:
                break
            asker.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with asker.makefile() as asked:
        connection, folder, environment = json.load(asked)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # it ends with this process, and the asker is told of its end by a socket that closes
    IPKernelApp.launch_instance(["-f", connection, f"--IPKernelApp.parent_handle={os.getppid()}"])


if __name__ == "__main__":
    main()
