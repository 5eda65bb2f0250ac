package inventory

import (
	"context"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

// folder returns a subfolder of the datacenter's virtual machine folder, which it creates if necessary; for "" it
// returns the latter.
func (b *builder) folder(ctx context.Context, name string) (*object.Folder, error) {
	if name == "" {
		return b.folders.VmFolder, nil
	}
	if made, ok := b.subfolders[name]; ok {
		return made, nil
	}
	made, err := b.folders.VmFolder.CreateFolder(ctx, name)
	b.subfolders[name] = made
	return made, err
}

// pool returns a child of the cluster's root resource pool, which it creates if necessary; for "" it returns the root
// pool.
func (b *builder) pool(ctx context.Context, root *object.ResourcePool, name string) (*object.ResourcePool, error) {
	if name == "" {
		return root, nil
	}
	key := root.Reference().Value + "/" + name
	if made, ok := b.subpools[key]; ok {
		return made, nil
	}
	made, err := root.Create(ctx, name, types.DefaultResourceConfigSpec())
	b.subpools[key] = made
	return made, err
}

// setAttributes sets custom attributes of a virtual machine, and creates missing definitions.
func (b *builder) setAttributes(ctx context.Context, vm *object.VirtualMachine, attributes map[string]string) error {
	if len(attributes) == 0 {
		return nil
	}
	manager, err := object.GetCustomFieldsManager(b.sim.Client)
	if err != nil {
		return err
	}
	for name, value := range attributes {
		key, err := manager.FindKey(ctx, name)
		if err != nil {
			def, err := manager.Add(ctx, name, "VirtualMachine", nil, nil)
			if err != nil {
				return err
			}
			key = def.Key
		}
		if err := manager.Set(ctx, vm.Reference(), key, value); err != nil {
			return err
		}
	}
	return nil
}
