# Makes a system of the folder `$0`, with an interface `t0`, and boots systemd there.
mount --make-rprivate /
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount -t sysfs sysfs "$0/sys"
mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
mount -t tmpfs run "$0/run"
mount -t tmpfs dev "$0/dev"
for name in null zero full random urandom tty; do
    touch "$0/dev/$name"
    mount --bind "/dev/$name" "$0/dev/$name"
done
mkdir "$0/dev/pts" "$0/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
ln -s pts/ptmx "$0/dev/ptmx"
ln -s /proc/self/fd "$0/dev/fd"
ip link set lo up
ip link add t0 type veth peer name t1
ip link set t0 up
ip link set t1 up
mkdir -p "$0/old"
cd "$0"
pivot_root . old
umount --lazy /old
# Credentials reach a service by mounts that spread to others.
mount --make-rshared /
exec env -i PATH=/usr/sbin:/usr/bin container=other /lib/systemd/systemd --unit=try.service
