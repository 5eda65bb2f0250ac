package main

import (
	"slices"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

func TestRolesHaveNumbersOfTheirOwnAndPermissionsAreAdded(t *testing.T) {
	r := launch(t, "")
	m := object.NewAuthorizationManager(r.c.Client)
	first, err := m.AddRole(r.ctx, "first", []string{"Folder.Create"})
	r.must(err)
	second, err := m.AddRole(r.ctx, "second", []string{"Folder.Delete"})
	r.must(err)
	roles, err := m.RoleList(r.ctx)
	r.must(err)
	if first == second || roles.ByName("second").RoleId != second ||
		!slices.Contains(roles.ByName("second").Privilege, "System.View") {
		t.Fatalf("roles %d and %d: %v", first, second, roles.ByName("second"))
	}
	root := r.c.ServiceContent.RootFolder
	r.must(m.SetEntityPermissions(r.ctx, root,
		[]types.Permission{{Principal: "LAB\\ml", RoleId: first, Propagate: true}}))
	all, err := m.RetrieveEntityPermissions(r.ctx, root, false)
	r.must(err)
	if len(all) < 2 {
		t.Fatalf("the permissions of others are gone: %v", all)
	}
	if err := m.RemoveRole(r.ctx, first, true); err == nil {
		t.Fatal("a role that somebody has was removed")
	}
	if err := m.UpdateRole(r.ctx, roles.ByName("Admin").RoleId, "Admin", nil); err == nil {
		t.Fatal("a role of the system was changed")
	}
	r.must(m.RemoveRole(r.ctx, first, false))
	left, err := m.RetrieveEntityPermissions(r.ctx, root, false)
	r.must(err)
	if len(left) != len(all)-1 {
		t.Fatalf("the permission stayed: %v", left)
	}
}

func TestEachCallIsCountedForItsCaller(t *testing.T) {
	r := launch(t, "")
	r.c.UserAgent = "dml.vsphere (test)"
	_, err := r.host("esx01.lab").ConfigManager().OptionManager(r.ctx)
	r.must(err)
	var callers map[string]map[string]int
	r.control("GET", "/callers", nil, &callers)
	ours := callers["dml.vsphere (test)"]
	if ours["PropertyCollector.RetrievePropertiesEx"]+ours["PropertyCollector.RetrieveProperties"] == 0 {
		t.Fatalf("%v", callers)
	}
}
