package vcenter

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/dvs"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// folderMethods answers the calls to a folder that vcsim takes too lightly.
type folderMethods struct {
	*simulator.Folder
	sim *vcsim.Sim
}

// RenameTask gives a name to one of several rivals. vcsim looks for a namesake without the parent's lock, so that two
// folders may end with one name, and answers InvalidArgument where a vCenter answers DuplicateName.
func (m *folderMethods) RenameTask(ctx *simulator.Context, req *types.Rename_Task) soap.HasFault {
	t := m.sim.Start(ctx, m.Folder, "renameTask", "ManagedEntity.rename", func(j *vcsim.Job) (any, vcsim.Fault) {
		return nil, m.rename(j, req.NewName)
	})
	return &methods.Rename_TaskBody{Res: &types.Rename_TaskResponse{Returnval: t}}
}

func (m *folderMethods) rename(j *vcsim.Job, name string) vcsim.Fault {
	parent, ok := m.sim.Registry.Get(*m.Parent).(*simulator.Folder)
	if !ok {
		return &types.InvalidArgument{InvalidProperty: "name"}
	}
	var fault vcsim.Fault
	j.Ctx.WithLock(parent, func() {
		if same := j.Ctx.Map.FindByName(name, parent.ChildEntity); same != nil && same.Reference() != m.Self {
			fault = &types.DuplicateName{Name: name, Object: same.Reference()}
			return
		}
		m.sim.Update(j.Ctx, m.Folder, vcsim.Change("name", name))
	})
	return fault
}

// CreateDVSTask makes a distributed switch.
func (m *folderMethods) CreateDVSTask(ctx *simulator.Context, req *types.CreateDVS_Task) soap.HasFault {
	return dvs.Create(ctx, m.sim, m.Folder, req)
}
