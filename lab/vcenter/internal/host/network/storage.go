package network

import (
	"fmt"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// addStorageAdapters adds the NVMe over RDMA and iSER adapters of the description.
// VMware: vSphere API reference, HostRdmaHba, HostInternetScsiHba.
// Ours: driver and model names (unproven).
func (s *System) addStorageAdapters(ctx *simulator.Context) {
	info := esx.HostStorageDeviceInfo
	info.HostBusAdapter = append([]types.BaseHostHostBusAdapter(nil), info.HostBusAdapter...)
	for i, user := range s.host.Spec.RDMAUsers {
		device := fmt.Sprintf("vmhba%d", 64+i)
		base := types.HostHostBusAdapter{Key: "key-vim.host.HostBusAdapter-" + device, Device: device,
			Status: "online"}
		switch user {
		case "nvme":
			base.Driver, base.Model = "nvmerdma", "VMware NVMe over RDMA Storage Adapter"
			info.HostBusAdapter = append(info.HostBusAdapter,
				&types.HostRdmaHba{HostHostBusAdapter: base, AssociatedRdmaDevice: s.firstRDMA()})
		case "iser":
			base.Driver, base.Model = "iser", "VMware iSCSI over RDMA (iSER) Adapter"
			info.HostBusAdapter = append(info.HostBusAdapter,
				&types.HostInternetScsiHba{HostHostBusAdapter: base,
					IScsiName: "iqn.1998-01.com.vmware:" + s.host.Spec.Name})
		}
	}
	s.host.Push(ctx, vcsim.Change("config.storageDevice", info))
}

func (s *System) firstRDMA() string {
	for _, n := range s.host.Hardware.NICs {
		if n.RDMA != "" {
			return n.RDMA
		}
	}
	return ""
}
