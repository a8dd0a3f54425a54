#!/bin/sh
# A command whose kernels run under what finds faults in them; fails, with what that says, where it says anything.
#
#     watched.sh layer COMMAND..       Khronos' validation layer, for Vulkan (apt: vulkan-validationlayers)
#     watched.sh oclgrind COMMAND..    a simulator of OpenCL that looks for races and accesses out of bounds (apt: oclgrind)
watcher=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $watcher in
layer) # makes its file as soon as it is loaded, and anew in every process
    printf 'khronos_validation.%s\n' "debug_action = VK_DBG_LAYER_ACTION_LOG_MSG" "report_flags = error,warn" \
        "log_filename = $work/log" >"$work/vk_layer_settings.txt"
    export VK_LAYER_SETTINGS_PATH="$work" VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
    ;;
oclgrind)
    library=$(ls /usr/lib/oclgrind/liboclgrind-rt-icd.so /usr/lib/*/oclgrind/liboclgrind-rt-icd.so 2>/dev/null | head -1)
    echo "$library" >"$work/oclgrind.icd"
    export OCL_ICD_VENDORS="$work" OCLGRIND_DATA_RACES=1 OCLGRIND_LOG="$work/log"
    ;;
*) echo "watched.sh: '$watcher' watches nothing" >&2 && exit 2 ;;
esac
"$@"
status=$?
[ $status = 0 ] && [ ! -f "$work/log" ] && echo "watched.sh: $watcher was not there" >&2 && exit 1
[ ! -s "$work/log" ] || { head -40 "$work/log" >&2 && exit 1; }
exit $status
