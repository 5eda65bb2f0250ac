# shellcheck shell=sh
useradd --create-home --shell /bin/bash --password '*' mpiuser
printf 'PidFile /home/mpiuser/sshd.pid\nHostKey /home/mpiuser/.ssh/id_rsa\nStrictModes no\nUsePAM no\n' >/home/mpiuser/.sshd_config
chown mpiuser: /home/mpiuser/.sshd_config
mkdir -p /run/sshd
ssh-keygen -A
