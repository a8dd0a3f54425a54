#!/bin/bash
# matrix_all.sh <build of tvmcc> <work folder>
#
# All 27 cells: three generators, three platforms, three types.  Goes on after a failure.
here=$(cd "$(dirname "$0")" && pwd)
failed=0
for generator in "Ninja" "Ninja Multi-Config" "Unix Makefiles"; do
    for platform in native aarch64 android; do
        for type in STATIC OBJECT SHARED; do
            if "$here/matrix.sh" "$1" "$2" "$generator" $platform $type; then
                echo "ok      $generator, $platform, $type"
            elif [ $? = 77 ]; then
                echo "skipped $generator, $platform, $type"
            else
                echo "FAILED  $generator, $platform, $type"
                failed=1
            fi
        done
    done
done
exit $failed
