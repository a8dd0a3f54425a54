#!/bin/sh
# size.sh <size> <library> <devices.def> <most> <most of a driver>: bytes of code and constants, without debug
# information, of the runtime, and of what a program has that opens devices: device.c and each driver (<name>*.c).
drivers=$(sed -n 's/^DEVICE([A-Z0-9_]*, \([a-z0-9_]*\))$/\1/p' "$3" | while read -r name; do
    [ ! -e "$(dirname "$3")/$name.c" ] || echo "$name" # else it is one of another's file
done | tr '\n' ' ')device
"$1" "$2" | awk -v names="$drivers" -v most="$4" -v driver="$5" '
    NR > 1 {
        owner = "the runtime"
        n = split(names, all, " ")
        for (i = 1; i <= n; i++)
            if (index($6, all[i]) == 1)
                owner = all[i]
        bytes[owner] += $1
    }
    END {
        for (owner in bytes) {
            limit = owner == "the runtime" ? most : driver
            printf "%s: %d bytes, the limit is %d\n", owner, bytes[owner], limit
            bad += bytes[owner] > limit
        }
        exit bad || bytes["the runtime"] == 0 || length(bytes) != split(names, all, " ") + 1
    }'
