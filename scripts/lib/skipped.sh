# What the last tests of a build skipped though all packages are installed: a defect of the tests, or of the list of
# packages.  Not ../shared, nor what the machine itself lacks: processors, rights, features of its kernel or disk.
#
#     . scripts/lib/skipped.sh
#     skipped build/release             prints them; status 0: there are some
skipped() {
    grep 'SKIP[ :(]' "$1/Testing/Temporary/LastTest.log" | grep -v -E \
        'shared|on this processor|on x86-64|system calls|files without names|that is full|root|another user|sanitized' |
        sort -u
}
