package vm

import (
	"cmp"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// CheckerMethods answers whether a virtual machine can move to a host.
type CheckerMethods struct {
	*simulator.VmProvisioningChecker
	Machines *Machines
	Sim      *vcsim.Sim
}

// refusal returns why a machine cannot move to a host, besides what all checks find.
type refusal func(*simulator.Context, *Methods, *esxi.Host) vcsim.Fault

// inPool returns the refusal of a move with this resource pool, or with the present one.
func inPool(pool *vcsim.Ref) refusal {
	return func(ctx *simulator.Context, m *Methods, target *esxi.Host) vcsim.Fault {
		return m.refusePool(ctx, pool, target)
	}
}

func nothing(*simulator.Context, *Methods, *esxi.Host) vcsim.Fault { return nil }

// check starts a task that checks moves. Its entity is the virtual machine.
// VMware: pyVmomi 9.1 reads the entity of a task as a ManagedEntity; vcsim sets the checker, which is not a
// ManagedEntity.
func (c *CheckerMethods) check(
	ctx *simulator.Context, name string, machines []vcsim.Ref, hosts []vcsim.Ref, more refusal,
) vcsim.Ref {
	return c.Sim.StartFor(ctx, machines[0], c.Sim.Name(machines[0]), name, "", func(j *vcsim.Job) (any, vcsim.Fault) {
		out := types.ArrayOfCheckResult{}
		for _, machine := range machines {
			for _, host := range hosts {
				out.CheckResult = append(out.CheckResult, c.one(j.Ctx, machine, host, more))
			}
		}
		return out, nil
	})
}

func (c *CheckerMethods) one(ctx *simulator.Context, machine, host vcsim.Ref, more refusal) types.CheckResult {
	result := types.CheckResult{Vm: &machine, Host: &host}
	vm, ok := c.Sim.Registry.Get(machine).(*simulator.VirtualMachine)
	target := c.Machines.hosts.ByRef(host)
	if !ok || target == nil {
		result.Error = []types.LocalizedMethodFault{vcsim.Localized(&types.ManagedObjectNotFound{Obj: host})}
		return result
	}
	m := c.Machines.Methods(vm)
	now := m.read(ctx)
	if now.host == target {
		return result
	}
	if f := cmp.Or(more(ctx, m, target), refuseMove(ctx, now, target)); f != nil {
		result.Error = []types.LocalizedMethodFault{vcsim.Localized(f)}
	}
	return result
}

// targets returns the named host, or the host of the virtual machine if none is named.
func (c *CheckerMethods) targets(machine vcsim.Ref, host *vcsim.Ref) []vcsim.Ref {
	if host != nil {
		return []vcsim.Ref{*host}
	}
	if vm, ok := c.Sim.Registry.Get(machine).(*simulator.VirtualMachine); ok && vm.Runtime.Host != nil {
		return []vcsim.Ref{*vm.Runtime.Host}
	}
	return nil
}

// CheckMigrateTask checks one move, and returns the errors with which the move would end.
// VMware: vSphere API reference, VirtualMachineProvisioningChecker.CheckMigrate_Task.
// Ours: test types are not distinguished, and there are no warnings.
func (c *CheckerMethods) CheckMigrateTask(ctx *simulator.Context, req *types.CheckMigrate_Task) soap.HasFault {
	t := c.check(ctx, "checkMigrateTask", []vcsim.Ref{req.Vm}, c.targets(req.Vm, req.Host),
		inPool(req.Pool))
	return &methods.CheckMigrate_TaskBody{Res: &types.CheckMigrate_TaskResponse{Returnval: t}}
}

// CheckRelocateTask checks one move, as CheckMigrate_Task does.
// VMware: vSphere API reference, VirtualMachineProvisioningChecker.CheckRelocate_Task.
func (c *CheckerMethods) CheckRelocateTask(ctx *simulator.Context, req *types.CheckRelocate_Task) soap.HasFault {
	t := c.check(ctx, "checkRelocateTask", []vcsim.Ref{req.Vm}, c.targets(req.Vm, req.Spec.Host),
		inPool(req.Spec.Pool))
	return &methods.CheckRelocate_TaskBody{Res: &types.CheckRelocate_TaskResponse{Returnval: t}}
}

// QueryVMotionCompatibilityExTask checks every virtual machine against every host.
// VMware: vSphere API reference, VirtualMachineProvisioningChecker.QueryVMotionCompatibilityEx_Task.
func (c *CheckerMethods) QueryVMotionCompatibilityExTask(
	ctx *simulator.Context, req *types.QueryVMotionCompatibilityEx_Task,
) soap.HasFault {
	if len(req.Vm) == 0 {
		return &methods.QueryVMotionCompatibilityEx_TaskBody{
			Fault_: vcsim.SoapFault(&types.InvalidArgument{InvalidProperty: "vm"})}
	}
	t := c.check(ctx, "queryVMotionCompatibilityExTask", req.Vm, req.Host, nothing)
	return &methods.QueryVMotionCompatibilityEx_TaskBody{
		Res: &types.QueryVMotionCompatibilityEx_TaskResponse{Returnval: t}}
}
