# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What only a machine with a GPU shows: `make gpu` runs it, without a network and without Ansible."""
