"""Make the Python backend's stub read the arrays of NumPy 2: `numpy2_stub.py FILE`.

The stub of server 2.51 was compiled for NumPy 1 (pybind11 2.11 or older). Of an array's memory it reads one field that
NumPy 2 moved: the element size (`elsize` of PyArray_Descr), from offset 32 to 40. At 32 it finds flags, mostly 0: then
`as_numpy()` repeats an input's first byte, and `pb_utils.Tensor(name, array)` sends no data, both without an error.
Five instructions read the field; the locked wheel's stub has them in these two forms.
"""

import sys
from pathlib import Path

CORRECTIONS = {
    # movslq 0x20(%rax),%rax: four times the size of a tensor that goes out
    b"\x48\x63\x40\x20": (b"\x48\x63\x40\x28", 4),
    # mov (%rsi),%rax; mov 0x20(%rax),%eax; mov %eax,-0x80(%rbp): the strides of a tensor that comes in
    b"\x48\x8b\x06\x8b\x40\x20\x89\x45\x80": (b"\x48\x8b\x06\x8b\x40\x28\x89\x45\x80", 1),
}


def corrected(stub: bytes) -> bytes:
    """Return the stub for NumPy 2; raises ValueError if it is another one."""
    for old, (new, times) in CORRECTIONS.items():
        if stub.count(old) != times:
            raise ValueError(
                f"{old.hex()} is there {stub.count(old)} times, not {times}: another stub needs other code"
            )
        stub = stub.replace(old, new)
    return stub


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_bytes(corrected(file.read_bytes()))
