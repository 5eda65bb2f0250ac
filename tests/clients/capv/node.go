package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"strings"

	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	"k8s.io/cloud-provider-vsphere/pkg/common/config"
	cloud "k8s.io/cloud-provider-vsphere/pkg/common/connectionmanager"
	"k8s.io/cloud-provider-vsphere/pkg/common/vclib"
	"sigs.k8s.io/cluster-api-provider-vsphere/pkg/session"
)

const zoneLabel, regionLabel, region = "k8s-zone", "k8s-region", "dc1"

// provider returns the part of Kubernetes' cloud provider for vSphere that finds the machine and the zone of a node.
func provider() *cloud.ConnectionManager {
	host, port, _ := net.SplitHostPort(os.Getenv("SERVER"))
	center := &config.VirtualCenterConfig{
		User: os.Getenv("ACCOUNT"), Password: os.Getenv("PASSWORD"), CAFile: os.Getenv("CA"),
		TenantRef: host, VCenterIP: host, VCenterPort: port, RoundTripperCount: 1,
	}
	return cloud.NewConnectionManager(
		&config.Config{VirtualCenter: map[string]*config.VirtualCenterConfig{host: center}}, nil, nil,
	)
}

// zoned makes a region of the data centre, and a zone of each cluster.
func zoned(ctx context.Context, its *session.Session) error {
	center, err := its.Finder.Datacenter(ctx, region)
	if err != nil {
		return err
	}
	if err = attached(ctx, its, regionLabel, region, center); err != nil {
		return err
	}
	for _, m := range machines() {
		cluster, err := its.Finder.ClusterComputeResource(ctx, m.cluster)
		if err != nil {
			return err
		}
		if err = attached(ctx, its, zoneLabel, m.cluster, cluster); err != nil {
			return err
		}
	}
	return nil
}

// attached creates a tag, in a category that may exist, and attaches it to an object.
func attached(ctx context.Context, its *session.Session, category, name string, object mo.Reference) error {
	id, made := "", &tags.Category{Name: category, Cardinality: "SINGLE"}
	if known, err := its.TagManager.GetCategory(ctx, category); err == nil {
		id = known.ID
	} else if id, err = its.TagManager.CreateCategory(ctx, made); err != nil {
		return err
	}
	tag, err := its.TagManager.CreateTag(ctx, &tags.Tag{Name: name, CategoryID: id})
	if err != nil {
		return err
	}
	return its.TagManager.AttachTag(ctx, tag, object)
}

// node finds the machine as the controller of nodes does: by UUID, name and address, and its zone by the tags.
func (c *client) node(nodes *cloud.ConnectionManager) (string, error) {
	vm, err := c.vm.Session.Finder.VirtualMachine(c.ctx, c.name)
	if err != nil {
		return "", err
	}
	var own mo.VirtualMachine
	if err = vm.Properties(c.ctx, vm.Reference(), []string{"config", "guest"}, &own); err != nil {
		return "", err
	}
	uuid, right := own.Config.Uuid, map[string]string{cloud.ZoneLabel: c.cluster, cloud.RegionLabel: region}
	for by, id := range map[cloud.FindVM]string{
		cloud.FindVMByUUID: strings.ToUpper(uuid),
		cloud.FindVMByName: own.Guest.HostName,
		cloud.FindVMByIP:   own.Guest.IpAddress,
	} {
		found, err := nodes.WhichVCandDCByNodeID(c.ctx, id, by)
		if err != nil {
			return uuid, fmt.Errorf("%s %q: %w", by, id, err)
		}
		if found.UUID != uuid || found.DataCenter.Name() != region {
			return uuid, fmt.Errorf("%s %q is %s in %s", by, id, found.UUID, found.DataCenter.Name())
		}
		host, err := found.VM.HostSystem(c.ctx)
		if err != nil {
			return uuid, err
		}
		zone, err := nodes.LookupZoneByMoref(c.ctx, found.TenantRef, host.Reference(), zoneLabel, regionLabel)
		if err != nil || !maps.Equal(zone, right) {
			return uuid, fmt.Errorf("its zone is %v, not %v: %v", zone, right, err)
		}
	}
	return uuid, nil
}

// gone returns an error unless the provider says that there is no such machine, which deletes the node.
func gone(ctx context.Context, nodes *cloud.ConnectionManager, uuid string) error {
	if _, err := nodes.WhichVCandDCByNodeID(ctx, uuid, cloud.FindVMByUUID); err != vclib.ErrNoVMFound {
		return fmt.Errorf("not the error of a missing machine: %v", err)
	}
	return nil
}
