# What a container sees, a line for each fact: written where the termination message is.
log=${TERMINATION_LOG:-/dev/termination-log}
status() { sed -n "s/^$1:[[:space:]]*//p" /proc/self/status; }
say() { name=$1; shift; echo "$name=$*"; }
count() { echo $#; }
{
  say uid $(id -u)
  say gid $(id -g)
  say groups $(id -G)
  say capabilities $(status CapPrm) $(status CapEff) $(status CapBnd) $(status CapAmb)
  say no_new_privileges $(status NoNewPrivs)
  say seccomp $(status Seccomp)
  say umask $(umask)
  say directory $(pwd)
  say hostname $(cat /proc/sys/kernel/hostname)
  say localhost $(grep -c '^127.0.0.1[[:space:]]*localhost' /etc/hosts)
  say processes $(count /proc/[0-9]*)
  say networks $(tail -n +3 /proc/net/dev | cut -d: -f1 | sort)
  say devices $(ls /dev)
  say root_is_writable $(touch /planted 2>/dev/null && echo yes || echo no)
  say tmp_is_writable $(touch /tmp/planted 2>/dev/null && echo yes || echo no)
  # Without the address of an API server, and what keeps the machine's GPUs from a program.
  say variables $(env | cut -d= -f1 | grep -v -e '^KUBERNETES_' -e '^CUDA_VISIBLE_DEVICES$' | sort)
  for mount in "$@"; do
    say "mount $mount" $(stat -c %a "$mount" | tail -c 4) $(stat -f -c %T "$mount" | grep tmpfs) \
      $(test -d "$mount" || echo file) $(touch "$mount/new" 2>/dev/null && echo writable || echo read-only) \
      $(ls -A "$mount" | grep -v '^\.\.' | sort)
  done
} >"$log" 2>&1
