# Checks limits of this machine. hack/kind.sh reads it.

# used_inotify [PROC]: prints how many inotify instances the processes of this user have.
used_inotify() {
  local process used=0
  for process in "${1:-/proc}"/[0-9]*; do
    [ -O "$process" ] || continue
    used=$((used + $(find "$process/fd" -lname 'anon_inode:inotify' 2>/dev/null | wc -l)))
  done
  echo "$used"
}

# check_inotify NEEDED [PROC]: fails, and prints the reason, if fewer inotify instances are free. The nodes of a rootless engine use those of this
# user, others use those of root.
check_inotify() {
  local proc=${2:-/proc} needed=$1 limit used
  local file=$proc/sys/fs/inotify/max_user_instances
  [ -r "$file" ] || return 0 # no Linux: the engine's virtual machine has its own
  limit=$(cat "$file") used=$(used_inotify "$proc")
  [ $((limit - used)) -lt "$needed" ] || return 0
  echo "fs.inotify.max_user_instances is $limit, and $used instances are in use; the clusters need about $needed:" \
    "sysctl -w fs.inotify.max_user_instances=$(((used + needed + 511) / 512 * 512))"
  return 1
}
