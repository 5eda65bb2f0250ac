package vcsim

import (
	"sync"

	"github.com/vmware/govmomi/simulator/esx"
)

// once is for the model of a host, which all data centres of a process share.
var once sync.Once

// lighten takes out of vcsim's model of a host what each host gets of its own here.
// Ours: vcsim copies the model for each host by writing and reading it as XML, most of it in vain.
func lighten() {
	config, network := esx.HostConfigInfo, *esx.HostConfigInfo.Network
	config.Firewall, config.Service, config.VirtualNicManagerInfo = nil, nil, nil
	config.Certificate, config.StorageDevice = nil, nil
	network.Pnic, network.Portgroup, network.Vswitch = nil, nil, nil
	config.Network = &network
	esx.HostSystem.Config = &config
}
