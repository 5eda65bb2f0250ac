package vcenter

import (
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// authorizationMethods answers the calls to the AuthorizationManager that vcsim answers differently from a vCenter.
// Privileges are not enforced: every user has full rights.
type authorizationMethods struct {
	*simulator.AuthorizationManager
}

// installAuthorization fills the list of privileges from the role Admin; vcsim leaves it empty.
// VMware: govmomi, simulator/esx/authorization_manager.go: the privileges of role Admin (recorded).
func installAuthorization(sim *vcsim.Sim) {
	content := sim.Registry.Get(vim25.ServiceInstance).(*simulator.ServiceInstance).Content
	manager := sim.Registry.Get(*content.AuthorizationManager).(*simulator.AuthorizationManager)
	for _, id := range object.AuthorizationRoleList(esx.RoleList).ByName("Admin").Privilege {
		manager.PrivilegeList = append(manager.PrivilegeList, types.AuthorizationPrivilege{PrivId: id, Name: id})
	}
}

// AddAuthorizationRole returns the number of the new role, which is unique.
// VMware: vSphere API reference, AddAuthorizationRole returns the roleId. vcsim returns none and starts at 0.
func (m *authorizationMethods) AddAuthorizationRole(req *types.AddAuthorizationRole) soap.HasFault {
	answer := m.AuthorizationManager.AddAuthorizationRole(req)
	body, ok := answer.(*methods.AddAuthorizationRoleBody)
	if !ok || body.Res == nil {
		return answer
	}
	highest := int32(0)
	for _, role := range m.RoleList {
		highest = max(highest, role.RoleId)
	}
	made := &m.RoleList[len(m.RoleList)-1]
	made.RoleId = highest + 1
	body.Res.Returnval = made.RoleId
	return body
}

// UpdateAuthorizationRole refuses the roles of the system.
// VMware: vSphere API reference, UpdateAuthorizationRole: InvalidArgument if roleId is a system role.
func (m *authorizationMethods) UpdateAuthorizationRole(req *types.UpdateAuthorizationRole) soap.HasFault {
	if m.system(req.RoleId) {
		return &methods.UpdateAuthorizationRoleBody{
			Fault_: simulator.Fault("", &types.InvalidArgument{InvalidProperty: "roleId"})}
	}
	return m.AuthorizationManager.UpdateAuthorizationRole(req)
}

// RemoveAuthorizationRole refuses the roles of the system and, with failIfUsed, those in permissions.
// VMware: vSphere API reference, RemoveAuthorizationRole: InvalidArgument, RemoveFailed.
func (m *authorizationMethods) RemoveAuthorizationRole(req *types.RemoveAuthorizationRole) soap.HasFault {
	if m.system(req.RoleId) {
		return &methods.RemoveAuthorizationRoleBody{
			Fault_: simulator.Fault("", &types.InvalidArgument{InvalidProperty: "roleId"})}
	}
	used := m.permissions(&types.RetrieveRolePermissions{This: req.This, RoleId: req.RoleId})
	if req.FailIfUsed && len(used) > 0 {
		return &methods.RemoveAuthorizationRoleBody{Fault_: simulator.Fault("", &types.RemoveFailed{})}
	}
	for _, one := range used {
		m.RemoveEntityPermission(&types.RemoveEntityPermission{
			This: req.This, Entity: *one.Entity, User: one.Principal, IsGroup: one.Group})
	}
	return m.AuthorizationManager.RemoveAuthorizationRole(req)
}

// SetEntityPermissions adds permissions and replaces those of the same principal; vcsim replaces all permissions of
// the entity.
// VMware: vSphere API reference, SetEntityPermissions adds or updates rules.
func (m *authorizationMethods) SetEntityPermissions(req *types.SetEntityPermissions) soap.HasFault {
	asked := *req
	asked.Permission = nil
	all := m.AuthorizationManager.RetrieveAllPermissions(&types.RetrieveAllPermissions{This: req.This})
	old := all.(*methods.RetrieveAllPermissionsBody)
	for _, one := range old.Res.Returnval {
		again := slices.ContainsFunc(req.Permission, func(p types.Permission) bool {
			return p.Principal == one.Principal && p.Group == one.Group
		})
		if one.Entity != nil && *one.Entity == req.Entity && !again {
			asked.Permission = append(asked.Permission, one)
		}
	}
	for _, one := range req.Permission {
		if !slices.ContainsFunc(m.RoleList, func(r types.AuthorizationRole) bool { return r.RoleId == one.RoleId }) {
			return &methods.SetEntityPermissionsBody{Fault_: simulator.Fault("", &types.NotFound{})}
		}
		one.Entity = &req.Entity
		asked.Permission = append(asked.Permission, one)
	}
	return m.AuthorizationManager.SetEntityPermissions(&asked)
}

func (m *authorizationMethods) permissions(req *types.RetrieveRolePermissions) []types.Permission {
	return m.AuthorizationManager.RetrieveRolePermissions(req).(*methods.RetrieveRolePermissionsBody).Res.Returnval
}

func (m *authorizationMethods) system(id int32) bool {
	return slices.ContainsFunc(m.RoleList, func(r types.AuthorizationRole) bool { return r.RoleId == id && r.System })
}
