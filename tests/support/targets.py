"""Goes along with every hostile submission: what it aims at, and the tools of its trade.

tests/support/machine.py appends the places and numbers of the test that runs: CANARY, CANARY_PID and the like.
"""

import ctypes
import errno
import os
import stat
import sys

libc = ctypes.CDLL(None, use_errno=True)


def now():
    """Whether the check heads.merge is running: every check seeds torch's generator in its own way."""
    import torch

    return torch.initial_seed() == MOMENT  # noqa: F821


def attempt(name, action):
    """Say what came of an action: refused by the kernel, or REACHED, which no test may see."""
    try:
        action()
    except OSError as error:
        reason = getattr(error, "reason", error)  # urllib wraps what it got
        code = errno.errorcode.get(getattr(reason, "errno", None), type(reason).__name__)
        print(f"{name}: refused" if code in ("EPERM", "EACCES", "ENOSYS") else f"{name}: {code}")
    except RuntimeError as error:
        print(f"{name}: {error}")
    else:
        print(f"{name}: REACHED")


def call(name, *args):
    """A C function, or the system call of that name where the C library has none. Raises OSError."""
    ctypes.set_errno(0)
    values = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    if hasattr(libc, name):
        result = getattr(libc, name)(*values)
    else:
        import pyseccomp

        number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
        result = libc.syscall(ctypes.c_long(number), *values)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def above_the_stack():
    """The bytes that the kernel put there for this program: its arguments and its first environment."""
    AT_EXECFN = 31
    libc.getauxval.restype, libc.getauxval.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
    first = ctypes.c_void_p.in_dll(libc, "program_invocation_name").value
    last = libc.getauxval(AT_EXECFN)
    return ctypes.string_at(first, last - first) if first < last < first + 2**22 else b""


def channel():
    """The descriptor on which the judge waits for an answer."""
    return next(number for number in range(3, 1000) if is_socket(number))


def is_socket(number):
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False


def request():
    """The number of the request that is being carried out."""
    frame = sys._getframe()
    while "request" not in frame.f_locals or not hasattr(frame.f_locals["request"], "id"):
        frame = frame.f_back
    return frame.f_locals["request"].id


def value(number, body=b"\xc0"):
    """A well-formed answer to a request: body is a MessagePack value, None by default."""
    return b"\x83\xa4type\xa5Value\xa2id\xce" + number.to_bytes(4) + b"\xa5value" + body


def tensor(dtype, shape, data):
    import msgspec

    return msgspec.msgpack.encode(msgspec.msgpack.Ext(1, msgspec.msgpack.encode((dtype, shape, data))))


def send(*bodies):
    """Frames, in one go."""
    send_raw(b"".join(len(body).to_bytes(4) + body for body in bodies))


def send_raw(data):
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(channel(), rest) :]
