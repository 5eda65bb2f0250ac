package world

import (
	"fmt"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// addStorageAdapters adds the storage adapters that share the host's RDMA NIC, as far as the description wants any.
func (s *Network) addStorageAdapters(ctx *simulator.Context) {
	info := types.HostStorageDeviceInfo{}
	if s.host.entity.Config.StorageDevice != nil {
		info = *s.host.entity.Config.StorageDevice
	}
	info.HostBusAdapter = append([]types.BaseHostHostBusAdapter(nil), info.HostBusAdapter...)
	for i, user := range s.host.spec.RDMAUsers {
		device := fmt.Sprintf("vmhba%d", 64+i)
		base := types.HostHostBusAdapter{Key: "key-vim.host.HostBusAdapter-" + device, Device: device, Status: "online"}
		switch user {
		case "nvme":
			base.Driver, base.Model = "nvmerdma", "VMware NVMe over RDMA Storage Adapter"
			info.HostBusAdapter = append(info.HostBusAdapter, &types.HostRdmaHba{HostHostBusAdapter: base, AssociatedRdmaDevice: s.firstRDMA()})
		case "iser":
			base.Driver, base.Model = "iser", "VMware iSCSI over RDMA (iSER) Adapter"
			info.HostBusAdapter = append(info.HostBusAdapter, &types.HostInternetScsiHba{HostHostBusAdapter: base, IScsiName: "iqn.1998-01.com.vmware:" + s.host.spec.Name})
		}
	}
	s.host.push(ctx, change("config.storageDevice", info))
}

func (s *Network) firstRDMA() string {
	for _, n := range s.host.kit.NICs {
		if n.RDMA != "" {
			return n.RDMA
		}
	}
	return ""
}
