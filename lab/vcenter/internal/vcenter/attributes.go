package vcenter

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// fieldMethods answers the calls to the CustomFieldsManager that vcsim answers differently from a vCenter.
type fieldMethods struct {
	*simulator.CustomFieldsManager
	sim *vcsim.Sim
}

// RemoveCustomFieldDef removes a definition and its values, also from the summaries.
// VMware: vSphere API reference, CustomFieldsManager.RemoveCustomFieldDef, VirtualMachineSummary.customValue.
func (m *fieldMethods) RemoveCustomFieldDef(ctx *simulator.Context, req *types.RemoveCustomFieldDef) soap.HasFault {
	var entities []mo.Entity
	for _, field := range m.Field {
		if field.Key == req.Key {
			entities = ctx.Map.All(field.ManagedObjectType)
		}
	}
	body := m.CustomFieldsManager.RemoveCustomFieldDef(ctx, req)
	for _, entity := range entities {
		m.sim.ShowAttributes(ctx, entity.Reference())
	}
	return body
}

// SetField sets a custom attribute, also in the summary of the entity.
// VMware: vSphere API reference, CustomFieldsManager.SetField, VirtualMachineSummary.customValue.
func (m *fieldMethods) SetField(ctx *simulator.Context, req *types.SetField) soap.HasFault {
	body := m.CustomFieldsManager.SetField(ctx, req)
	m.sim.ShowAttributes(ctx, req.Entity)
	return body
}
