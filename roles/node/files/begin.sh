# shellcheck shell=sh
# Prints the state of a node's first boot and its Python version, which Ansible must know before modules can run there.
# The arguments are the seconds to wait for cloud-init and the interpreters in the order in which Ansible tries them.
patience=$1
shift
if command -v cloud-init > /dev/null 2>&1; then
    timeout "$patience" cloud-init status --wait > /dev/null 2>&1
    echo "cloud-init $?"
fi
for python in "$@"; do
    if command -v "$python" > /dev/null 2>&1; then
        "$python" -c 'import sys; print("python %d.%d %s" % (sys.version_info[0], sys.version_info[1], sys.argv[1]))' "$python"
        exit
    fi
done
