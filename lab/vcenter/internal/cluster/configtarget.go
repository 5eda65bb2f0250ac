package cluster

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/vcsim"
	"dml.vsphere/lab/vcenter/internal/versions"
)

// BrowserMethods answers the calls to the EnvironmentBrowser of a cluster.
type BrowserMethods struct {
	*simulator.EnvironmentBrowser
	Registered *esxi.Hosts
	Knows      *versions.Known
}

// QueryConfigTarget lists the GPUs, vGPU types and PCI devices that the named host, or any host of the cluster, offers
// to virtual machines.
// VMware: vSphere API reference, ConfigTarget: vgpuProfileInfo, sharedGpuPassthroughTypes, pciPassthrough,
// dynamicPassthrough, vendorDeviceGroupInfo.
func (e *BrowserMethods) QueryConfigTarget(ctx *simulator.Context, req *types.QueryConfigTarget) soap.HasFault {
	body := e.EnvironmentBrowser.QueryConfigTarget(ctx, req)
	res := body.(*methods.QueryConfigTargetBody).Res
	if res == nil {
		return body
	}
	target := *res.Returnval
	for _, h := range e.hosts(ctx, req.Host) {
		h.Graphics.Offer(&target)
		h.PCI.Offer(&target)
	}
	known := e.Knows.Scrub(&target).(*types.ConfigTarget)
	return &methods.QueryConfigTargetBody{Res: &types.QueryConfigTargetResponse{Returnval: known}}
}

// hosts returns the named host, or all hosts of the cluster that the browser belongs to.
func (e *BrowserMethods) hosts(ctx *simulator.Context, one *vcsim.Ref) []*esxi.Host {
	if one != nil {
		if h := e.Registered.ByRef(*one); h != nil {
			return []*esxi.Host{h}
		}
		return nil
	}
	var out []*esxi.Host
	for _, o := range ctx.Map.AllReference("ClusterComputeResource") {
		cluster := o.(*simulator.ClusterComputeResource)
		ctx.WithLock(cluster, func() {
			if cluster.EnvironmentBrowser != nil && *cluster.EnvironmentBrowser == e.Self {
				for _, r := range cluster.Host {
					if h := e.Registered.ByRef(r); h != nil {
						out = append(out, h)
					}
				}
			}
		})
	}
	return out
}
