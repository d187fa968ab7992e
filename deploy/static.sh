# How the static binary is linked; sourced by deploy/binary.sh and the suite of the staging stack.
#
# Functions with the same code are kept once, and relocations are packed: the linker of the toolchain does both. A start
# needs a C library that reads packed relocations: 2.36 of GNU, in Debian 12, or later, where the binary is linked.
static_flags="-C target-feature=+crt-static -C strip=symbols"
static_flags+=" -C link-arg=-Wl,--icf=all -C link-arg=-Wl,-z,pack-relative-relocs"
