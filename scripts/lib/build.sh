# Configure and build a preset, without a word unless it fails; Ninja's own progress on a terminal.
#
#     . scripts/lib/build.sh
#     build_preset release

# Runs a command; what it said is shown only if it fails.
quietly() {
    quiet_log=$(mktemp)
    if "$@" >"$quiet_log" 2>&1; then
        rm -f "$quiet_log"
    else
        quiet_status=$?
        cat "$quiet_log" >&2
        rm -f "$quiet_log"
        echo "this failed: $*" >&2
        exit "$quiet_status"
    fi
}

build_preset() {
    # Ninja configures again by itself when a CMake file or a list of sources has changed.
    [ -f "build/$1/build.ninja" ] || quietly cmake --preset "$1"
    if [ -t 1 ]; then
        cmake --build --preset "$1" || exit 1
    else
        quietly cmake --build --preset "$1"
    fi
}
