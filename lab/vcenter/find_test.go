package main

import (
	"testing"

	"github.com/vmware/govmomi/object"
)

// The search finds an object of any kind at its path, and nothing at a path without an object.
func TestWhatLiesAtAPathIsFound(t *testing.T) {
	r := launch(t, "")
	index := object.NewSearchIndex(r.c.Client)
	for path, kind := range map[string]string{
		"/": "Folder", "/dc1": "Datacenter", "/dc1/vm": "Folder", "/dc1/host/gpu": "ClusterComputeResource",
		"/dc1/host/gpu/esx01.lab": "HostSystem", "/dc1/host/gpu/Resources": "ResourcePool",
		"/dc1/network/VM Network": "Network", "/dc1/datastore/shared": "Datastore", "/dc1/none": "", "": "",
		"/dc1/vm/none/deeper": "",
	} {
		found, err := index.FindByInventoryPath(r.ctx, path)
		r.must(err)
		if found == nil && kind != "" || found != nil && found.Reference().Type != kind {
			t.Errorf("at %q: %v, not a %s", path, found, kind)
		}
	}
	found, err := index.FindChild(r.ctx, r.host("esx01.lab"), "none")
	if r.must(err); found != nil {
		t.Errorf("a host has %v", found)
	}
}
