package world

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// builder builds the inventory through vcsim's own API, in process.
type builder struct {
	sim      *Sim
	hosts    *Hosts
	fabric   *Fabric
	clusters *Clusters
	machines *Machines

	folders *object.DatacenterFolders
	added   []*object.HostSystem
	pools   map[string]*object.ResourcePool // by cluster

	subfolders map[string]*object.Folder
	subpools   map[string]*object.ResourcePool // by cluster and name
}

// buildInventory builds the inventory that the description describes.
func buildInventory(ctx context.Context, sim *Sim, hosts *Hosts, clusters *Clusters, machines *Machines) error {
	b := &builder{sim: sim, hosts: hosts, fabric: hosts.fabric, clusters: clusters, machines: machines, pools: map[string]*object.ResourcePool{}, subfolders: map[string]*object.Folder{}, subpools: map[string]*object.ResourcePool{}}
	dc, err := object.NewRootFolder(sim.client).CreateDatacenter(ctx, sim.desc.Name)
	if err != nil {
		return err
	}
	if b.folders, err = dc.Folders(ctx); err != nil {
		return err
	}
	for _, c := range sim.desc.Clusters {
		if err := b.cluster(ctx, c); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	if err := b.furnish(ctx); err != nil {
		return err
	}
	sim.namePlaces(dc.Reference())
	for _, h := range hosts.all() {
		h.complete()
	}
	return nil
}

// furnish adds what lies on the hosts: datastores, switches, virtual machines.
func (b *builder) furnish(ctx context.Context) error {
	for _, name := range b.sim.desc.Datastores {
		if err := b.datastore(ctx, name); err != nil {
			return fmt.Errorf("datastore %s: %w", name, err)
		}
	}
	for _, s := range b.sim.desc.Switches {
		if err := b.distributedSwitch(ctx, s); err != nil {
			return fmt.Errorf("switch %s: %w", s.Name, err)
		}
	}
	for _, v := range b.sim.desc.VMs {
		if err := b.machine(ctx, v); err != nil {
			return fmt.Errorf("virtual machine %s: %w", v.Name, err)
		}
	}
	return nil
}

func (b *builder) cluster(ctx context.Context, c datacentre.Cluster) error {
	cluster, err := b.folders.HostFolder.CreateCluster(ctx, c.Name, types.ClusterConfigSpecEx{})
	if err != nil {
		return err
	}
	configure(b.sim.context(), b.sim.reg.Get(cluster.Reference()).(*simulator.ClusterComputeResource), clusterSpec(&c.DRS, &c.HA, nil))
	b.clusters.change(cluster.Reference(), func(state *ClusterState) {
		*state = ClusterState{ConfigProfile: c.ConfigProfile, VsanResyncBytes: c.VsanResyncBytes, Components: c.ImageComponents}
	})
	b.clusters.setImageManaged(cluster.Reference(), c.ImageManaged)
	if b.pools[c.Name], err = cluster.ResourcePool(ctx); err != nil {
		return err
	}
	for _, h := range c.Hosts {
		task, err := cluster.AddHost(ctx, types.HostConnectSpec{HostName: h.Name}, true, nil, nil)
		if err != nil {
			return err
		}
		info, err := task.WaitForResult(ctx, nil)
		if err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		b.added = append(b.added, object.NewHostSystem(b.sim.client, info.Result.(ref)))
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

// home is the directory vcsim made for its files.
func (b *builder) home() (string, error) {
	for _, v := range b.sim.reg.OptionManager().Setting {
		if o := v.GetOptionValue(); o.Key == "vcsim.home" {
			return o.Value.(string), nil
		}
	}
	return "", fmt.Errorf("vcsim made no home directory")
}
