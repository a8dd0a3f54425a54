# Configure and build a preset, without a word unless it fails; Ninja's own progress on a terminal.
#
#     . scripts/lib/build.sh
#     build_preset release [<target>...]

# A machine that had no compiler before has no `cc` after the installation either; the projects of
# users that the demo and the tests configure find ours this way.
command -v cc >/dev/null 2>&1 || export CC="${CC:-clang-19}"

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
    preset=$1
    shift
    [ -f "build/$preset/build.ninja" ] || quietly cmake --preset "$preset"
    if [ -t 1 ]; then
        cmake --build --preset "$preset" --target "${@:-all}" || exit 1
    else
        quietly cmake --build --preset "$preset" --target "${@:-all}"
    fi
}
