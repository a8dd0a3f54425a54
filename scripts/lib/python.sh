# Python with packages from PyPI: the one that PYTHON names, or one in build/python.
#
#     . scripts/lib/python.sh
#     need_python tests/suite/requirements.txt || exit     # "$PYTHON" has them; build/python.log says why not
need_python() {
    [ -z "$PYTHON" ] || [ "$PYTHON" = "$PWD/build/python/bin/python" ] || return 0
    PYTHON=$PWD/build/python/bin/python
    python_has=build/python/$(echo "$1" | tr / .) # what was installed of that list
    cmp -s "$1" "$python_has" && return 0
    mkdir -p build &&
        { python3 -m venv build/python && "$PYTHON" -m pip install -q -r "$1" && cp "$1" "$python_has"; } \
            >build/python.log 2>&1
}
