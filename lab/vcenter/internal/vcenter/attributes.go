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

// SetField sets a custom attribute, also in the summary of the entity, and records who changed it.
// VMware: vSphere API reference, CustomFieldsManager.SetField, VirtualMachineSummary.customValue,
// CustomFieldValueChangedEvent.
func (m *fieldMethods) SetField(ctx *simulator.Context, req *types.SetField) soap.HasFault {
	body := m.CustomFieldsManager.SetField(ctx, req)
	m.sim.ShowAttributes(ctx, req.Entity)
	if body.Fault() == nil {
		m.recordChange(ctx, req)
	}
	return body
}

func (m *fieldMethods) recordChange(ctx *simulator.Context, req *types.SetField) {
	event := &types.CustomFieldValueChangedEvent{FieldKey: req.Key, Value: req.Value}
	for _, field := range m.Field {
		if field.Key == req.Key {
			event.Name = field.Name
		}
	}
	name := types.EntityEventArgument{Name: ctx.Map.Get(req.Entity).(mo.Entity).Entity().Name}
	event.Entity = types.ManagedEntityEventArgument{EntityEventArgument: name, Entity: req.Entity}
	switch req.Entity.Type {
	case "HostSystem":
		event.Host = &types.HostEventArgument{EntityEventArgument: name, Host: req.Entity}
	case "VirtualMachine":
		event.Vm = &types.VmEventArgument{EntityEventArgument: name, Vm: req.Entity}
	}
	m.sim.Post(ctx, event, 0)
}
