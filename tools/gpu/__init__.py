"""What only a machine with a GPU shows: `make gpu` runs it, without a network and without Ansible."""
