package collector

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
	"dml.vsphere/lab/vcenter/internal/versions"
)

// configManaged is a property of clusters that govmomi does not have: whether a configuration profile manages them.
const configManaged = "configManagerEnabled"

// clusterSource has the properties of clusters and hosts that vcsim does not have. It is in the registry, because
// vcsim creates a PropertyCollector for each session without arguments.
type clusterSource struct {
	mo.View            // vcsim expects a managed object within every registered object
	underConfiguration func(cluster vcsim.Ref) bool
	hostSource
	knows *versions.Known
}

// hostSource has the properties of hosts that govmomi does not have: the users of its GPUs, and the modes of its GPUs
// by PCI address.
type hostSource struct {
	bindings func(host vcsim.Ref) []Binding
	modes    func(host vcsim.Ref) map[string]DirectPathState
}

var clusterSourceRef = vcsim.Ref{Type: "LabClusterSource", Value: "lab-cluster-source"}

// underConfiguration reports whether a configuration profile manages a cluster.
func underConfiguration(ctx *simulator.Context, cluster vcsim.Ref) bool {
	return ctx.Map.Get(clusterSourceRef).(*clusterSource).underConfiguration(cluster)
}

// knownBy returns the properties and methods that the version of the vCenter supports.
func knownBy(ctx *simulator.Context) *versions.Known {
	return ctx.Map.Get(clusterSourceRef).(*clusterSource).knows
}

// withoutConfigManaged removes configManagerEnabled from a request for clusters, and reports whether the request had
// it.
func withoutConfigManaged(specs []types.PropertyFilterSpec) ([]types.PropertyFilterSpec, bool) {
	found := false
	out := slices.Clone(specs)
	for i := range out {
		out[i].PropSet = slices.Clone(out[i].PropSet)
		for j, set := range out[i].PropSet {
			if set.Type != "ClusterComputeResource" || !slices.Contains(set.PathSet, configManaged) {
				continue
			}
			found = true
			out[i].PropSet[j].PathSet = slices.DeleteFunc(slices.Clone(set.PathSet), func(p string) bool {
				return p == configManaged
			})
		}
	}
	return out, found
}

// RetrievePropertiesEx adds the clusters' configManagerEnabled, a property that govmomi does not have.
// VMware: vSphere API reference 8.0, ClusterComputeResource.configManagerEnabled.
func (p *propertyCollector) RetrievePropertiesEx(
	ctx *simulator.Context, req *types.RetrievePropertiesEx,
) soap.HasFault {
	if f := refuseUnknown(ctx, req.SpecSet); f != nil {
		return &methods.RetrievePropertiesExBody{Fault_: vcsim.SoapFault(f)}
	}
	stock := *req
	var wanted bool
	stock.SpecSet, wanted = withoutConfigManaged(req.SpecSet)
	body := p.PropertyCollector.RetrievePropertiesEx(ctx, &stock)
	if res := body.(*methods.RetrievePropertiesExBody).Res; res != nil && res.Returnval != nil {
		scrubAll(ctx, res.Returnval.Objects)
		if wanted {
			addConfigManaged(ctx, res.Returnval.Objects)
		}
		addBindings(ctx, req.SpecSet, res.Returnval.Objects)
		addDirectPath(ctx, res.Returnval.Objects)
	}
	return withoutEmptyPage(body)
}

// withoutEmptyPage replaces an answer without objects with an answer without a result. vcsim sends an empty page.
// VMware: vSphere API reference, RetrievePropertiesEx: its result is optional; the SDK's samples check for null.
func withoutEmptyPage(body soap.HasFault) soap.HasFault {
	res := body.(*methods.RetrievePropertiesExBody).Res
	if res != nil && res.Returnval != nil && len(res.Returnval.Objects) == 0 && res.Returnval.Token == "" {
		res.Returnval = nil
	}
	return body
}

func addConfigManaged(ctx *simulator.Context, objects []types.ObjectContent) {
	for i, o := range objects {
		if o.Obj.Type == "ClusterComputeResource" {
			objects[i].PropSet = append(
				o.PropSet, types.DynamicProperty{Name: configManaged, Val: underConfiguration(ctx, o.Obj)})
		}
	}
}

// RetrieveProperties is the older call for the same properties.
// VMware: vSphere API reference, PropertyCollector.RetrieveProperties (deprecated since 4.1).
func (p *propertyCollector) RetrieveProperties(ctx *simulator.Context, req *types.RetrieveProperties) soap.HasFault {
	body := new(methods.RetrievePropertiesBody)
	all := p.RetrievePropertiesEx(ctx, &types.RetrievePropertiesEx{This: req.This, SpecSet: req.SpecSet})
	if body.Fault_ = all.Fault(); body.Fault_ == nil {
		body.Res = new(types.RetrievePropertiesResponse)
		if found := all.(*methods.RetrievePropertiesExBody).Res.Returnval; found != nil {
			body.Res.Returnval = found.Objects
		}
	}
	return body
}
