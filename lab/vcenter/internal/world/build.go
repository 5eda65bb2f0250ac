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
	world   *World
	folders *object.DatacenterFolders
	hosts   []*object.HostSystem
	pools   map[string]*object.ResourcePool // by cluster

	subfolders map[string]*object.Folder
	subpools   map[string]*object.ResourcePool // by cluster and name
}

func (w *World) build(ctx context.Context) error {
	b := &builder{world: w, pools: map[string]*object.ResourcePool{}, subfolders: map[string]*object.Folder{}, subpools: map[string]*object.ResourcePool{}}
	dc, err := object.NewRootFolder(w.client).CreateDatacenter(ctx, w.desc.Name)
	if err != nil {
		return err
	}
	if b.folders, err = dc.Folders(ctx); err != nil {
		return err
	}
	for _, c := range w.desc.Clusters {
		if err := b.cluster(ctx, c); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	if err := b.furnish(ctx); err != nil {
		return err
	}
	w.namePlaces(dc.Reference())
	for _, h := range w.hosts {
		h.setVersion()
	}
	return nil
}

// furnish adds what lies on the hosts: datastores, switches, virtual machines.
func (b *builder) furnish(ctx context.Context) error {
	for _, name := range b.world.desc.Datastores {
		if err := b.datastore(ctx, name); err != nil {
			return fmt.Errorf("datastore %s: %w", name, err)
		}
	}
	for _, s := range b.world.desc.Switches {
		if err := b.distributedSwitch(ctx, s); err != nil {
			return fmt.Errorf("switch %s: %w", s.Name, err)
		}
	}
	for _, v := range b.world.desc.VMs {
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
	w := b.world
	w.configure(w.context(), w.reg.Get(cluster.Reference()).(*simulator.ClusterComputeResource), clusterSpec(&c.DRS, &c.HA, nil))
	state := w.clusterState(cluster.Reference())
	*state = clusterState{ConfigProfile: c.ConfigProfile, VsanResyncBytes: c.VsanResyncBytes, Components: c.ImageComponents}
	w.setImageManaged(cluster.Reference(), c.ImageManaged)
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
		b.hosts = append(b.hosts, object.NewHostSystem(b.world.client, info.Result.(ref)))
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
	for _, h := range b.hosts {
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
	for _, v := range b.world.reg.OptionManager().Setting {
		if o := v.GetOptionValue(); o.Key == "vcsim.home" {
			return o.Value.(string), nil
		}
	}
	return "", fmt.Errorf("vcsim made no home directory")
}

// namePlaces notes what events say of datacenter, datastore and cluster.
func (w *World) namePlaces(dc ref) {
	place := func(r ref) types.EntityEventArgument { return types.EntityEventArgument{Name: w.Name(r)} }
	w.datacenter = &types.DatacenterEventArgument{EntityEventArgument: place(dc), Datacenter: dc}
	for _, d := range w.reg.AllReference("Datastore") {
		w.datastore = &types.DatastoreEventArgument{EntityEventArgument: place(d.Reference()), Datastore: d.Reference()}
	}
	for _, h := range w.hosts {
		h.home = &types.ComputeResourceEventArgument{EntityEventArgument: place(*h.entity.Parent), ComputeResource: *h.entity.Parent}
	}
}
