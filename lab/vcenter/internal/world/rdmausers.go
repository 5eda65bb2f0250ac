package world

import (
	"encoding/json"
	"fmt"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// installRDMAUsers adds the storage adapters that share the host's RDMA NIC, as far as the description wants any.
func (h *Host) installRDMAUsers(ctx *simulator.Context) {
	info := types.HostStorageDeviceInfo{}
	if h.entity.Config.StorageDevice != nil {
		info = *h.entity.Config.StorageDevice
	}
	info.HostBusAdapter = append([]types.BaseHostHostBusAdapter(nil), info.HostBusAdapter...)
	for i, user := range h.spec.RDMAUsers {
		device := fmt.Sprintf("vmhba%d", 64+i)
		base := types.HostHostBusAdapter{Key: "key-vim.host.HostBusAdapter-" + device, Device: device, Status: "online"}
		switch user {
		case "nvme":
			base.Driver, base.Model = "nvmerdma", "VMware NVMe over RDMA Storage Adapter"
			info.HostBusAdapter = append(info.HostBusAdapter, &types.HostRdmaHba{HostHostBusAdapter: base, AssociatedRdmaDevice: h.firstRDMA()})
		case "iser":
			base.Driver, base.Model = "iser", "VMware iSCSI over RDMA (iSER) Adapter"
			info.HostBusAdapter = append(info.HostBusAdapter, &types.HostInternetScsiHba{HostHostBusAdapter: base, IScsiName: "iqn.1998-01.com.vmware:" + h.spec.Name})
		}
	}
	h.push(ctx, change("config.storageDevice", info))
}

func (h *Host) firstRDMA() string {
	for _, n := range h.kit.NICs {
		if n.RDMA != "" {
			return n.RDMA
		}
	}
	return ""
}

// vsanInternalSystem is a host's HostVsanInternalSystem: just enough to see a resync.
type vsanInternalSystem struct {
	mo.HostVsanInternalSystem
	host *Host
}

func (h *Host) installVsan(ctx *simulator.Context) {
	s := &vsanInternalSystem{host: h}
	s.Self = h.managerRef("HostVsanInternalSystem", "vsanInternalSystem")
	h.entity.ConfigManager.VsanInternalSystem = h.manager(ctx, s)
}

// QuerySyncingVsanObjects is a JSON text of the objects that are resyncing, shaped as RVC's resync dashboard reads it.
func (s *vsanInternalSystem) QuerySyncingVsanObjects(ctx *simulator.Context, _ *types.QuerySyncingVsanObjects) soap.HasFault {
	var parent ref
	ctx.WithLock(s.host.entity, func() { parent = *s.host.entity.Parent })
	objects := map[string]any{}
	if left := s.host.world.clusterNow(parent).VsanResyncBytes; left > 0 {
		component := map[string]any{"type": "Component", "componentUuid": "52d1c0de-0000-0000-0000-000000000002",
			"attributes": map[string]any{"bytesToSync": left, "recoveryETA": 600, "componentState": 10}}
		objects["52d1c0de-0000-0000-0000-000000000001"] = map[string]any{"config": map[string]any{"content": map[string]any{"type": "Configuration", "child-1": component}}}
	}
	text, err := json.Marshal(map[string]any{"dom_objects": objects})
	if err != nil {
		panic(err) // maps of plain values always encode
	}
	return &methods.QuerySyncingVsanObjectsBody{Res: &types.QuerySyncingVsanObjectsResponse{Returnval: string(text)}}
}
