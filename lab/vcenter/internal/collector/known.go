package collector

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// refuseUnknown refuses properties that the version of the vCenter does not support.
// VMware: the type tables of pyVmomi 9.1 have the version of each property; its faults of RetrievePropertiesEx and
// CreateFilter: InvalidProperty.
func refuseUnknown(ctx *simulator.Context, specs []types.PropertyFilterSpec) vcsim.Fault {
	for _, spec := range specs {
		for _, set := range spec.PropSet {
			for _, path := range set.PathSet {
				if f := refusePath(ctx, set.Type, path); f != nil {
					return f
				}
			}
		}
	}
	return nil
}

func refusePath(ctx *simulator.Context, kind, path string) vcsim.Fault {
	if knownBy(ctx).Path(kind, path) {
		return nil
	}
	return &types.InvalidProperty{Name: path}
}

// scrubAll removes properties from answers that the version of the vCenter does not support.
// VMware: the type tables of pyVmomi 9.1: a server does not send properties newer than its version.
func scrubAll(ctx *simulator.Context, objects []types.ObjectContent) {
	known := knownBy(ctx)
	for i := range objects {
		for j, p := range objects[i].PropSet {
			objects[i].PropSet[j].Val = known.Scrub(p.Val)
		}
	}
}

// ContinueRetrievePropertiesEx returns the next page of an answer.
// VMware: vSphere API reference, PropertyCollector.ContinueRetrievePropertiesEx.
func (p *propertyCollector) ContinueRetrievePropertiesEx(
	ctx *simulator.Context, req *types.ContinueRetrievePropertiesEx,
) soap.HasFault {
	body := p.PropertyCollector.ContinueRetrievePropertiesEx(ctx, req)
	if res := body.(*methods.ContinueRetrievePropertiesExBody).Res; res != nil {
		scrubAll(ctx, res.Returnval.Objects)
	}
	return body
}

func scrubUpdates(ctx *simulator.Context, set *types.UpdateSet) {
	known := knownBy(ctx)
	for _, filter := range set.FilterSet {
		for _, object := range filter.ObjectSet {
			for i, change := range object.ChangeSet {
				object.ChangeSet[i].Val = known.Scrub(change.Val)
			}
		}
	}
}
