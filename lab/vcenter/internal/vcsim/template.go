package vcsim

import (
	"sync"

	"github.com/vmware/govmomi/simulator/esx"
)

// once is for the model of a host, which all data centres of a process share.
var once sync.Once

// lighten removes the parts from vcsim's model of a host that this simulator creates for each host.
// Ours: vcsim copies the model for each host by encoding and decoding it as XML, although hosts need only a small
// part.
func lighten() {
	config, network := esx.HostConfigInfo, *esx.HostConfigInfo.Network
	config.Firewall, config.Service, config.VirtualNicManagerInfo = nil, nil, nil
	config.Certificate, config.StorageDevice = nil, nil
	network.Pnic, network.Portgroup, network.Vswitch = nil, nil, nil
	config.Network = &network
	esx.HostSystem.Config = &config
}
