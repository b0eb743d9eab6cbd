# Follows the functions of beside.sh.j2. Arguments: OUTPUT STOP_FILE SIGN SECONDS COUNT COMMAND... LAUNCH...
commtune_asked() {
  trap - TERM INT HUP
  kill -s TERM $(jobs -p) 2>/dev/null
  wait
  exit 143
}
trap commtune_asked TERM INT HUP
commtune_count=$5
commtune_beside_begin "$1" "$2" "$3" "$4" "${@:6:commtune_count}" || exit 125
shift "$((5 + commtune_count))"
"$@" &
wait "$!"
commtune_status=$?
commtune_beside_over
exit "$commtune_status"
