package world

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// checkerMethods answers "could this machine move there?". The tasks are the machine's: vcsim's belong to the checker,
// which pyVmomi does not take for the entity of a task.
type checkerMethods struct {
	*simulator.VmProvisioningChecker
	machines *Machines
	sim      *Sim
}

func (c *checkerMethods) check(ctx *simulator.Context, name string, machines []ref, hosts []ref) ref {
	return c.sim.startFor(ctx, machines[0], c.sim.Name(machines[0]), name, "", func(j *job) (types.AnyType, types.BaseMethodFault) {
		out := types.ArrayOfCheckResult{}
		for _, machine := range machines {
			for _, host := range hosts {
				out.CheckResult = append(out.CheckResult, c.one(j.ctx, machine, host))
			}
		}
		return out, nil
	})
}

func (c *checkerMethods) one(ctx *simulator.Context, machine, host ref) types.CheckResult {
	result := types.CheckResult{Vm: &machine, Host: &host}
	vm, ok := c.sim.reg.Get(machine).(*simulator.VirtualMachine)
	target := c.machines.hosts.of(host)
	if !ok || target == nil {
		result.Error = []types.LocalizedMethodFault{localized(&types.ManagedObjectNotFound{Obj: host})}
		return result
	}
	now := c.machines.methods(vm).look(ctx)
	if now.host == target {
		return result
	}
	if f := refuseMove(ctx, now, target); f != nil {
		result.Error = []types.LocalizedMethodFault{localized(f)}
	}
	return result
}

// targets are the host named, or the machine's own when none is.
func (c *checkerMethods) targets(machine ref, host *ref) []ref {
	if host != nil {
		return []ref{*host}
	}
	if vm, ok := c.sim.reg.Get(machine).(*simulator.VirtualMachine); ok && vm.Runtime.Host != nil {
		return []ref{*vm.Runtime.Host}
	}
	return nil
}

// CheckMigrateTask checks one move.
func (c *checkerMethods) CheckMigrateTask(ctx *simulator.Context, req *types.CheckMigrate_Task) soap.HasFault {
	t := c.check(ctx, "checkMigrateTask", []ref{req.Vm}, c.targets(req.Vm, req.Host))
	return &methods.CheckMigrate_TaskBody{Res: &types.CheckMigrate_TaskResponse{Returnval: t}}
}

// CheckRelocateTask checks one move.
func (c *checkerMethods) CheckRelocateTask(ctx *simulator.Context, req *types.CheckRelocate_Task) soap.HasFault {
	t := c.check(ctx, "checkRelocateTask", []ref{req.Vm}, c.targets(req.Vm, req.Spec.Host))
	return &methods.CheckRelocate_TaskBody{Res: &types.CheckRelocate_TaskResponse{Returnval: t}}
}

// QueryVMotionCompatibilityExTask checks every machine against every host.
func (c *checkerMethods) QueryVMotionCompatibilityExTask(ctx *simulator.Context, req *types.QueryVMotionCompatibilityEx_Task) soap.HasFault {
	if len(req.Vm) == 0 {
		return &methods.QueryVMotionCompatibilityEx_TaskBody{Fault_: soapFault(&types.InvalidArgument{InvalidProperty: "vm"})}
	}
	t := c.check(ctx, "queryVMotionCompatibilityExTask", req.Vm, req.Host)
	return &methods.QueryVMotionCompatibilityEx_TaskBody{Res: &types.QueryVMotionCompatibilityEx_TaskResponse{Returnval: t}}
}
