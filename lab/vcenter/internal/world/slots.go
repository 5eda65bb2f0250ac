package world

// slot is one vGPU of a GPU in use by a virtual machine.
type slot struct {
	vm      ref
	profile string
}
