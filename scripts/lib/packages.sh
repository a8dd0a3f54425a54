# The Debian packages that the project needs, and their installation: the only such list.
#
#     . scripts/lib/packages.sh
#     install_packages $BUILD_PACKAGES
#
# Installs what is missing, as root or through sudo; prints nothing where all is there.  Without
# the rights it prints the one line to run and exits with status 9, "a tool is missing".

# To build, and to run the demo.  The libraries behind LLVM (zstd, z3, xml2) are named because
# linking LLVM statically needs them and llvm-19-dev does not bring them all.
BUILD_PACKAGES="cmake ninja-build pkg-config clang-19 lld-19 llvm-19-dev libzstd-dev libz3-dev
    libxml2-dev zlib1g-dev libarchive-dev libyaml-dev libjansson-dev"

# More for scripts/test: sanitizer libraries, a second build tool, the ordinary tools that products
# are read with, OpenCL and Vulkan on the CPU, a browser for pages, packages from PyPI.
TEST_PACKAGES="libclang-rt-19-dev clang-format-19 libbz2-dev liblzma-dev make gcc libc6-dev python3
    python3-venv meson tar zstd xz-utils faketime ocl-icd-libopencl1 pocl-opencl-icd
    libvulkan1 mesa-vulkan-drivers spirv-tools libvulkan-dev chromium"

# More for scripts/test: products for other machines run under emulators.  C libraries to link them
# with (clang and lld are there already), qemu for programs and for a bare Cortex-M, WebAssembly.
CROSS_PACKAGES="qemu-user-static qemu-system-arm libc6-dev-arm64-cross libgcc-12-dev-arm64-cross
    libc6-dev-armhf-cross libgcc-12-dev-armhf-cross libc6-dev-armel-cross libgcc-12-dev-armel-cross
    libc6-dev-riscv64-cross libgcc-12-dev-riscv64-cross wasi-libc libclang-rt-19-dev-wasm32"

# More for scripts/package: what the .deb depends on is read by dpkg-shlibdeps, what the portable
# driver contains comes as static libraries.
PACKAGE_PACKAGES="dpkg-dev binutils xz-utils libbz2-dev liblzma-dev"

# More for scripts/test-long: a bare system to try the demo in, other compilers of C, what
# validates calls of Vulkan, what finds races of OpenCL's threads.
LONG_PACKAGES="debootstrap git gcc-aarch64-linux-gnu gcc-arm-none-eabi libnewlib-arm-none-eabi
    gcc-s390x-linux-gnu libc6-dev-s390x-cross gcc-avr avr-libc nodejs
    vulkan-validationlayers oclgrind"

install_packages() {
    packages_missing=
    command -v dpkg-query >/dev/null 2>&1 || return 0 # not Debian: CMake names what it misses
    for package in "$@"; do
        case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
            "install ok installed" | "hold ok installed") ;;
            *) packages_missing="$packages_missing $package" ;;
        esac
    done
    [ -n "$packages_missing" ] || return 0
    packages_line="apt-get install -y --no-install-recommends$packages_missing"
    if [ "$(id -u)" = 0 ]; then
        packages_as=
    elif command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        packages_as=sudo
    else
        echo "packages are missing; as root, run: apt-get update && $packages_line" >&2
        exit 9
    fi
    echo "installing:$packages_missing" >&2
    packages_log=$(mktemp)
    # The package lists may be old or absent: fetch them only if the first try fails.
    if ! $packages_as env DEBIAN_FRONTEND=noninteractive $packages_line >"$packages_log" 2>&1 &&
        ! { $packages_as apt-get update && $packages_as env DEBIAN_FRONTEND=noninteractive \
            $packages_line; } >"$packages_log" 2>&1; then
        cat "$packages_log" >&2
        rm -f "$packages_log"
        echo "this failed: $packages_line" >&2
        exit 9
    fi
    rm -f "$packages_log"
}
