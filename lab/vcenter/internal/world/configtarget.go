package world

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// environmentMethods adds GPUs and passthrough to what vcsim says a host offers to virtual machines.
type environmentMethods struct {
	*simulator.EnvironmentBrowser
	registered *Hosts
}

// QueryConfigTarget says what the host named, or any host of the cluster, offers.
func (e *environmentMethods) QueryConfigTarget(ctx *simulator.Context, req *types.QueryConfigTarget) soap.HasFault {
	body := e.EnvironmentBrowser.QueryConfigTarget(ctx, req)
	res := body.(*methods.QueryConfigTargetBody).Res
	if res == nil {
		return body
	}
	target := *res.Returnval
	for _, h := range e.hosts(ctx, req.Host) {
		h.graphics.offer(&target)
		h.pci.offer(&target)
	}
	return &methods.QueryConfigTargetBody{Res: &types.QueryConfigTargetResponse{Returnval: &target}}
}

func (e *environmentMethods) hosts(ctx *simulator.Context, one *ref) []*ESXi {
	if one != nil {
		if h := e.registered.of(*one); h != nil {
			return []*ESXi{h}
		}
		return nil
	}
	var out []*ESXi
	for _, o := range ctx.Map.AllReference("ClusterComputeResource") {
		cluster := o.(*simulator.ClusterComputeResource)
		ctx.WithLock(cluster, func() {
			if cluster.EnvironmentBrowser != nil && *cluster.EnvironmentBrowser == e.Self {
				for _, r := range cluster.Host {
					if h := e.registered.of(r); h != nil {
						out = append(out, h)
					}
				}
			}
		})
	}
	return out
}
