package vcenter

import (
	"unicode/utf8"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/dvs"
	"dml.vsphere/lab/vcenter/internal/host/network"
	"dml.vsphere/lab/vcenter/internal/vcsim"
	"dml.vsphere/lab/vcenter/internal/vm"
)

// folderMethods answers the calls to a folder that vcsim answers without checks.
type folderMethods struct {
	*simulator.Folder
	sim    *vcsim.Sim
	fabric *network.Fabric
}

// mostLetters is the maximum length of a folder's name.
// VMware: vCenter refuses longer folder names.
// Ours: InvalidName as the fault (unproven).
const mostLetters = 80

func tooLong(name string) vcsim.Fault {
	if utf8.RuneCountInString(name) <= mostLetters {
		return nil
	}
	return &types.InvalidName{Name: name}
}

// CreateFolder creates a folder, unless its name is too long.
// VMware: pyVmomi 9.1, faults of CreateFolder: InvalidName.
func (m *folderMethods) CreateFolder(ctx *simulator.Context, req *types.CreateFolder) soap.HasFault {
	if f := tooLong(req.Name); f != nil {
		return &methods.CreateFolderBody{Fault_: vcsim.SoapFault(f)}
	}
	return m.Folder.CreateFolder(ctx, req)
}

// RenameTask renames a folder; if several clients use the same new name at the same time, only one succeeds.
// VMware: pyVmomi 9.1, faults of Rename_Task: DuplicateName. vcsim searches for the name without a lock and returns
// InvalidArgument.
func (m *folderMethods) RenameTask(ctx *simulator.Context, req *types.Rename_Task) soap.HasFault {
	t := m.sim.Start(ctx, m.Folder, "renameTask", "ManagedEntity.rename", func(j *vcsim.Job) (any, vcsim.Fault) {
		return nil, m.rename(j, req.NewName)
	})
	return &methods.Rename_TaskBody{Res: &types.Rename_TaskResponse{Returnval: t}}
}

func (m *folderMethods) rename(j *vcsim.Job, name string) vcsim.Fault {
	if f := tooLong(name); f != nil {
		return f
	}
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

// CreateVMTask creates a virtual machine whose devices have the keys and labels of a vCenter.
// VMware: vSphere API reference, Folder.CreateVM_Task.
func (m *folderMethods) CreateVMTask(ctx *simulator.Context, req *types.CreateVM_Task) soap.HasFault {
	if f := vm.RefuseNetworks(ctx, req.Config.DeviceChange); f != nil {
		return &methods.CreateVM_TaskBody{Fault_: vcsim.SoapFault(f)}
	}
	vm.NumberDevices(nil, req.Config.DeviceChange)
	return m.Folder.CreateVMTask(ctx, req)
}

// CreateDVSTask creates a distributed switch.
// VMware: vSphere API reference, Folder.CreateDVS_Task.
func (m *folderMethods) CreateDVSTask(ctx *simulator.Context, req *types.CreateDVS_Task) soap.HasFault {
	return dvs.Create(ctx, m.sim, m.fabric, m.Folder, req)
}
