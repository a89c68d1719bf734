#!/bin/sh
# Builds libgpushare-cuda.so. Twice the same compiler, twice the same bytes.
#
#   hook/build.sh COMPILER OUTPUT [FLAG...]
#
#   hook/build.sh gcc build/libgpushare-cuda.so
#   hook/build.sh "python -m ziglang cc -target aarch64-linux-gnu" build/aarch64/libgpushare-cuda.so
#
# COMPILER is split at blanks. FLAGs for tests only:
#   -DHOOK_LIMITS='"PATH"'          the limits file, instead of /etc/gpushare/limits
#   -DHOOK_LEDGER_FOLDER='"PATH"'   the ledger's folder, instead of /dev/shm
#   -DHOOK_PAUSE='"FOLDER"'         points to stop at: see kernel/pause.h
#   -DHOOK_MUTANT_NO_LOCK           a wrong hook, which does not lock its ledger
set -eu
export LC_ALL=C # the order of the files is that of the bytes, too
compiler=$1
output=$2
shift 2
folder=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
case $output in /*) ;; *) output=$PWD/$output ;; esac
mkdir -p -- "$(dirname -- "$output")"
cd -- "$folder"
# shellcheck disable=SC2086 # the compiler may be several words
case $($compiler -dumpmachine) in
aarch64*) machine=-mno-outline-atomics ;;
*) machine=-fcf-protection=full ;;
esac
# shellcheck disable=SC2086
exec $compiler -std=gnu11 -O2 -g0 -Wall -Wextra -Werror -ffreestanding -fPIC -fvisibility=hidden \
    -fno-stack-protector -fno-builtin -fno-strict-aliasing -fasynchronous-unwind-tables -fno-sanitize=all $machine \
    -ffile-prefix-map="$folder"=hook "$@" \
    -shared -nostdlib -s -Wl,-soname,libgpushare-cuda.so -Wl,--build-id=none -Wl,--hash-style=both \
    -Wl,-Bsymbolic -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack \
    -I. -Ikernel -Iloader -Ishare -Icuda -o "$output" kernel/*.c loader/*.c share/*.c cuda/*.c
