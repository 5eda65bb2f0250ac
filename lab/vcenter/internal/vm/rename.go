package vm

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// RenameTask renames the virtual machine and its configuration, unless another object in its folder has the name.
// VMware: vSphere API reference, ManagedEntity.Rename_Task: DuplicateName; VmRenamedEvent. vcsim returns
// InvalidArgument and does not change config.name, and its process crashes at a virtual machine that is being created
// and has no name yet (docs/vcsim.md): a folder that creates one is locked.
func (m *Methods) RenameTask(ctx *simulator.Context, req *types.Rename_Task) soap.HasFault {
	t := m.sim.Start(ctx, m.VirtualMachine, "renameTask", "ManagedEntity.rename",
		func(j *vcsim.Job) (any, vcsim.Fault) {
			m.machines.space.Lock() // a clone reads the names of all machines in the folder
			defer m.machines.space.Unlock()
			return nil, m.rename(j, req.NewName)
		})
	return &methods.Rename_TaskBody{Res: &types.Rename_TaskResponse{Returnval: t}}
}

func (m *Methods) rename(j *vcsim.Job, name string) vcsim.Fault {
	if name == "" {
		return &types.InvalidName{}
	}
	if f := m.taken(j, name); f != nil {
		return f
	}
	before := m.read(j.Ctx)
	if before.host != nil && before.name != name {
		m.sim.Post(j.Ctx, &types.VmRenamedEvent{VmEvent: m.eventOn(before.host, before), OldName: before.name,
			NewName: name}, j.Task.Info.EventChainId)
	}
	m.sim.Update(j.Ctx, m.VirtualMachine, vcsim.Change("name", name), vcsim.Change("config.name", name),
		vcsim.Change("summary.config.name", name))
	return nil
}

// taken returns the fault of a name that another object in the folder has.
func (m *Methods) taken(j *vcsim.Job, name string) (fault vcsim.Fault) {
	if m.Parent == nil {
		return nil
	}
	folder, ok := m.sim.Registry.Get(*m.Parent).(*simulator.Folder)
	if !ok {
		return nil
	}
	j.Ctx.WithLock(folder, func() {
		same := j.Ctx.Map.FindByName(name, folder.ChildEntity)
		if same != nil && same.Reference() != m.Self {
			fault = &types.DuplicateName{Name: name, Object: same.Reference()}
		}
	})
	return fault
}
