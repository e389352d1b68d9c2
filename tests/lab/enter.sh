# Inside fresh namespaces: makes the Debian 13 folder the root and runs a command in it.
# enter.sh FOLDER TREE COMMAND ...
set -eu
root=$1 tree=$2
shift 2
mount --make-rprivate /
mount --rbind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
chmod 1777 "$root/tmp"
mkdir -p "$root/src" "$root/.old" "$root/var/lab"
mount --rbind "$tree" "$root/src"
cd "$root"
pivot_root . .old
# The shell stays, as process 1 of the namespace: it takes in orphans while it waits.
exec chroot . sh -c 'umount -l /.old; ip link set lo up; hostname lab; "$@" & wait $!' sh \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"
