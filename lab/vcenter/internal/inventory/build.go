// Package inventory builds the inventory of a description.
//
// vcsim: all objects of the inventory.
package inventory

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/cluster"
	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/host/network"
	"dml.vsphere/lab/vcenter/internal/vcsim"
	"dml.vsphere/lab/vcenter/internal/vm"
)

// builder builds the inventory with the API of vcsim, in process.
type builder struct {
	sim      *vcsim.Sim
	hosts    *esxi.Hosts
	fabric   *network.Fabric
	clusters *cluster.Clusters
	machines *vm.Machines

	folders *object.DatacenterFolders
	added   []*object.HostSystem
	pools   map[string]*object.ResourcePool // by cluster

	subfolders map[string]*object.Folder
	subpools   map[string]*object.ResourcePool // by cluster and name
}

// Build builds the inventory of the description with the API of vcsim, in process.
func Build(
	ctx context.Context, sim *vcsim.Sim, hosts *esxi.Hosts, clusters *cluster.Clusters, machines *vm.Machines,
) error {
	b := &builder{sim: sim, hosts: hosts, fabric: hosts.Fabric, clusters: clusters, machines: machines,
		pools: map[string]*object.ResourcePool{}, subfolders: map[string]*object.Folder{},
		subpools: map[string]*object.ResourcePool{}}
	dc, err := object.NewRootFolder(sim.Client).CreateDatacenter(ctx, sim.Description.Name)
	if err != nil {
		return err
	}
	if b.folders, err = dc.Folders(ctx); err != nil {
		return err
	}
	for _, c := range sim.Description.Clusters {
		if err := b.cluster(ctx, c); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	if err := b.addObjects(ctx); err != nil {
		return err
	}
	sim.NamePlaces(dc.Reference())
	for _, h := range hosts.All() {
		h.Complete()
	}
	return nil
}

// addObjects adds datastores, switches and virtual machines.
func (b *builder) addObjects(ctx context.Context) error {
	for _, name := range b.sim.Description.Datastores {
		if err := b.datastore(ctx, name); err != nil {
			return fmt.Errorf("datastore %s: %w", name, err)
		}
	}
	for _, s := range b.sim.Description.Switches {
		if err := b.distributedSwitch(ctx, s); err != nil {
			return fmt.Errorf("switch %s: %w", s.Name, err)
		}
	}
	for _, v := range b.sim.Description.VMs {
		if err := b.machine(ctx, v); err != nil {
			return fmt.Errorf("virtual machine %s: %w", v.Name, err)
		}
	}
	return nil
}

func (b *builder) cluster(ctx context.Context, c datacentre.Cluster) error {
	made, err := b.folders.HostFolder.CreateCluster(ctx, c.Name, types.ClusterConfigSpecEx{})
	if err != nil {
		return err
	}
	cluster.Configure(b.sim.Context(), b.sim.Registry.Get(made.Reference()).(*simulator.ClusterComputeResource),
		cluster.Spec(&c.DRS, &c.HA, nil))
	b.clusters.Change(made.Reference(), func(state *cluster.State) {
		*state = cluster.State{ConfigProfile: c.ConfigProfile, VsanResyncBytes: c.VsanResyncBytes,
			Components: c.ImageComponents}
	})
	b.clusters.SetImageManaged(made.Reference(), c.ImageManaged)
	if b.pools[c.Name], err = made.ResourcePool(ctx); err != nil {
		return err
	}
	return b.addHosts(ctx, made, c.Hosts)
}

// addHosts adds hosts to a cluster.
// Ours: for each host that joins, vcsim iterates over all hosts of the cluster to determine their virtual hardware
// versions. Here each host joins as the first one, and the list gets all of them at the end.
func (b *builder) addHosts(ctx context.Context, c *object.ClusterComputeResource, hosts []datacentre.Host) error {
	entity := b.sim.Registry.Get(c.Reference()).(*simulator.ClusterComputeResource)
	browser := b.sim.Registry.Get(*entity.EnvironmentBrowser).(*simulator.EnvironmentBrowser)
	for _, h := range hosts {
		browser.QueryConfigOptionDescriptorResponse.Returnval = nil
		added, err := b.sim.Result(c.AddHost(ctx, types.HostConnectSpec{HostName: h.Name}, true, nil, nil))
		if err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		b.added = append(b.added, object.NewHostSystem(b.sim.Client, added.(vcsim.Ref)))
	}
	for i := range browser.QueryConfigOptionDescriptorResponse.Returnval {
		browser.QueryConfigOptionDescriptorResponse.Returnval[i].Host = slices.Clone(entity.Host)
	}
	return nil
}

func (b *builder) datastore(ctx context.Context, name string) error {
	home, err := b.home()
	if err != nil {
		return err
	}
	dir := filepath.Join(home, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, h := range b.added {
		system, err := h.ConfigManager().DatastoreSystem(ctx)
		if err != nil {
			return err
		}
		if _, err := system.CreateLocalDatastore(ctx, name, dir); err != nil {
			return err
		}
	}
	return nil
}

// home returns the directory that vcsim created for its files.
func (b *builder) home() (string, error) {
	for _, v := range b.sim.Registry.OptionManager().Setting {
		if o := v.GetOptionValue(); o.Key == "vcsim.home" {
			return o.Value.(string), nil
		}
	}
	return "", fmt.Errorf("vcsim created no home directory")
}
